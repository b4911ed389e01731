"""What a search looks through, on one open transaction: a row for each plugin. Ranks names, but judges no spelling."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, RowMapping, case, delete, func, insert, or_, select

from registry.storage import tables
from registry.storage.rows import ListingRow

_ESCAPE = "\\"


class Listings:
    """The newest release of each plugin. Made by `Records`, as `records.listings`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, row: ListingRow) -> None:
        """Replace a plugin's row."""
        table = tables.listings
        self._connection.execute(delete(table).where(table.c.name == row.name))
        values = {
            "name": row.name,
            "version": row.version,
            "type": row.type,
            "summary": row.summary,
            "devices": "".join(f",{device}" for device in row.devices) + ",",
            "batch": row.batch,
            "yanked": row.yanked,
            "words": f"{row.name} {row.summary}".lower(),
        }
        self._connection.execute(insert(table).values(**values))

    def find(
        self, words: Sequence[str], *, devices: Sequence[str], batch: str | None, limit: int
    ) -> tuple[ListingRow, ...]:
        """Return the plugins that have every word in name or summary and name one of the devices, the nearest first.

        A device that ends in `:` stands for all of its kind.
        """
        table = tables.listings
        statement = select(table).limit(limit)
        for word in words:
            statement = statement.where(_has(table.c.words, word))
        if devices:
            statement = statement.where(or_(*(_has(table.c.devices, f",{device}") for device in map(_whole, devices))))
        if batch is not None:
            statement = statement.where(table.c.batch == batch)
        order = (table.c.yanked.is_not(None), _rank(words), table.c.name)
        return tuple(_row(found) for found in self._connection.execute(statement.order_by(*order)).mappings())

    def names_like(self, name: str, *, spread: int, limit: int) -> tuple[str, ...]:
        """Return names of about this length that begin or end as this one does, at most `limit` of each sort.

        One slip leaves one half of a name as it was; halves are asked for first, since fewer names share them.
        """
        column = tables.listings.c.name
        near = select(column).where(func.length(column).between(len(name) - spread, len(name) + spread))
        found: list[str] = []
        for size in (max(1, len(name) // 2), max(1, len(name) // 3)):
            for pattern in (f"{_escaped(name[:size])}%", f"%{_escaped(name[-size:])}"):
                alike = near.where(column.like(pattern, escape=_ESCAPE)).limit(limit)
                found += self._connection.execute(alike).scalars()
        return tuple(dict.fromkeys(found))


def _rank(words: Sequence[str]) -> ColumnElement[int]:
    """Order by where the first word is found: the whole name, its beginning, within it, only in the summary."""
    column = tables.listings.c.name
    if not words:
        return case((column.is_not(None), 0))
    first = _escaped(words[0])
    return case(
        (column == words[0], 0),
        (column.like(f"{first}%", escape=_ESCAPE), 1),
        (column.like(f"%{first}%", escape=_ESCAPE), 2),
        else_=3,
    )


def _has(column: ColumnElement[str], text: str) -> ColumnElement[bool]:
    return column.like(f"%{_escaped(text)}%", escape=_ESCAPE)


def _escaped(text: str) -> str:
    return "".join(f"{_ESCAPE}{letter}" if letter in "%_\\" else letter for letter in text)


def _whole(device: str) -> str:
    return device if device.endswith(":") else f"{device},"


def _row(found: RowMapping) -> ListingRow:
    return ListingRow(
        name=found["name"],
        version=found["version"],
        type=found["type"],
        summary=found["summary"],
        devices=tuple(device for device in found["devices"].split(",") if device),
        batch=found["batch"],
        yanked=found["yanked"],
    )

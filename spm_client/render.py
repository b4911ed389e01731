"""Text for people: tables, sizes, one progress line. Decides nothing and reads nothing."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from manifests.plain import plain

if TYPE_CHECKING:
    from spm_client.progress import Advance

_UNITS = ("B", "KiB", "MiB", "GiB")


def warn(text: str) -> None:
    """Print to stderr; whoever's words are in it, they steer no terminal. A progress line makes way for it."""
    _BOTTOM.clear()
    print(plain(text), file=sys.stderr)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return columns as wide as they need to be, without trailing spaces."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def terminal_width() -> int | None:
    """Return how wide what is printed may be: `COLUMNS`, else the terminal's word; None where no terminal reads it."""
    named = os.environ.get("COLUMNS", "")
    if named.isascii() and named.isdigit() and int(named[:6]) > 0:
        return int(named[:6])
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError, AttributeError):
        return None


def fitted(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int | None,
    *,
    wrapped: str = "",
    spare: Sequence[str] = (),
    least: int = 28,
) -> str:
    """Return a table within a width where it can be; None: as wide as it needs to be.

    The column `wrapped`, the last one if none is named, is broken into lines. Where less than `least` is left for it,
    columns are left out as `spare` names them, the first of these first.
    """
    lines = [tuple(row) for row in rows]
    whole = table(header, lines)
    if width is None or max(map(len, whole.splitlines())) <= width:
        return whole
    wrapped = wrapped or header[-1]
    kept, lines, room = roomy(tuple(header), lines, width, wrapped=wrapped, spare=spare, least=least)
    at = kept.index(wrapped)
    return table(
        kept,
        [
            tuple(line if column == at else cell if place == 0 else "" for column, cell in enumerate(row))
            for row in lines
            for place, line in enumerate(_broken(row[at], room))
        ],
    )


def _broken(text: str, room: int) -> list[str]:
    """Return text in lines, words whole."""
    import textwrap

    return textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False) or [""]


def roomy(
    header: tuple[str, ...], rows: list[tuple[str, ...]], width: int, *, wrapped: str, spare: Sequence[str], least: int
) -> tuple[tuple[str, ...], list[tuple[str, ...]], int]:
    """Return a table without those of its spare columns that leave too little room for one, and that room."""
    for column in (*spare, None):
        others = [place for place, name in enumerate(header) if name != wrapped]
        room = width - sum(max(len(row[place]) for row in (header, *rows)) + 2 for place in others)
        if column is None or room >= least:
            break
        if column in header:
            place = header.index(column)
            header, *rows = ((*row[:place], *row[place + 1 :]) for row in (header, *rows))
    return header, rows, max(room, least)


def size(count: int) -> str:
    """Return bytes as people read them: `1.2 MiB`."""
    amount, unit = float(count), 0
    while round(amount, 1) >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def proof_lines(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the steps of a solver's derivation, each with the steps that it follows from."""
    for step in steps:
        premises = f" (from {' and '.join(map(str, step['from']))})" if "from" in step else ""
        yield f"  {step['step']}. {step['text']}{premises}"


class _Bottom:
    """What a progress line has drawn at the bottom of standard error. There is one, as there is one standard error."""

    def __init__(self) -> None:
        self._drawn = 0

    def draw(self, line: str) -> None:
        """Draw over the line that is there; a terminal that is gone is no reason for a command to fail."""
        self._write("\r" + line.ljust(self._drawn))
        self._drawn = len(line)

    def clear(self) -> None:
        if self._drawn:
            self._write("\r" + " " * self._drawn + "\r")
            self._drawn = 0

    @staticmethod
    def _write(text: str) -> None:
        try:
            print(text, end="", file=sys.stderr, flush=True)
        except (OSError, ValueError):
            return


_BOTTOM = _Bottom()


class ProgressLine:
    """One line on a terminal that shows the phase a command is in; says nothing where it is not wanted."""

    def __init__(self, *, is_wanted: bool) -> None:
        from threading import Lock

        self._is_wanted = is_wanted
        self._lock = Lock()

    def __call__(self, label: str, total: int, /) -> "Advance":
        """Begin a phase of bytes; it ends once all have come."""
        return self._begin(label, total, "")

    @contextmanager
    def phase(self, label: str, total: int, noun: str, /) -> "Iterator[Advance]":
        """Show a phase while the block runs: of things where they have a noun, else of bytes."""
        advance = self._begin(label, total, noun)
        try:
            yield advance
        finally:
            with self._lock:
                _BOTTOM.clear()

    def _begin(self, label: str, total: int, noun: str) -> "Advance":
        if not self._is_wanted:
            return _ignored
        from spm_client.meter import Meter

        meter = Meter(label, total, noun)

        def advance(count: int, /) -> None:
            with self._lock:
                line = meter.advance(count)
                if meter.is_over:
                    _BOTTOM.clear()
                elif line is not None:
                    _BOTTOM.draw(line)

        advance(0)
        return advance


def _ignored(_count: int, /) -> None:
    """Pass over what nobody wants to see."""

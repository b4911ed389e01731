"""The files of the signed index on one open transaction: current ones, and older ones for a while. Signs nothing."""

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from registry.storage import tables
from registry.storage.rows import ShardRow, SignedRow

# What a client needs to follow the chain from the root that it pins stays for ever.
LASTING = ("root", "targets", "keyring")


class SignedFiles:
    """TUF metadata by role and version, the keyring document, and shards by digest."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def current(self, role: str) -> SignedRow | None:
        """Return the version of a role that clients are led to."""
        return self._one((tables.tuf_files.c.role == role) & tables.tuf_files.c.replaced_at.is_(None))

    def at(self, role: str, version: int) -> SignedRow | None:
        """Return one version of a role."""
        return self._one((tables.tuf_files.c.role == role) & (tables.tuf_files.c.version == version))

    def with_digest(self, role: str, sha256: str) -> SignedRow | None:
        """Return the version of a role that has this digest."""
        return self._one((tables.tuf_files.c.role == role) & (tables.tuf_files.c.sha256 == sha256))

    def _one(self, condition: ColumnElement[bool]) -> SignedRow | None:
        table = tables.tuf_files
        columns = [column for column in table.c if column is not table.c.replaced_at]
        found = self._connection.execute(select(*columns).where(condition)).mappings().one_or_none()
        return None if found is None else SignedRow(**found)

    def version(self, role: str) -> int:
        """Return the current version of a role; 0 where there is none."""
        table = tables.tuf_files
        statement = select(table.c.version).where(table.c.role == role, table.c.replaced_at.is_(None))
        return self._connection.execute(statement).scalar_one_or_none() or 0

    def put(self, row: SignedRow, now: int) -> None:
        """Make a version the current one of its role; the one before stays readable until it is forgotten."""
        table = tables.tuf_files
        earlier = (table.c.role == row.role) & table.c.replaced_at.is_(None)
        self._connection.execute(update(table).where(earlier).values(replaced_at=now))
        values = {
            "role": row.role,
            "version": row.version,
            "sha256": row.sha256,
            "renew_at": row.renew_at,
            "expires_at": row.expires_at,
            "replaced_at": None,
            "data": row.data,
        }
        self._connection.execute(insert(table).values(**values))

    def due(self, now: int) -> frozenset[str]:
        """List the roles whose current version is to be renewed by now."""
        table = tables.tuf_files
        statement = select(table.c.role).where(table.c.replaced_at.is_(None), table.c.renew_at <= now)
        return frozenset(self._connection.execute(statement).scalars())

    def next_due(self) -> int | None:
        """Return when the next role is to be renewed."""
        table = tables.tuf_files
        statement = select(func.min(table.c.renew_at)).where(table.c.replaced_at.is_(None))
        at: int | None = self._connection.execute(statement).scalar_one()
        return at

    def keep_shard(self, row: ShardRow, now: int) -> None:
        """Keep a shard that is about to be replaced."""
        table, sha256 = tables.shard_files, row.etag.strip('"')
        self._connection.execute(delete(table).where(table.c.sha256 == sha256))
        values = {"sha256": sha256, "name": row.name, "data": row.data, "replaced_at": now}
        self._connection.execute(insert(table).values(**values))

    def kept_shard(self, name: str, sha256: str) -> bytes | None:
        """Return a shard that was replaced not long ago."""
        table = tables.shard_files
        statement = select(table.c.data).where(table.c.sha256 == sha256, table.c.name == name)
        return self._connection.execute(statement).scalar_one_or_none()

    def forget(self, replaced_by: int) -> None:
        """Remove what had been replaced by this moment, save what stays for ever."""
        signed, shards = tables.tuf_files, tables.shard_files
        old = (signed.c.replaced_at <= replaced_by) & signed.c.role.not_in(LASTING)
        self._connection.execute(delete(signed).where(old))
        self._connection.execute(delete(shards).where(shards.c.replaced_at <= replaced_by))

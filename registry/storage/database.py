"""Connections and transactions over SQLAlchemy, on SQLite in WAL mode. Holds no queries."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from manifests.errors import LimitReached
from registry.storage.records import Records
from registry.storage.shortage import stayed_locked, storage_full

BUSY_TIMEOUT_MS = 15_000
# How long a write transaction waits for its turn, in milliseconds; a reading one has no such option.
_PATIENCE = "spm_patience"


class Database:
    """One registry's database.

    >>> with database.writing() as records:
    ...     records.add_audit(row)
    """

    def __init__(self, url: str) -> None:
        self._engine = create_engine(url, pool_size=16, max_overflow=16, pool_timeout=30)
        if self._engine.dialect.name == "sqlite":
            event.listen(self._engine, "connect", _prepare_sqlite)
            event.listen(self._engine, "begin", _begin_sqlite)
        self._watcher: PoolProxiedConnection | None = None

    @classmethod
    def at(cls, path: Path) -> "Database":
        """Open the SQLite database at this path."""
        return cls(f"sqlite:///{path}")

    @contextmanager
    def reading(self) -> Iterator[Records]:
        """Give a consistent view; nothing can be written through it for long, since it is rolled back."""
        with self._engine.connect() as connection, _refusals(), connection.begin() as transaction:
            yield Records(connection)
            transaction.rollback()

    @contextmanager
    def writing(self, patience_ms: int = BUSY_TIMEOUT_MS) -> Iterator[Records]:
        """Run one write transaction: committed whole at the end of the block, or not at all.

        Raises:
            RegistryRefused: another writer kept the database for longer than this one's patience.
        """
        with self.connection(patience_ms) as connection:
            yield Records(connection)

    @contextmanager
    def connection(self, patience_ms: int = BUSY_TIMEOUT_MS) -> Iterator[Connection]:
        """Give the bare connection of one write transaction, as the schema migrations need it."""
        with (
            _refusals(patience_ms),
            self._engine.connect() as connection,
            connection.execution_options(**{_PATIENCE: patience_ms}).begin(),
        ):
            yield connection

    def change_mark(self) -> int | None:
        """Return a number that changes with every commit of anyone else, or None where the database has no such.

        One caller at a time: the connection behind it is kept, since the mark means something only within it.
        """
        if self._engine.dialect.name != "sqlite":
            return None
        if self._watcher is None:
            self._watcher = self._engine.raw_connection()
        cursor = self._watcher.cursor()
        try:
            cursor.execute("PRAGMA data_version")
            row = cursor.fetchone()
        finally:
            cursor.close()
        return None if row is None else int(row[0])

    def settle(self) -> None:
        """Move all commits from the write-ahead log into the database file, as far as no reader holds them there."""
        if self._engine.dialect.name == "sqlite":
            with closing(self._engine.raw_connection()) as connection:
                connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def copy_to(self, path: Path) -> None:
        """Write one moment of the database to an empty file, while others go on reading and writing.

        Raises:
            LimitReached: there is no room for it, or a disk fails.
        """
        with closing(self._engine.raw_connection()) as source, closing(sqlite3.connect(path)) as target:
            if not isinstance(source.driver_connection, sqlite3.Connection):
                raise TypeError("only a SQLite database can be copied")
            try:
                # All pages in one step: a copy in steps starts again whenever somebody commits.
                source.driver_connection.backup(target)
            except sqlite3.OperationalError as error:
                raise LimitReached(
                    f"the database cannot be copied to {path}: {error}",
                    reason="limit:disk",
                    hint="look at the room on both disks, then run the command again",
                ) from error

    def close(self) -> None:
        """Close every connection."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        self._engine.dispose()


@contextmanager
def _refusals(patience_ms: int = BUSY_TIMEOUT_MS) -> Iterator[None]:
    """Turn what the machine is short of into refusals; any other failure goes on as it is."""
    try:
        yield
    except OperationalError as error:
        text = str(error.orig)
        if "locked" in text:
            raise stayed_locked(patience_ms / 1000) from error
        if "disk is full" in text:
            raise storage_full() from error
        raise


def _prepare_sqlite(connection: Any, _entry: ConnectionPoolEntry) -> None:
    # Transactions are begun by `_begin_sqlite`: the driver's own implicit ones start deferred and can fail halfway.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    # FULL: a publish that was answered must survive a power cut.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    patience = connection.get_execution_options().get(_PATIENCE)
    if patience is None:
        connection.exec_driver_sql("BEGIN")
        return
    connection.exec_driver_sql(f"PRAGMA busy_timeout = {int(patience)}")
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")

"""Noticing that something readable changed, cheaply enough to ask at every request. Reads no content."""

from dataclasses import dataclass
from threading import Lock

from registry.storage.database import Database


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the registry stands: the serial of the newest visible change, and the newest timestamp and root."""

    serial: int
    timestamp: int
    root: int


class Changes:
    """Where the registry stands now, asked from the database only when the database file changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._mark: int | None = None
        self._standing = Standing(0, 0, 0)

    def standing(self) -> Standing:
        """Return where the registry stands."""
        with self._lock:
            # The mark is taken first: a commit between the two statements makes the next call ask again.
            mark = self._database.change_mark()
            if mark is None or mark != self._mark:
                with self._database.reading() as records:
                    signed = records.signed
                    self._standing = Standing(records.serial(), signed.version("timestamp"), signed.version("root"))
                self._mark = mark
            return self._standing

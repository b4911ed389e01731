"""Noticing that something readable changed, cheaply enough to ask at every request. Reads no content."""

from threading import Lock

from registry.storage.database import Database


class Changes:
    """The registry's serial as of now, asked from the database only when the database file changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._mark: int | None = None
        self._serial = 0

    def serial(self) -> int:
        """Return the serial of the newest visible change."""
        with self._lock:
            # The mark is taken first: a commit between the two statements makes the next call ask again.
            mark = self._database.change_mark()
            if mark is None or mark != self._mark:
                with self._database.reading() as records:
                    self._serial = records.serial()
                self._mark = mark
            return self._serial

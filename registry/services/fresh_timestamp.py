"""The timestamp, never let grow old: the first who asks once something is due has the index renewed. Signs nothing."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from registry.services.endings import endings
from registry.services.index_signing import renew_index
from registry.storage.changes import Changes
from registry.storage.database import BUSY_TIMEOUT_MS
from registry.storage.rows import SignedRow
from registry.storage.site import Site

# While the timestamp is good, nobody waits long for a renewal; one that failed is tried again a little later.
PATIENCE_MS = 500
RETRY_SECONDS = 10
_DAY = 86_400
logger = logging.getLogger("registry")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """A timestamp, when anything of the index is to be renewed, and until when clients take it."""

    row: SignedRow
    due: int
    expires: int


class FreshTimestamp:
    """The newest timestamp, held in memory for its version. `now` is the registry's clock."""

    def __init__(self, site: Site, changes: Changes, now: Callable[[], int]) -> None:
        self._site = site
        self._changes = changes
        self._now = now
        self._held: _Held | None = None
        self._renewing = Lock()
        self._retry_at = 0
        self._warn_at = 0

    def row(self) -> SignedRow | None:
        """Return the timestamp; what of the index has lived half its life is renewed first.

        Raises: whatever kept it from being renewed, once clients would refuse the one there is.
        """
        held, now = self._current(), self._now()
        if held is None:
            return None
        if now >= held.expires:
            held = self._renewed(now, BUSY_TIMEOUT_MS)
        elif now >= max(held.due, self._retry_at) and self._renewing.acquire(blocking=False):
            try:
                held = self._renewed(now, PATIENCE_MS)
            except Exception:
                # Whatever it was, a timestamp that clients take is worth more than an error.
                self._retry_at = now + RETRY_SECONDS
                logger.exception("the index could not be renewed; its timestamp is good until %d", held.expires)
            finally:
                self._renewing.release()
        return held.row

    def _renewed(self, now: int, patience_ms: int) -> _Held:
        with self._site.database.writing(patience_ms) as records:
            records.await_turn()
            renew_index(self._site, records, now)
            said = endings(records, self._site.root, now)
        self._warn(said, now)
        self._held = self._read()
        if self._held is None:
            raise LookupError("a renewed index has no timestamp")
        return self._held

    def _warn(self, said: tuple[str, ...], now: int) -> None:
        # Once a day: nobody may have looked at a terminal for months.
        if now >= self._warn_at:
            self._warn_at = now + _DAY
            for text in said:
                logger.warning("%s", text)

    def _current(self) -> _Held | None:
        # The version is asked first: one that changes meanwhile is read again by the next who asks.
        version, held = self._changes.standing().timestamp, self._held
        if held is None or held.row.version != version:
            held = self._held = self._read()
        return held

    def _read(self) -> _Held | None:
        with self._site.database.reading() as records:
            row, due = records.signed.current("timestamp"), records.signed.next_due()
        if row is None or row.expires_at is None or due is None:
            return None
        return _Held(row=row, due=due, expires=row.expires_at)

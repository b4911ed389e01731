"""How far a phase is, as one line that fits its terminal: amount, rate, time left. Prints nothing."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable

from manifests.plain import plain
from spm_client.render import count as counted
from spm_client.render import size

_REDRAW_SECONDS = 0.1
_WINDOW_SECONDS = 5.0
_SURE_SECONDS = 1.0
_BARS = (24, 10)


def columns() -> int:
    """Return how wide the terminal behind standard error is; where it does not say, 80."""
    try:
        found = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):
        found = 0
    return found or 80


class Meter:
    """One phase. `total` 0: nobody knows how much there will be; `noun` empty: bytes.

    Usage: `line = meter.advance(4096)`; None while it is too early to draw again.
    """

    def __init__(
        self,
        label: str,
        total: int,
        noun: str = "",
        *,
        clock: Callable[[], float] = time.monotonic,
        width: Callable[[], int] = columns,
    ) -> None:
        self._label = plain(label).replace("\n", " ")
        self._total = total
        self._noun = noun
        self._clock = clock
        self._width = width
        self._done = 0
        self._drawn_at: float | None = None
        self._seen = deque([(clock(), 0)])

    @property
    def is_over(self) -> bool:
        """Tell whether all of a known total is done."""
        return 0 < self._total <= self._done

    def advance(self, more: int) -> str | None:
        """Take in that more is done, or less where something is begun anew; return the line if it is time to draw."""
        self._done = max(0, self._done + more)
        now = self._clock()
        if self._drawn_at is not None and now - self._drawn_at < _REDRAW_SECONDS:
            return None
        self._drawn_at = now
        self._seen.append((now, self._done))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW_SECONDS:
            self._seen.popleft()
        return self._line(self._rate())

    def _rate(self) -> float | None:
        """Return bytes or things a second over the last moments; None where these are too few to tell."""
        (since, before), (now, done) = self._seen[0], self._seen[-1]
        return (done - before) / (now - since) if now - since >= _SURE_SECONDS and done >= before else None

    def _line(self, rate: float | None) -> str:
        """Return label and amount, and beside them what else there is room for, the most telling first."""
        room = self._width() - 1
        amount = self._amount()
        extras = [("left", self._left(rate)), ("rate", self._speed(rate)), *(("bar", self._bar(one)) for one in _BARS)]
        taken: dict[str, str] = {}
        used = len(self._label) + 2 + len(amount)
        for name, text in extras:
            if text and name not in taken and used + 2 + len(text) <= room:
                taken[name] = text
                used += 2 + len(text)
        words = [self._label, taken.get("bar", ""), amount, taken.get("rate", ""), taken.get("left", "")]
        line = "  ".join(word for word in words if word) if taken else f"{self._label} {amount}"
        return line if len(line) <= room else line[: max(room, 0)]

    def _amount(self) -> str:
        if not self._total:
            return (counted(self._done, self._noun) if self._noun else size(self._done)) if self._done else "..."
        done = min(self._done, self._total)
        if self._noun:
            return f"{done} of {counted(self._total, self._noun)}"
        return f"{size(done)} of {size(self._total)}"

    def _speed(self, rate: float | None) -> str:
        return f"{size(int(rate))}/s" if rate is not None and not self._noun else ""

    def _left(self, rate: float | None) -> str:
        if not self._total or rate is None:
            return ""
        if rate <= 0:
            return "stalled"
        return f"{_duration((self._total - self._done) / rate)} left"

    def _bar(self, width: int) -> str:
        if not self._total:
            return ""
        filled = min(width, width * self._done // self._total)
        return f"[{'#' * filled}{'-' * (width - filled)}]"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    if seconds < 6000:
        return f"{round(seconds / 60)} min"
    return f"{round(seconds / 3600)} h"

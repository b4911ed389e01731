"""Text for people: tables, sizes, one progress line. Decides nothing and reads nothing."""

import sys
import threading
import time
from collections.abc import Iterable, Sequence

from manifests.plain import plain
from spm_client.progress import Advance

_UNITS = ("B", "KiB", "MiB", "GiB")
_WIDTH = 24


def warn(text: str) -> None:
    """Print to stderr; whoever's words are in it, they steer no terminal."""
    print(plain(text), file=sys.stderr)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return columns as wide as they need to be, without trailing spaces."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "\n".join(line.rstrip() for line in padded)


def size(count: int) -> str:
    """Return bytes as people read them: `1.2 MiB`."""
    amount, unit = float(count), 0
    while round(amount, 1) >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class ProgressLine:
    """One line on a terminal that shows how far a transfer is; says nothing where it is not wanted."""

    def __init__(self, *, is_wanted: bool) -> None:
        self._is_wanted = is_wanted
        self._lock = threading.Lock()

    def __call__(self, label: str, total: int, /) -> Advance:
        done, drawn_at = 0, 0.0

        def advance(count: int) -> None:
            nonlocal done, drawn_at
            with self._lock:
                done += count
                now = time.monotonic()
                if self._is_wanted and (done >= total or now - drawn_at > 0.1):
                    drawn_at = now
                    self._draw(label, done, total)

        return advance

    @staticmethod
    def _draw(label: str, done: int, total: int) -> None:
        filled = _WIDTH * done // max(total, 1)
        bar = "#" * filled + "-" * (_WIDTH - filled)
        end = "\n" if done >= total else ""
        print(f"\r{label} [{bar}] {size(done)} of {size(total)} ", end=end, file=sys.stderr, flush=True)

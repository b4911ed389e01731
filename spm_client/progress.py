"""How work in progress is told: phases, of bytes or of things. Shows nothing itself; `render.ProgressLine` does.

A phase of bytes: `advance = progress("Downloading", total)`, then `advance(count)`; it ends when all have come.
A phase of things: `with phase(progress, "Resolving", noun="plugin") as advance:`, then `advance(1)`; it ends with the
block, whatever ends that. Whoever only takes labels and totals is a `Progress` too, and is told the same.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, runtime_checkable

UNKNOWN = 0
"""The total of a phase of which nobody can say how much there will be."""


class Advance(Protocol):
    """Told how many more bytes or things have come or gone; may be called from several threads."""

    def __call__(self, count: int, /) -> None: ...


class Progress(Protocol):
    """Asked for an `Advance` when a transfer of `total` bytes begins."""

    def __call__(self, label: str, total: int, /) -> Advance: ...


@runtime_checkable
class ShowsPhases(Protocol):
    """A `Progress` that can also show a phase of things, for as long as the block lasts."""

    def phase(self, label: str, total: int, noun: str, /) -> AbstractContextManager[Advance]: ...


@contextmanager
def phase(progress: Progress, label: str, total: int = UNKNOWN, *, noun: str = "") -> Iterator[Advance]:
    """Give the `Advance` of a phase that counts things, or bytes where there is no noun; it is over with the block."""
    if isinstance(progress, ShowsPhases):
        with progress.phase(label, total, noun) as advance:
            yield advance
    else:
        yield progress(label, total)

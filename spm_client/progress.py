"""How work in progress is told: a label, a total, and how much more is done. Shows nothing itself."""

from typing import Protocol


class Advance(Protocol):
    """Told how many more bytes have come or gone; may be called from several threads."""

    def __call__(self, count: int, /) -> None: ...


class Progress(Protocol):
    """Asked for an `Advance` when a transfer of `total` bytes begins."""

    def __call__(self, label: str, total: int, /) -> Advance: ...

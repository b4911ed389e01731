"""Which queued calls run together next. Pure: queue and time in, decision out; runs nothing.

Late sealing: it is asked only when the worker is free, so a batch is never closed earlier than it must be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from manifests.batching import BatchMode, BatchPolicy
from manifests.parts import TensorSpec

T = TypeVar("T")

NO_BATCHING = BatchPolicy(mode=BatchMode.NONE)
"""What an absent policy means: every call runs alone. `spm verify` reports it as a waste trap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What must be equal for calls to share a run: dtype and trailing shape of each input."""

    inputs: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One queued call. `key` None: it runs alone. `rows` is its size along dimension 0."""

    key: Key | None
    rows: int
    arrived: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """Run these calls of the queue (by position) now."""

    positions: tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Nothing to run before `until`, unless another call comes."""

    until: float


def key_of(
    tensors: Sequence[tuple[str, tuple[int, ...]]], inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
) -> Key | None:
    """Return what the call (dtype and shape of each tensor) shares with others, None where it must run alone.

    Only a plugin whose inputs and outputs all declare -1 at dimension 0 can be batched and its result cut again.
    """
    specs = (*inputs, *outputs)
    if len(tensors) != len(inputs) or not outputs or not all(spec.shape and spec.shape[0] == -1 for spec in specs):
        return None
    if not all(shape for _, shape in tensors) or len({shape[0] for _, shape in tensors}) != 1:
        return None
    if tensors[0][1][0] == 0:
        return None
    return Key(inputs=tuple((dtype, shape[1:]) for dtype, shape in tensors))


def choose(queue: Sequence[Waiting], now: float, policy: BatchPolicy) -> Seal | Hold | None:
    """Decide for the oldest call: run it now, with which others, or hold it. None: the queue is empty."""
    if not queue:
        return None
    head = queue[0]
    if policy.mode is BatchMode.NONE:
        return Seal(positions=(0,), reason="no batching")
    if head.key is None:
        return Seal(positions=(0,), reason="runs alone")
    positions, is_full = _companions(queue, head.key, policy.max_batch_size)
    if is_full:
        return Seal(positions=positions, reason="full")
    if policy.mode is BatchMode.ADAPTIVE:
        return Seal(positions=positions, reason="worker free")
    until = head.arrived + policy.max_latency_ms / 1000
    return Seal(positions=positions, reason="waited") if now >= until else Hold(until=until)


def _companions(queue: Sequence[Waiting], key: Key, limit: int) -> tuple[tuple[int, ...], bool]:
    # The head is taken even where it alone is over the limit: a call is never cut.
    positions, rows = [0], queue[0].rows
    for position, item in enumerate(queue[1:], start=1):
        if item.key != key:
            continue
        if rows + item.rows > limit:
            return tuple(positions), True
        positions.append(position)
        rows += item.rows
    return tuple(positions), rows >= limit


def halves(batch: Sequence[T]) -> tuple[Sequence[T], Sequence[T]] | None:
    """Split a failed batch, so that only the call that fails alone is told so. None: it is one call."""
    if len(batch) < 2:
        return None
    middle = len(batch) // 2
    return batch[:middle], batch[middle:]

"""Shared memory for tensors: one sealed memfd per direction, bytes copied in and out. Decides nothing about calls."""

import fcntl
import math
import mmap
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from manifests.errors import LimitReached, UsageError
from runtime.protocol import Slot

if TYPE_CHECKING:
    import torch

ALIGNMENT = 64
SMALLEST = 1 << 20

# Quantized ones have no values of their own; for the others torch has no kernel, not even one that copies.
_WITHOUT_VALUES = re.compile(r"qu?int.*|bits.*|u?int[1-7]|float4.*")
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


class Arena:
    """A mapped memfd. It has no name, so nothing is left behind when both ends are gone."""

    def __init__(self, memory: mmap.mmap, size: int) -> None:
        self._memory = memory
        self.size = size

    @classmethod
    def attach(cls, descriptor: int, size: int) -> "Arena":
        """Map the other end's memfd; the descriptor is closed."""
        try:
            return cls(mmap.mmap(descriptor, size), size)
        finally:
            os.close(descriptor)

    def view(self) -> memoryview:
        """Return a new view; tensors made of it keep it alive, so a weak reference tells when they are all gone."""
        return memoryview(self._memory)

    def close(self) -> None:
        try:
            self._memory.close()
        except BufferError:
            # A traceback or a kept input still shows a view: the mapping goes with the last of them.
            return


def create(size: int) -> tuple[Arena, int]:
    """Return a new arena and the descriptor to send. Sealed: no end can shrink it and fault the other.

    Raises: LimitReached when the host has no memory or descriptor left for it.
    """
    try:
        descriptor = os.memfd_create("spm-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _SEALS)
            return Arena(mmap.mmap(descriptor, size), size), descriptor
        except OSError:
            os.close(descriptor)
            raise
    except OSError as error:
        raise LimitReached(
            f"this host has no {size} bytes of shared memory to give: {error.strerror}",
            reason="limit:memory",
            size=size,
        ) from error


def size_class(needed: int) -> int:
    """Return the power of two that holds so many bytes, 1 MiB at least, so that growing stays rare."""
    return max(SMALLEST, 1 << max(needed - 1, 0).bit_length())


def lay_out(tensors: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[tuple[Slot, ...], int]:
    """Return a slot for each dtype and shape, one after another, and the bytes that they take."""
    slots, offset = [], 0
    for dtype, shape in tensors:
        slots.append(Slot(dtype=dtype, shape=shape, offset=offset))
        offset += -(-_bytes_of(dtype, shape) // ALIGNMENT) * ALIGNMENT
    return tuple(slots), offset


def require_laid_out(slots: Sequence[Slot]) -> None:
    """Raise UsageError unless slots lie as `lay_out` puts them: none over another, so none is copied twice."""
    if lay_out([(slot.dtype, slot.shape) for slot in slots])[0] != tuple(slots):
        raise UsageError("its tensors do not lie one after another")


def describe(tensor: "torch.Tensor") -> tuple[str, tuple[int, ...]]:
    """Return dtype and shape of a tensor that can cross.

    Raises: UsageError for a tensor whose values are not plain strided memory.
    """
    import torch

    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta or tensor.is_nested:
        raise UsageError(
            "a tensor that is sparse, quantized, nested or on the meta device cannot cross between host and worker",
            hint="make it dense first, for example with `.to_dense()` or `.dequantize()`",
        )
    return str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)


def write(view: memoryview, slot: Slot, pieces: Sequence["torch.Tensor"]) -> None:
    """Copy tensors into a slot, one after another along dimension 0: the one copy of this direction."""
    whole = read(view, slot)
    if len(pieces) == 1:
        _copy(whole, pieces[0])
        return
    start = 0
    for piece in pieces:
        _copy(whole.narrow(0, start, piece.shape[0]), piece)
        start += piece.shape[0]


def read(view: memoryview, slot: Slot) -> "torch.Tensor":
    """Return a slot as a tensor over the arena's own memory.

    Raises: UsageError when the slot is not within the arena; it may come from a worker that lies.
    """
    import torch

    size = _bytes_of(slot.dtype, slot.shape)
    if slot.offset % ALIGNMENT or slot.offset + size > len(view):
        raise UsageError(f"a tensor of {size} bytes at {slot.offset} is not within the arena of {len(view)} bytes")
    dtype = _dtype(slot.dtype)
    if size == 0:
        return _fresh(dtype, slot.shape)
    flat: torch.Tensor = torch.frombuffer(view, dtype=torch.uint8, count=size, offset=slot.offset)
    return flat.view(dtype).view(slot.shape)


def owned(tensor: "torch.Tensor") -> "torch.Tensor":
    """Return a copy with its own memory."""
    copy = _fresh(tensor.dtype, tuple(tensor.shape))
    _copy(copy, tensor)
    return copy


def _fresh(dtype: "torch.dtype", shape: tuple[int, ...]) -> "torch.Tensor":
    import torch

    # Made as bytes: making an experimental dtype by its name warns.
    size = dtype.itemsize * math.prod(shape)
    try:
        memory = torch.empty(size, dtype=torch.uint8)
    except RuntimeError as error:
        raise LimitReached(
            f"this process has no {size} bytes of memory for a tensor of shape {list(shape)}",
            reason="limit:memory",
            size=size,
        ) from error
    return memory.view(dtype).view(shape)


def _copy(target: "torch.Tensor", source: "torch.Tensor") -> None:
    import torch

    # As integers of the same size, since some dtypes have no copy kernel of their own.
    carriers = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    carrier = carriers.get(target.dtype.itemsize, target.dtype)
    source = source.detach().resolve_conj().resolve_neg()
    target.view(carrier).copy_(source.view(carrier))


def _bytes_of(dtype: str, shape: tuple[int, ...]) -> int:
    return int(_dtype(dtype).itemsize) * math.prod(shape)


def _dtype(name: str) -> Any:
    import torch

    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or _WITHOUT_VALUES.fullmatch(name):
        raise UsageError(f"{name[:40]!r} is not a dtype whose values this torch can read")
    return dtype

"""The arena: every dtype and shape crosses bit by bit; its size cannot be changed; nothing outside it is read."""

import fcntl
import os
import re
from collections.abc import Callable

import pytest
import torch

from manifests.errors import LimitReached, UsageError
from runtime import arena
from runtime.protocol import Slot

ALL = sorted({str(value).removeprefix("torch.") for value in vars(torch).values() if isinstance(value, torch.dtype)})
WITHOUT_VALUES = [name for name in ALL if re.fullmatch(r"qu?int.*|bits.*|u?int[1-7]|float4.*", name)]
DTYPES = [name for name in ALL if name not in WITHOUT_VALUES]


def sample(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    count = torch.Size(shape).numel() * dtype.itemsize
    return (torch.arange(count) % 2).to(torch.uint8).view(dtype).view(shape)


def crossed(tensor: torch.Tensor) -> torch.Tensor:
    memory, descriptor = arena.create(arena.SMALLEST)
    os.close(descriptor)
    ((slot,), _) = arena.lay_out([arena.describe(tensor)])
    arena.write(memory.view(), slot, [tensor])
    result = arena.owned(arena.read(memory.view(), slot))
    memory.close()
    return result


def bits(tensor: torch.Tensor) -> list[int]:
    carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(tensor.dtype.itemsize)
    values = tensor.view(carrier) if carrier else torch.view_as_real(tensor)
    return list(values.flatten().tolist())


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (4, 6)])
@pytest.mark.parametrize("name", DTYPES)
def test_a_tensor_of_any_dtype_and_shape_crosses_bit_by_bit(name: str, shape: tuple[int, ...]) -> None:
    tensor = sample(getattr(torch, name), shape)

    result = crossed(tensor)

    assert (tensor.dtype, tensor.shape, bits(tensor)) == (result.dtype, result.shape, bits(result))


@pytest.mark.parametrize("name", WITHOUT_VALUES)
def test_a_dtype_whose_values_nothing_can_read_does_not_cross(name: str) -> None:
    with pytest.raises(UsageError) as refusal:
        arena.lay_out([(name, (2,))])

    assert refusal.value.message == f"{name!r} is not a dtype whose values this torch can read"


def test_memory_that_the_host_has_not_is_a_typed_refusal() -> None:
    with pytest.raises(LimitReached) as refusal:
        arena.owned(torch.zeros(1).expand(1 << 50))

    assert (refusal.value.reason, refusal.value.message) == (
        "limit:memory",
        "this process has no 4503599627370496 bytes of memory for a tensor of shape [1125899906842624]",
    )


@pytest.mark.parametrize("name", DTYPES)
def test_a_transposed_tensor_crosses(name: str) -> None:
    tensor = sample(getattr(torch, name), (4, 6)).t()

    result = crossed(tensor)

    assert (tensor.shape, bits(tensor)) == (result.shape, bits(result))


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(4.0).expand(3, 4),
        torch.arange(24.0).view(4, 6)[::2, 1::2],
        torch.randn(3, dtype=torch.complex64).conj(),
        torch.randn(3, dtype=torch.complex128).conj().imag,
        torch.ones(2, requires_grad=True),
    ],
)
def test_a_tensor_that_is_only_a_view_crosses(tensor: torch.Tensor) -> None:
    assert torch.equal(tensor.detach(), crossed(tensor))


def test_pieces_are_laid_together_along_dimension_0() -> None:
    memory, descriptor = arena.create(arena.SMALLEST)
    os.close(descriptor)
    slot = Slot(dtype="float32", shape=(3, 2), offset=64)

    arena.write(memory.view(), slot, [torch.zeros(1, 2), torch.ones(2, 2)])

    assert arena.read(memory.view(), slot).tolist() == [[0, 0], [1, 1], [1, 1]]


CHANGES: dict[str, Callable[[int], object]] = {
    "shrink": lambda descriptor: os.ftruncate(descriptor, arena.SMALLEST // 2),
    "grow": lambda descriptor: os.ftruncate(descriptor, arena.SMALLEST * 2),
    "seal": lambda descriptor: fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_end_can_change_the_size_or_the_seals(change: Callable[[int], object]) -> None:
    memory, descriptor = arena.create(arena.SMALLEST)

    with pytest.raises(PermissionError):
        change(descriptor)

    os.close(descriptor)
    memory.close()


@pytest.mark.parametrize(
    ("slot", "message"),
    [
        (
            Slot(dtype="float32", shape=(1 << 20,), offset=0),
            "a tensor of 4194304 bytes at 0 is not within the arena of 1048576 bytes",
        ),
        (
            Slot(dtype="uint8", shape=(2**62, 2**62), offset=0),
            f"a tensor of {2**124} bytes at 0 is not within the arena of 1048576 bytes",
        ),
        (
            Slot(dtype="uint8", shape=(1,), offset=1 << 20),
            "a tensor of 1 bytes at 1048576 is not within the arena of 1048576 bytes",
        ),
        (
            Slot(dtype="uint8", shape=(1,), offset=3),
            "a tensor of 1 bytes at 3 is not within the arena of 1048576 bytes",
        ),
        (Slot(dtype="load", shape=(1,), offset=0), "'load' is not a dtype whose values this torch can read"),
        (Slot(dtype="quint8", shape=(1,), offset=0), "'quint8' is not a dtype whose values this torch can read"),
    ],
)
def test_a_slot_outside_the_arena_is_refused(slot: Slot, message: str) -> None:
    memory, descriptor = arena.create(arena.SMALLEST)
    os.close(descriptor)

    with pytest.raises(UsageError) as refusal:
        arena.read(memory.view(), slot)

    assert message == refusal.value.message


def test_a_tensor_without_plain_memory_is_refused() -> None:
    with pytest.raises(UsageError) as refusal:
        arena.describe(torch.eye(2).to_sparse())

    assert refusal.value.message == (
        "a tensor that is sparse, quantized, nested or on the meta device cannot cross between host and worker"
    )


@pytest.mark.parametrize(
    ("needed", "size"), [(0, 1 << 20), (1 << 20, 1 << 20), ((1 << 20) + 1, 1 << 21), (3 << 20, 1 << 22)]
)
def test_arenas_come_in_powers_of_two(needed: int, size: int) -> None:
    assert size == arena.size_class(needed)

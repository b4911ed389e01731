"""A worker's answer to one run, and each call's own part of it. Talks to no worker."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from manifests.errors import PluginFailed
from manifests.parts import TensorSpec
from runtime import arena, declared, structure
from runtime.declared import TensorFacts

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A run's outcome: the value's nodes, and its tensors over the arena; take them before the next run."""

    value: Any
    tensors: tuple["torch.Tensor", ...]
    compute_seconds: float


def check(name: str, answer: Answer, outputs: Sequence[TensorSpec]) -> None:
    """Hold a run's value against the declared outputs.

    Raises: PluginFailed when it is not what the plugin's manifest declares.
    """
    facts = [TensorFacts(dtype=dtype, shape=shape) for dtype, shape in map(arena.describe, answer.tensors)]
    declared.check_result(name, outputs, structure.build(answer.value, facts))


def cut(name: str, answer: Answer, rows: Sequence[int]) -> list[Any]:
    """Return each call's own part of a run over so many rows per call, in memory of its own.

    Raises: PluginFailed when a tensor's dimension 0 is not the batch.
    """
    if len(rows) == 1:
        return [structure.build(answer.value, [arena.owned(tensor) for tensor in answer.tensors])]
    total = sum(rows)
    for tensor in answer.tensors:
        if not tensor.ndim or tensor.shape[0] != total:
            raise PluginFailed(
                f"`{name}` returned a tensor of shape {list(tensor.shape)} for a batch of {total} rows: "
                "its dimension 0 must be the batch",
                hint="declare outputs without -1 at dimension 0, so that calls are not batched",
                plugin=name,
            )
    results, start = [], 0
    for count in rows:
        pieces = [arena.owned(tensor.narrow(0, start, count)) for tensor in answer.tensors]
        results.append(structure.build(answer.value, pieces))
        start += count
    return results

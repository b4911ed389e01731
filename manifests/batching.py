"""Batch policy as values. Decides nothing about a queue."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from manifests.errors import UsageError

DEFAULT_MAX_BATCH_SIZE = 32
DEFAULT_MAX_LATENCY_MS = 100
E = TypeVar("E", bound=StrEnum)
_BOUNDS = {"max_batch_size": (1, 65536), "max_latency_ms": (1, 600_000)}


class BatchMode(StrEnum):
    ADAPTIVE = "adaptive"
    STATIC = "static"
    NONE = "none"


class Objective(StrEnum):
    LATENCY = "latency"
    EFFICIENCY = "efficiency"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPolicy:
    """How calls may share one run: mode, items in a batch at most, milliseconds that a call may wait, and the aim."""

    mode: BatchMode
    max_batch_size: int = DEFAULT_MAX_BATCH_SIZE
    max_latency_ms: int = DEFAULT_MAX_LATENCY_MS
    objective: Objective = Objective.LATENCY

    @classmethod
    def from_value(cls, value: Any) -> "BatchPolicy":
        """Read a mode word or a table with `mode`, `max_batch_size`, `max_latency_ms`, `objective`.

        Raises: UsageError naming the member that is wrong.
        """
        if isinstance(value, str):
            return cls(mode=_member(BatchMode, value, "batch_policy"))
        if not isinstance(value, dict) or "mode" not in value:
            raise UsageError("batch_policy is `adaptive`, `static`, `none`, or a table with `mode`")
        if unknown := sorted(set(map(str, value)) - {"mode", "max_batch_size", "max_latency_ms", "objective"}):
            raise UsageError(f"batch_policy has the unknown member {unknown[0][:40]!r}")
        numbers = {name: _bounded(name, value[name]) for name in _BOUNDS if name in value}
        return cls(
            mode=_member(BatchMode, value["mode"], "batch_policy.mode"),
            objective=_member(Objective, value.get("objective", Objective.LATENCY), "batch_policy.objective"),
            **numbers,
        )

    def to_value(self) -> str | dict[str, Any]:
        """Return the shortest form that reads back as this policy."""
        if self == BatchPolicy(mode=self.mode):
            return self.mode.value
        return {
            "mode": self.mode.value,
            "max_batch_size": self.max_batch_size,
            "max_latency_ms": self.max_latency_ms,
            "objective": self.objective.value,
        }


def _member(kind: type[E], value: Any, path: str) -> E:
    try:
        return kind(value)
    except ValueError as error:
        allowed = ", ".join(f"`{member.value}`" for member in kind)
        raise UsageError(f"{path} is {str(value)[:40]!r}, not one of {allowed}") from error


def _bounded(name: str, value: Any) -> int:
    low, high = _BOUNDS[name]
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise UsageError(f"batch_policy.{name} is {str(value)[:40]!r}, not a whole number from {low} to {high}")
    return value

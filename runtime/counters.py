"""What an instance has done so far, as numbers. Bounded: the last thousand calls give the percentiles."""

from collections import Counter, deque
from typing import Any

WINDOW = 1024


class Counters:
    """Counts calls and batches. The owner guards it with a lock."""

    def __init__(self) -> None:
        self.calls = 0
        self.batches = 0
        self.errors = 0
        self.restarts = 0
        self._sizes: Counter[int] = Counter()
        self._reasons: Counter[str] = Counter()
        self._queue_seconds = 0.0
        self._compute_seconds = 0.0
        self._queue_ms: deque[float] = deque(maxlen=WINDOW)
        self._compute_ms: deque[float] = deque(maxlen=WINDOW)

    def sealed(self, reason: str, waits: list[float]) -> None:
        self._reasons[reason] += 1
        self._queue_seconds += sum(waits)
        self._queue_ms.extend(wait * 1000 for wait in waits)

    def ran(self, calls: int, compute_seconds: float) -> None:
        self.batches += 1
        self._sizes[calls] += 1
        self._compute_seconds += compute_seconds
        self._compute_ms.append(compute_seconds * 1000)

    def to_dict(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "batches": self.batches,
            "batch_sizes": dict(sorted(self._sizes.items())),
            "seal_reasons": dict(sorted(self._reasons.items())),
            "errors": self.errors,
            "restarts": self.restarts,
            "queue_seconds": self._queue_seconds,
            "compute_seconds": self._compute_seconds,
            "queue_ms": _percentiles(self._queue_ms),
            "compute_ms": _percentiles(self._compute_ms),
        }


def _percentiles(values: "deque[float]") -> dict[str, float | None]:
    ordered = sorted(values)
    if not ordered:
        return {"p50": None, "p99": None}
    return {"p50": ordered[len(ordered) // 2], "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]}

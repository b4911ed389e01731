"""How much work a search may do before it ends without an answer. Reads no clock of its own."""

from collections.abc import Callable

from manifests.errors import Undecided

_STEPS_PER_LOOK = 64


class LimitSpent(Undecided):
    """A search ended at its limit, without an answer."""

    default_reason = "unknown:resolution"


def never() -> bool:
    return False


class Budget:
    """Steps that a search may take: decisions and conflicts. `is_late` is asked now and then, and may end it too."""

    def __init__(self, limit: int, is_late: Callable[[], bool] = never) -> None:
        self._limit = limit
        self.is_late = is_late
        self._spent = 0

    def spend(self) -> None:
        """Count one step.

        Raises: LimitSpent at the limit, or when it is late.
        """
        self._spent += 1
        if self._spent > self._limit:
            raise _spent(f"{self._limit} step{'s' * (self._limit != 1)}", self._spent - 1)
        if not self._spent % _STEPS_PER_LOOK and self.is_late():
            raise _spent("the time allowed", self._spent)


def _spent(limit: str, steps: int) -> LimitSpent:
    return LimitSpent(
        f"no resolution was found or ruled out within {limit}",
        hint="narrow the requirements, for example by an exact version of the plugin that has most releases",
        steps=steps,
    )

"""The states of an instance and the crash budget, as tables and values. Does no I/O, reads no clock."""

from dataclasses import dataclass
from enum import StrEnum

from manifests.errors import UsageError

MAX_CRASHES = 3
CRASH_WINDOW_SECONDS = 300.0


class State(StrEnum):
    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    QUARANTINED = "quarantined"
    CLOSED = "closed"


class Event(StrEnum):
    START = "start"
    STARTED = "started"
    CALL = "call"
    ANSWERED = "answered"
    DIED = "died"
    BUDGET_SPENT = "budget spent"
    CLOSE = "close"


_TABLE: dict[State, dict[Event, State]] = {
    State.STOPPED: {Event.START: State.STARTING, Event.BUDGET_SPENT: State.QUARANTINED, Event.CLOSE: State.CLOSED},
    State.STARTING: {Event.STARTED: State.READY, Event.DIED: State.STOPPED, Event.CLOSE: State.CLOSED},
    State.READY: {Event.CALL: State.BUSY, Event.DIED: State.STOPPED, Event.CLOSE: State.CLOSED},
    State.BUSY: {Event.ANSWERED: State.READY, Event.DIED: State.STOPPED, Event.CLOSE: State.CLOSED},
    State.QUARANTINED: {Event.CLOSE: State.CLOSED},
    State.CLOSED: {Event.CLOSE: State.CLOSED, Event.DIED: State.CLOSED},
}


def after(state: State, event: Event) -> State:
    """Return the state that an event leads to.

    Raises: UsageError where the table has no such step.
    """
    following = _TABLE[state].get(event)
    if following is None:
        raise UsageError(f"an instance that is {state} cannot take the event `{event}`")
    return following


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashBudget:
    """When the worker last died, oldest first; three times within five minutes is too often."""

    crashes: tuple[float, ...] = ()

    def with_crash(self, now: float) -> "CrashBudget":
        recent = tuple(at for at in self.crashes if now - at < CRASH_WINDOW_SECONDS)
        return CrashBudget(crashes=(*recent, now)[-MAX_CRASHES:])

    def is_spent(self, now: float) -> bool:
        return sum(now - at < CRASH_WINDOW_SECONDS for at in self.crashes) >= MAX_CRASHES

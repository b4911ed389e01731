"""States and crash budget, on a clock that the test holds."""

import pytest

from manifests.errors import UsageError
from runtime.lifecycle import CrashBudget, Event, State, after


def run(*events: Event) -> State:
    state = State.STOPPED
    for event in events:
        state = after(state, event)
    return state


def test_a_worker_starts_answers_and_is_ready_again() -> None:
    assert run(Event.START, Event.STARTED, Event.CALL, Event.ANSWERED) is State.READY


def test_a_worker_that_dies_in_a_call_can_be_started_again() -> None:
    assert run(Event.START, Event.STARTED, Event.CALL, Event.DIED, Event.START) is State.STARTING


def test_quarantine_ends_only_by_closing() -> None:
    allowed = [event for event in Event if _is_allowed(State.QUARANTINED, event)]

    assert allowed == [Event.CLOSE]


@pytest.mark.parametrize("state", list(State))
def test_every_state_can_be_closed(state: State) -> None:
    assert after(state, Event.CLOSE) is State.CLOSED


def test_a_step_that_the_table_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError) as refusal:
        after(State.STOPPED, Event.CALL)

    assert refusal.value.message == "an instance that is stopped cannot take the event `call`"


def test_three_crashes_within_five_minutes_spend_the_budget() -> None:
    budget = CrashBudget().with_crash(0).with_crash(150)

    assert not budget.is_spent(150)
    assert budget.with_crash(299).is_spent(299)


def test_crashes_older_than_five_minutes_no_longer_count() -> None:
    budget = CrashBudget().with_crash(0).with_crash(150).with_crash(301)

    assert not budget.is_spent(301)
    assert budget.with_crash(302).is_spent(302)


def _is_allowed(state: State, event: Event) -> bool:
    try:
        after(state, event)
    except UsageError:
        return False
    return True

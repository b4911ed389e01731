"""SIGKILL at random instants of each command that changes a store: the next one finds it whole, and cleans up."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.kills import BROKEN, kill, kinds

pytestmark = pytest.mark.e2e

KILLS = 3
"""Of each kind; `python -m benchmarks.kills` does three hundred."""
AT_ONCE = 3


def test_a_kill_at_any_instant_leaves_a_whole_state_and_the_next_command_cleans_up(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    with kinds(tmp_path) as prepared, ThreadPoolExecutor(AT_ONCE) as pool:
        trials = [(kind, number, random.Random(chance.random())) for kind in prepared for number in range(KILLS)]
        outcomes = list(pool.map(lambda trial: kill(*trial), trials))

    assert [outcome for outcome in outcomes if outcome.amiss] == [], f"seed {seed}"
    assert BROKEN not in {outcome.found for outcome in outcomes}
    at_work = Counter(outcome.kind for outcome in outcomes if outcome.was_at_work)
    assert at_work, "no instant fell into the middle of a command"

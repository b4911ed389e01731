"""kill -9, Ctrl-C or a full disk in the middle of a command: the store is as before or as after, never between."""

import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.commands import SECONDS, SPM, Answer, Client
from tests.e2e.snapshots import Snapshot, snapshot
from tests.fakes.tampering_proxy import TamperingProxy, delay

pytestmark = pytest.mark.e2e

INSTANTS = 10
AT_ONCE = 3
SLOWNESS = 0.03
"""Seconds by which the proxy delays each answer, so that an install has a middle."""
INSTALL = ("install", "alpha")
UNINSTALL = ("uninstall", "beta")
OLD = {"beta": "1.0.0"}
NEW = {"alpha": "2.0.0", "beta": "1.0.0"}


@pytest.fixture
def base(wired: Client) -> Client:
    """Give a machine behind the proxy that has `beta` 1.0.0; the killed commands work on copies of it."""
    wired.spm("install", "beta==1.0.0").ok()
    return wired


def whole(client: Client) -> dict[str, str]:
    """Return what is installed, each plugin of it found sound by the next command."""
    plugins = client.spm("verify").document["plugins"]
    assert {plugin["status"] for plugin in plugins} <= {"verified"}
    return {plugin["name"]: plugin["version"] for plugin in plugins}


def kept(client: Client) -> Snapshot:
    """Return the store but for what differs with the number of tries: generation numbers and their times."""
    seen = snapshot(client.store)
    return {path: value for path, value in seen.items() if path != "current" and not path.startswith("generations/")}


def struck_at_changes(base: Client, kind: str, command: tuple[str, ...]) -> tuple[list[Answer], list[Client]]:
    """Strike the command at every third change in the store and at the last two, each time on a new copy.

    `tests/spm_client/workflows/test_killed_at_each_change.py` leaves none out; `benchmarks/kills.py` goes by the clock.
    Returns the answers, and the machines, the last of which was left in peace.
    """
    living = base.copy("living")
    undisturbed = living.struck("list", 0, *command)
    assert undisturbed.code == 0
    count = len(undisturbed.err.splitlines())
    machines = {at: base.copy(str(at)) for at in sorted({*range(1, count + 1, 3), count - 1, count})}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(lambda at: machines[at].struck(kind, at, *command), machines))
    return answers, [*machines.values(), living]


def found_on(machines: list[Client]) -> list[dict[str, str]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(whole, machines))


def require_recovered(machines: list[Client], command: tuple[str, ...]) -> None:
    """Assert that the command, run again, leaves just what it leaves where it was never killed."""
    *dead, living = machines
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for answer in pool.map(lambda client: client.spm(*command), dead):
            answer.ok()
    for client in dead:
        assert kept(client) == kept(living)


def test_an_install_killed_before_its_changes_leaves_the_old_or_the_new_state(base: Client) -> None:
    answers, machines = struck_at_changes(base, "kill", INSTALL)

    found = found_on(machines[:-1])
    assert {answer.code for answer in answers} == {-signal.SIGKILL}
    # One change, the commit, turns the old into the new; no state lies between, and none turns back.
    before = found.count(OLD)
    assert found == [OLD] * before + [NEW] * (len(found) - before)
    assert 0 < before < len(found)
    require_recovered(machines, INSTALL)


def test_an_uninstall_killed_before_its_changes_leaves_the_old_or_the_new_state(base: Client) -> None:
    _, machines = struck_at_changes(base, "kill", UNINSTALL)

    found = found_on(machines[:-1])
    before = found.count(OLD)
    assert found == [OLD] * before + [{}] * (len(found) - before)
    assert 0 < before < len(found)
    # What a dead uninstall has left lies in nobody's way, and the next install sweeps its scratch up.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for answer in pool.map(lambda client: client.spm("install", "gamma", "beta==1.0.0"), machines):
            answer.ok()
    assert found_on(machines) == [{"beta": "1.0.0", "gamma": "1.0.0"}] * len(machines)
    assert not any((client.store / "tmp").exists() for client in machines)


def test_an_install_that_runs_out_of_disk_at_a_change_changes_nothing_and_says_so(client: Client) -> None:
    before = snapshot(client.store)

    answers, machines = struck_at_changes(client, "disk-full", INSTALL)

    refused = [(answer, machine) for answer, machine in zip(answers, machines, strict=False) if answer.code]
    for answer, machine in refused:
        assert answer.err == (
            f"error[limit:disk]: the disk under `{machine.store}` is full; nothing was changed\n"
            "  hint: free some space there and run the command again\n"
        )
        assert (answer.code, snapshot(machine.store)) == (41, before)
    assert len(refused) > len(answers) // 2
    # Where all that had to be made was made before, the command succeeds.
    succeeded = machines[len(refused) :]
    assert {tuple(kept(machine)) for machine in succeeded} == {tuple(kept(machines[-1]))}


def test_an_interrupted_install_changes_all_or_nothing_and_sweeps_up(base: Client) -> None:
    before = snapshot(base.store)

    answers, machines = struck_at_changes(base, "interrupt", INSTALL)

    for answer, machine in zip(answers, machines, strict=False):
        assert answer.code in (0, 130)
        if answer.code == 130:
            assert answer.err == "\ninterrupted; what is installed is whole, and `spm list` shows it\n"
        assert snapshot(machine.store) == before or whole(machine) == NEW


def test_an_install_killed_at_any_time_leaves_the_old_or_the_new_state(base: Client, wire: TamperingProxy) -> None:
    wire.alter(".*", delay(SLOWNESS))
    living = base.copy("living")
    began = time.monotonic()
    living.spm(*INSTALL).ok()
    duration = time.monotonic() - began

    def kill(instant: int) -> tuple[Client, bool]:
        client = base.copy(str(instant))
        process = subprocess.Popen(
            [SPM, *INSTALL], env=client.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(duration * (instant + 1) / INSTANTS)
        process.kill()
        process.wait(SECONDS)
        return client, (client.store / "tmp").exists()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        deaths = list(pool.map(kill, range(INSTANTS)))
        machines = [client for client, _ in deaths]
        found = list(pool.map(whole, machines))

    assert all(state in (OLD, NEW) for state in found)
    assert any(was_at_work for _, was_at_work in deaths), "no instant fell into the middle of the install"
    require_recovered([*machines, living], INSTALL)

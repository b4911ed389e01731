"""A host that runs a plugin keeps its tree: uninstall is refused, and nothing else disturbs the host."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.commands import FAULTS, SPM, Answer, Client, environment, run
from tests.e2e.snapshots import unchanged

pytestmark = pytest.mark.e2e

# The first call is answered by a worker that has read its tree; the second start reads the tree again.
HOST = """
import os, sys, signal, torch
from runtime import Host

x = torch.ones(1, 2)
with Host(sys.argv[1]) as host:
    plugin = host.load(sys.argv[2])
    for line in sys.stdin:
        if line == "restart\\n":
            os.kill(plugin.stats()["pid"], signal.SIGKILL)
            while plugin.stats()["state"] == "ready":
                pass
        print(plugin(x).tolist(), flush=True)
"""


class RunningHost:
    """A host in a process of its own, with one plugin loaded."""

    def __init__(self, client: Client, plugin: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, str(client.store), plugin],
            env=environment(client.home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, how: str = "call") -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{how}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    @property
    def shown(self) -> str:
        return f"process {self.process.pid} ({Path(f'/proc/{self.process.pid}/comm').read_text().strip()})"


@contextmanager
def running(client: Client, plugin: str, answer: str) -> Iterator[RunningHost]:
    host = RunningHost(client, plugin)
    try:
        assert host.ask() == answer
        yield host
    finally:
        host.process.kill()
        host.process.communicate()


def test_what_a_host_runs_is_neither_uninstalled_nor_freed_nor_disturbed(client: Client) -> None:
    client.spm("install", "alpha==1.0.0", "heavy").ok()
    with running(client, "alpha", "[[3.0, 3.0]]") as host:
        shown = host.shown
        with unchanged(client.home):
            refusal = client.spm("uninstall", "alpha")
        client.spm("uninstall", "heavy").ok()
        client.spm("install", "alpha").ok()
        freed = client.spm("gc", "--keep", "1")
        answer = host.ask("restart")

    context = refusal.refused(
        42,
        "in-use",
        f"`alpha` 1.0.0, `beta` 1.1.0 are run by {shown}; nothing was changed",
        "end that host, or close what it has loaded, and run the command again",
    )
    assert context == {"plugins": ["`alpha` 1.0.0", "`beta` 1.1.0"], "processes": [host.process.pid]}
    freed.ok(f"note: `alpha` 1.0.0 stays, it is run by {shown}\n")
    assert freed.document["in_use"] == [{"release": "alpha 1.0.0", "processes": [host.process.pid]}]
    assert (freed.document["releases"], freed.document["blobs"]) == ([], 3)
    # The worker that was killed has been started anew, from the tree of a release that is installed no more.
    assert answer == "[[3.0, 3.0]]"
    # The dead host has left no mark.
    assert client.spm("gc", "--keep", "1").ok().document["releases"] == ["alpha 1.0.0"]
    assert client.spm("uninstall", "alpha").ok().document["removed"]
    assert list((client.store / "plugins").iterdir()) == []


def test_a_damaged_plugin_is_not_repaired_under_a_host_that_runs_it(client: Client) -> None:
    client.spm("install", "gamma").ok()
    with running(client, "gamma", "[[3.0, 3.0]]") as host:
        shown = host.shown
        (client.tree("gamma") / "extra").touch()
        with unchanged(client.home):
            refusals = [client.spm("install", "gamma==1.0.0"), client.spm("uninstall", "gamma")]

    for refusal in refusals:
        refusal.refused(
            42,
            "in-use",
            f"`gamma` 1.0.0 is run by {shown}; nothing was changed",
            "end that host, or close what it has loaded, and run the command again",
        )
    client.spm("install", "gamma==1.0.0").ok()
    client.require_sound()


def without_locks(client: Client, error: str, *arguments: str) -> Answer:
    """Run `spm` on a disk whose file locks fail like this."""
    return run([SPM, *arguments, "--json"], client.environment | {"PYTHONPATH": str(FAULTS), "NO_FLOCK": error})


@pytest.mark.parametrize("error", ["ENOSYS", "EBADF", "ENOLCK"])
def test_on_a_disk_without_locks_a_person_says_that_no_host_runs_it(client: Client, error: str) -> None:
    why = os.strerror(getattr(errno, error))
    assert without_locks(client, error, "install", "alpha==1.0.0", "gamma").ok().document["generation"] == 1
    without_locks(client, error, "install", "alpha").ok()

    with unchanged(client.home):
        uninstall = without_locks(client, error, "uninstall", "gamma")
        gc = without_locks(client, error, "gc", "--keep", "1")

    for refusal, release in ((uninstall, "`gamma` 1.0.0"), (gc, "`alpha` 1.0.0")):
        refusal.refused(
            3,
            "unknown:in-use",
            f"whether a host runs {release} cannot be told: the disk under `{client.store}` has no file locks ({why}); "
            "nothing was changed",
            "if you know that none runs it, run the command again with `--not-running`",
        )
    without_locks(client, error, "rollback").ok()
    without_locks(client, error, "rollback").ok()
    without_locks(client, error, "uninstall", "gamma", "--not-running").ok()
    freed = without_locks(client, error, "gc", "--keep", "1", "--not-running").ok().document
    assert (freed["releases"], client.installed()) == (["alpha 1.0.0"], {"alpha": "2.0.0", "beta": "1.1.0"})
    client.require_sound()


def test_a_host_runs_plugins_from_a_disk_without_locks(client: Client, tmp_path: Path) -> None:
    client.spm("install", "gamma").ok()
    (tmp_path / "x.json").write_text("[[1.0, 2.0]]")

    without_locks(client, "ENOLCK", "run", "gamma", "--input", str(tmp_path / "x.json")).ok()

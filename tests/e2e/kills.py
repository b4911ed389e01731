"""Commands killed at random instants of their work, and what the next command finds. Makes no claims."""

import random
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from keys.keyring import LoaderConf
from runtime.generation import current_generation
from runtime.installed import StoreTrust, open_entry
from tests.e2e.commands import SECONDS, SPM, Answer, Client
from tests.e2e.snapshots import Snapshot, snapshot
from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry

Installed = Mapping[str, str]
POLL_SECONDS = 0.001
SLOWNESS = 1.5
"""How much longer a command may take among others than it took alone."""
OLD, NEW, BROKEN = "old", "new", "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A command, the machine that it is killed on, what is installed before and after it, and how long it works."""

    name: str
    command: tuple[str, ...]
    machine: Client
    old: Installed
    new: Installed
    seconds: float
    """From the first change in the store to the end."""
    final: Snapshot
    """What lies in the store after the command and a `gc`, where nothing was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a kill left: the state found, whether the command was at work, and what was amiss at the end, in words."""

    kind: str
    found: str
    was_at_work: bool
    amiss: str


@contextmanager
def kinds(folder: Path) -> Iterator[tuple[Kind, ...]]:
    """Serve a registry, and prepare a machine for each kind of command."""
    registry, base = SimulatedRegistry(), Client(folder / "base")
    registry.publish("beta")
    registry.publish("gamma")
    registry.publish("alpha", requires=["beta"])
    with ServedFiles(registry.file) as served:
        base.trust(registry.loader_conf(served.url))
        base.spm("install", "gamma").ok()
        one = base.copy("one")
        one.spm("install", "alpha").ok()
        registry.publish("alpha", "2.0.0", requires=["beta"])
        none = one.copy("none")
        none.spm("uninstall", "alpha", "gamma").ok()
        two = one.copy("two")
        two.spm("install", "alpha").ok()
        two.spm("uninstall", "gamma").ok()
        first, second = {"alpha": "1.0.0", "beta": "1.0.0"}, {"alpha": "2.0.0", "beta": "1.0.0"}
        gamma = {"gamma": "1.0.0"}
        yield (
            _kind("install", ("install", "alpha"), base, gamma, gamma | second),
            _kind("upgrade", ("install", "alpha"), one, gamma | first, gamma | second),
            _kind("uninstall", ("uninstall", "alpha"), one, gamma | first, gamma),
            _kind("rollback", ("rollback",), none, {}, gamma | first),
            _kind("gc", ("gc", "--keep", "1"), two, second, second),
        )


def _kind(name: str, command: tuple[str, ...], machine: Client, old: Installed, new: Installed) -> Kind:
    living = machine.copy(f"{name}-living")
    with _started(living, command) as process:
        began = _wait_for_work(living, process)
        assert process.wait(SECONDS) == 0
    seconds = time.monotonic() - began
    assert installed(living) == new
    living.spm("gc", "--keep", "1").ok()
    return Kind(name=name, command=command, machine=machine, old=old, new=new, seconds=seconds, final=_content(living))


def kill(kind: Kind, number: int, chance: random.Random) -> Outcome:
    """Kill the command at a random instant of its work, on a machine of its own; see what is there, and go on."""
    client = kind.machine.copy(f"{kind.name}-{number}")
    with _started(client, kind.command) as process:
        _wait_for_work(client, process)
        time.sleep(chance.uniform(0, SLOWNESS * kind.seconds))
        process.kill()
        process.wait(SECONDS)
    was_at_work = (client.store / "tmp").exists()
    try:
        state = installed(client)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        return Outcome(kind=kind.name, found=BROKEN, was_at_work=was_at_work, amiss=repr(error))
    found = NEW if state == kind.new else OLD if state == kind.old else BROKEN
    amiss = "" if found != BROKEN else str(state)
    outcome = Outcome(kind=kind.name, found=found, was_at_work=was_at_work, amiss=amiss or _go_on(kind, client, found))
    shutil.rmtree(client.home)
    return outcome


def installed(client: Client) -> dict[str, str]:
    """Return what is installed, each plugin verified whole, by what the host itself does at a load."""
    generation = current_generation(client.store)
    trust = StoreTrust(client.store, LoaderConf.read(client.conf), datetime.now(UTC))
    plugins = [open_entry(client.store, entry, trust.of(entry)).manifest for entry in generation.plugins]
    return {manifest.name: str(manifest.version) for manifest in plugins}


def _go_on(kind: Kind, client: Client, found: str) -> str:
    """Run the command again where it had not done its work, then a `gc`; return what is then amiss."""
    answers: list[Answer] = []
    # A commit that `current` does not follow yet is finished by the next command, whatever that is.
    if found == OLD and not _is_committed(kind, client):
        answers.append(client.spm(*kind.command))
    answers.append(client.spm("gc", "--keep", "1"))
    for answer in answers:
        if answer.code:
            return answer.err
    if (state := installed(client)) != kind.new:
        return f"afterwards {state} was installed"
    if (client.store / "tmp").exists():
        return "`tmp` was left"
    return "" if _content(client) == kind.final else "other files than without a kill were left"


def _is_committed(kind: Kind, client: Client) -> bool:
    def newest(store: Path) -> str:
        return max(path.name for path in (store / "generations").iterdir())

    return kind.old != kind.new and newest(client.store) != newest(kind.machine.store)


def _content(client: Client) -> Snapshot:
    """Return what is kept of plugins; when folders were made and trust was refreshed differs by the run."""
    seen = snapshot(client.store)
    rooms = ("plugins/", "manifests/", "blobs/", "receipts/", "partial/")
    return {path: value for path, value in seen.items() if path.startswith(rooms) and value[0] != "folder"}


def _started(client: Client, command: tuple[str, ...]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [SPM, *command], env=client.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _wait_for_work(client: Client, process: "subprocess.Popen[bytes]") -> float:
    """Wait for the command's first change in the store, and return when that was."""
    while not (client.store / "tmp").exists() and process.poll() is None:
        time.sleep(POLL_SECONDS)
    return time.monotonic()

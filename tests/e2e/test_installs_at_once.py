"""Several commands in one store at once: all succeed, and what stands is the work of all."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.e2e.commands import SECONDS, SPM, Client
from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry

pytestmark = pytest.mark.e2e


def at_once(client: Client, commands: Sequence[tuple[str, ...]]) -> None:
    """Start all commands, wait for all and assert that each succeeded without a word."""
    started = [
        subprocess.Popen(
            [SPM, *command], env=client.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    said = [process.communicate(timeout=len(commands) * SECONDS)[1] for process in started]
    assert [(process.returncode, words) for process, words in zip(started, said, strict=True)] == [(0, "")] * len(said)


def numbers(client: Client) -> list[str]:
    return sorted(path.name for path in (client.store / "generations").iterdir())


def test_installs_of_overlapping_plugins_at_once_all_stand_in_the_end(client: Client) -> None:
    at_once(
        client,
        [
            ("install", "alpha"),
            ("install", "beta"),
            ("install", "gamma", "alpha"),
            ("install", "gamma"),
            ("install", "heavy"),
            ("install", "free", "beta"),
        ],
    )

    entries = {entry["name"]: entry for entry in client.spm("list").ok().document["plugins"]}
    assert {name: entry["version"] for name, entry in entries.items()} == {
        "alpha": "2.0.0",
        "beta": "1.1.0",
        "free": "1.0.0",
        "gamma": "1.0.0",
        "heavy": "1.0.0",
    }
    assert {entry["requested"] for entry in entries.values()} == {True}
    client.require_sound()
    assert numbers(client) == [f"{number:06d}.json" for number in range(1, len(numbers(client)) + 1)]
    assert (client.store / "current").read_text() == f"{numbers(client)[-1][:6]}\n"
    assert not (client.store / "tmp").exists()


def test_the_same_install_many_times_at_once_makes_one_generation(client: Client) -> None:
    at_once(client, [("install", "alpha")] * 4)

    assert client.installed() == {"alpha": "2.0.0", "beta": "1.1.0"}
    assert numbers(client) == ["000001.json"]
    client.require_sound()


def test_an_install_and_an_uninstall_at_once_both_stand(client: Client) -> None:
    client.spm("install", "gamma", "delta==1.0.0").ok()

    at_once(client, [("install", "alpha"), ("uninstall", "gamma"), ("install", "free"), ("uninstall", "delta")])

    assert client.installed() == {"alpha": "2.0.0", "beta": "1.1.0", "free": "1.0.0"}
    client.require_sound()
    client.spm("install", "gamma").ok()
    client.require_sound()


def test_thirty_two_commands_on_overlapping_sets_all_stand_and_gc_frees_what_is_left(tmp_path: Path) -> None:
    registry, client = SimulatedRegistry(), Client(tmp_path)
    registry.publish("base")
    for number in range(8):
        registry.publish(f"leaf-{number}", requires=["base"])
        registry.publish(f"old-{number}")
    with ServedFiles(registry.file) as served:
        client.trust(registry.loader_conf(served.url))
        client.spm("install", *(f"old-{number}" for number in range(8))).ok()
        installs = [("install", f"leaf-{number % 8}", f"leaf-{number // 3}") for number in range(24)]
        uninstalls = [("uninstall", f"old-{number}") for number in range(8)]

        at_once(client, [command for four in zip(*[iter(installs)] * 3, uninstalls, strict=True) for command in four])

    assert client.installed() == {"base": "1.0.0"} | {f"leaf-{number}": "1.0.0" for number in range(8)}
    client.require_sound()
    assert client.spm("gc", "--keep", "1").ok().document["is_complete"]
    assert sorted(path.name for path in (client.store / "plugins").iterdir()) == sorted(client.installed())
    client.require_sound()
    assert not (client.store / "tmp").exists()

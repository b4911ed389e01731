"""Several commands in one store at once: all succeed, and what stands is the work of all."""

import subprocess
from collections.abc import Sequence

import pytest

from tests.e2e.commands import SECONDS, SPM, Client

pytestmark = pytest.mark.e2e


def at_once(client: Client, commands: Sequence[tuple[str, ...]]) -> None:
    """Start all commands, wait for all and assert that each succeeded without a word."""
    started = [
        subprocess.Popen(
            [SPM, *command], env=client.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    said = [process.communicate(timeout=SECONDS)[1] for process in started]
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

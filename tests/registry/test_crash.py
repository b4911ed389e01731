"""Killed at any moment, a registry holds the old or the new release, whole, and takes the publish again."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from manifests.index import Shard
from manifests.manifest import Manifest
from registry.services.signed_index import moment
from tests.registry.team import Clock, Team, digest, join_team, manifest_of
from tests.registry.tuf_client import TufClient

pytestmark = pytest.mark.e2e

PUBLISHER = """
import sys
from pathlib import Path
from tests.registry.team import Clock, join_team
from tests.registry.test_crash import release
team = join_team(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Clock())
print("ready", flush=True)
for number in range(int(sys.argv[4]), 10_000):
    manifest, files = release(number)
    assert team.publish(team.admin, manifest, files=files).status_code in (200, 201)
    print(number, flush=True)
"""


def release(number: int) -> tuple[Manifest, dict[str, bytes]]:
    files = {f"file_{place}.bin": random.Random(number * 10 + place).randbytes(20_000) for place in range(4)}
    return manifest_of(files, version=f"1.0.{number}"), files


def _signed_shard(team: Team) -> bytes | None:
    """Return what a client that trusts the root alone is led to."""

    def ask(path: str) -> tuple[int, bytes]:
        answer = team.ask("GET", path)
        return answer.status_code, answer.data

    with TemporaryDirectory() as folder:
        root = team.ask("GET", "/v1/tuf/1.root.json").data
        return TufClient(Path(folder), ask, root, moment(team.clock())).target("index/audio-encoder.json")


def _published(team: Team) -> int:
    """Check that all that is listed is signed and can be read whole; return how many releases that is."""
    answer = team.ask("GET", "/v1/index/audio-encoder.json")
    signed = _signed_shard(team)
    if answer.status_code == 404:
        assert signed is None
        return 0
    assert signed == answer.data
    shard = Shard.from_bytes(answer.data)
    for entry in shard.releases:
        (variant,) = entry.variants
        data = team.ask("GET", f"/v1/manifests/{variant.manifest_sha256}").data
        assert digest(data) == variant.manifest_sha256
        for file in Manifest.from_bytes(data).files:
            assert digest(team.ask("GET", f"/v1/blobs/{file.sha256}").data) == file.sha256
    return len(shard.releases)


def _publish_until_killed(team: Team, first: int, seconds: float) -> int:
    """Publish in another process, kill it, and return how many publishes it saw answered."""
    arguments = [team.root, team.ext.directory, team.admin, first]
    process = subprocess.Popen(
        [sys.executable, "-c", PUBLISHER, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    answered = process.communicate(timeout=20)[0].splitlines()
    return first + len(answered)


def test_a_killed_publish_is_there_whole_or_not_at_all(team: Team, tmp_path: Path) -> None:
    moments = random.Random(4)
    answered = 0

    for _ in range(5):
        answered = _publish_until_killed(team, answered, moments.uniform(0.01, 0.25))
        reopened = join_team(team.root, Path(team.ext.directory), team.admin, Clock())
        published = _published(reopened)
        assert answered <= published <= answered + 1
        manifest, files = release(answered)
        again = reopened.submit(reopened.admin, manifest)
        if again.status_code == 201:
            assert reopened.publish(reopened.admin, manifest, files=files).status_code == 201
        assert _published(reopened) == answered + 1
        answered += 1
        reopened.site.database.close()

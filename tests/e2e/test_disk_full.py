"""A full disk: the store is as before, and with some space the same command works."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.commands import SPM, Answer, Client, run
from tests.e2e.snapshots import snapshot
from tests.e2e.team import Team

pytestmark = pytest.mark.e2e

DISK = 8 << 20


class SmallDisk:
    """A store on a disk of 8 MiB that only a mount namespace of its own sees."""

    def __init__(self, client: Client) -> None:
        self._client = client
        mount = f"mount -t tmpfs -o size={DISK},mode=755 small '{client.store}' && echo mounted && exec cat"
        conf = client.conf.read_text()
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mount],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        self.is_mounted = self._holder.stdout.readline() == "mounted\n"
        if self.is_mounted:
            (self.store / "loader.conf").write_text(conf)

    @property
    def why_not(self) -> str:
        return self._holder.communicate()[1].strip()

    @property
    def store(self) -> Path:
        """Return the store as the namespace sees it."""
        return Path(f"/proc/{self._holder.pid}/root{self._client.store}")

    def spm(self, *arguments: str) -> Answer:
        enter = ["nsenter", "--mount", f"--target={self._holder.pid}", SPM, *arguments, "--json"]
        return run(enter, self._client.environment)

    def close(self) -> None:
        self._holder.communicate()


@pytest.fixture
def disk(client: Client) -> Iterator[SmallDisk]:
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("nsenter"):
        pytest.skip("mounting a small disk needs root, unshare and nsenter")
    small = SmallDisk(client)
    if not small.is_mounted:
        pytest.skip(f"a small disk cannot be mounted here: {small.why_not}")
    yield small
    small.close()


def test_an_install_on_a_full_disk_changes_nothing_and_works_once_there_is_space(
    team: Team, client: Client, disk: SmallDisk
) -> None:
    disk.spm("install", "beta").ok()
    filler = disk.store / "filler"
    filler.write_bytes(bytes(6 << 20))
    before = snapshot(disk.store)

    refusal = disk.spm("install", "heavy")

    refusal.refused(
        41,
        "limit:disk",
        f"the disk under `{client.store}` is full; nothing was changed",
        "free some space there and run the command again",
    )
    assert snapshot(disk.store) == before
    filler.unlink()
    disk.spm("install", "heavy").ok()
    assert [plugin["name"] for plugin in disk.spm("list").ok().document["plugins"]] == ["beta", "heavy"]
    disk.spm("verify").ok("verified   beta 1.1.0\nverified   heavy 1.0.0\n")


def fill(path: Path) -> None:
    """Write until the disk has not a byte left."""
    with path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def test_a_disk_without_a_single_free_byte_changes_nothing(client: Client, disk: SmallDisk) -> None:
    disk.spm("install", "beta").ok()
    filler = disk.store / "filler"
    with pytest.raises(OSError, match="No space left"):
        fill(filler)
    before = snapshot(disk.store)

    refusal = disk.spm("install", "alpha")
    removal = disk.spm("uninstall", "beta")

    for answer in (refusal, removal):
        answer.refused(
            41,
            "limit:disk",
            f"the disk under `{client.store}` is full; nothing was changed",
            "free some space there and run the command again",
        )
    assert snapshot(disk.store) == before
    filler.unlink()
    disk.spm("install", "alpha").ok()
    disk.spm("verify").ok("verified   alpha 2.0.0\nverified   beta 1.1.0\n")

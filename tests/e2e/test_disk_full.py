"""A full disk: the store is as before, and with some space the same command works."""

from collections.abc import Iterator

import pytest

from tests.e2e.commands import Client
from tests.e2e.mounts import Mounted, fill, mounted
from tests.e2e.snapshots import snapshot
from tests.e2e.team import Team

pytestmark = pytest.mark.e2e

DISK = 8 << 20


@pytest.fixture
def disk(client: Client) -> Iterator[Mounted]:
    """Give a machine whose store is on a disk of 8 MiB."""
    conf = client.conf.read_text()
    with mounted(client, f"mount -t tmpfs -o size={DISK},mode=755 small {{}}") as small:
        (small.store / "loader.conf").write_text(conf)
        yield small


def test_an_install_on_a_full_disk_changes_nothing_and_works_once_there_is_space(
    team: Team, client: Client, disk: Mounted
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


def test_a_disk_without_a_single_free_byte_changes_nothing(client: Client, disk: Mounted) -> None:
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

"""Disks and names that spm does not choose: the right result, or a refusal that says so and changes nothing."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from manifests.parts import FileEntry
from tests.e2e.commands import SPM, Client, run
from tests.e2e.mounts import fill, mounted
from tests.e2e.snapshots import Snapshot, snapshot, unchanged
from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry

pytestmark = pytest.mark.e2e

LONG = "a" * 64
SEGMENT = "s" * 200
DEEP = "/".join(["d"] * 510 + ["x.py"])


@dataclass
class Scene:
    """A registry of `beta`, `gamma` and `sibling`, and a machine that trusts it and has `beta`."""

    registry: SimulatedRegistry
    client: Client
    conf: str


@pytest.fixture(scope="module")
def registry() -> Iterator[tuple[SimulatedRegistry, str]]:
    registry = SimulatedRegistry()
    for name in ("beta", "gamma", "sibling", "sibling-evil", LONG):
        registry.publish(name)
    registry.publish("beta", "2.0.0")
    with ServedFiles(registry.file) as served:
        yield registry, registry.loader_conf(served.url)


@pytest.fixture
def scene(registry: tuple[SimulatedRegistry, str], tmp_path: Path) -> Scene:
    client = Client(tmp_path)
    client.trust(registry[1])
    client.spm("install", "beta==1.0.0").ok()
    return Scene(registry[0], client, registry[1])


def installed(folder: Path) -> Snapshot:
    """Return the store without what says when it was made."""
    return {path: value for path, value in snapshot(folder).items() if not path.startswith("trust")}


def test_blobs_on_another_disk_are_copied_and_all_else_is_as_ever(scene: Scene) -> None:
    scene.client.spm("gc").ok()
    with mounted(scene.client, "mount -t tmpfs -o mode=755 other {}/blobs") as disk:
        disk.spm("install", "gamma").ok()
        disk.spm("uninstall", "gamma").ok()
        assert disk.spm("rollback").ok().document["laid_out"] == ["gamma"]
        disk.spm("verify").ok("verified   beta 1.0.0\nverified   gamma 1.0.0\n")
        disk.spm("uninstall", "gamma").ok()
        freed = disk.spm("gc", "--keep", "1").ok().document
        left = sorted(path.name for path in (disk.store / "blobs").rglob("*") if path.is_file())

        assert (freed["blobs"], freed["releases"], left) == (1, [], [])
        assert not (disk.store / "tmp").exists()


def test_trees_on_another_disk_are_refused_and_nothing_changes(scene: Scene) -> None:
    with mounted(scene.client, "mount -t tmpfs -o mode=755 other {}/plugins") as disk:
        before = snapshot(disk.store)

        refusal = disk.spm("install", "gamma")

        context = refusal.refused(
            41,
            "limit:disks",
            refusal.document["error"]["message"],
            "let all of the store lie on one disk; only its folder `blobs` may be on another",
        )
        assert context["path"].startswith(f"{scene.client.store}/tmp/")
        assert refusal.document["error"]["message"] == (
            f"`{context['path']}` lies on another disk than `{scene.client.store}/tmp`, and spm moves folders into "
            "place at once, which needs one disk; nothing was changed"
        )
        assert snapshot(disk.store) == before


@pytest.mark.parametrize("command", ["install gamma", "uninstall beta", "rollback", "gc"])
def test_a_read_only_store_is_refused_and_can_still_be_read(scene: Scene, command: str) -> None:
    scene.client.spm("install", "gamma").ok()
    with mounted(scene.client, "mount --bind {0} {0}", "mount -o remount,ro,bind {0}") as disk:
        before = snapshot(disk.store)

        refusal = disk.spm(*command.split())

        refusal.refused(
            42,
            "not-writable",
            f"the store `{scene.client.store}` cannot be written: Read-only file system at `{scene.client.store}/tmp`",
            "run as the store's owner, or name another store with `--root`",
        )
        assert snapshot(disk.store) == before
        disk.spm("verify").ok("verified   beta 1.0.0\nverified   gamma 1.0.0\n")
        assert len(disk.spm("rollback", "--list").ok().document["generations"]) == 2
        disk.spm("gc", "--dry-run").ok()


def test_on_a_full_disk_gc_makes_room_and_what_needs_room_is_refused(scene: Scene) -> None:
    scene.client.spm("install", "beta").ok()
    copy = f"cp -a {{0}} {scene.client.home}/kept"
    mount = "mount -t tmpfs -o size=2M,mode=755 small {0}"
    with mounted(scene.client, copy, mount, f"cp -a {scene.client.home}/kept/. {{0}}/") as disk:
        with pytest.raises(OSError, match="No space left"):
            fill(disk.store / "filler")
        before = snapshot(disk.store)

        refusals = [disk.spm("uninstall", "beta"), disk.spm("rollback")]

        for refusal in refusals:
            refusal.refused(
                41,
                "limit:disk",
                f"the disk under `{scene.client.store}` is full; nothing was changed",
                "free some space there and run the command again",
            )
        assert snapshot(disk.store) == before
        freed = disk.spm("gc", "--keep", "1").ok().document
        assert (freed["releases"], freed["blobs"]) == (["beta 1.0.0"], 1)
        disk.spm("uninstall", "beta").ok()


@pytest.mark.parametrize("command", ["install gamma", "rollback", "gc --keep 1"])
def test_with_hardly_a_descriptor_to_open_a_command_succeeds_or_changes_nothing(scene: Scene, command: str) -> None:
    scene.client.spm("install", "beta").ok()
    before = snapshot(scene.client.store)
    told = set()

    for limit in (5, 7, 9, 12):
        words = ["sh", "-c", f'ulimit -n {limit}; exec "$0" "$@"', SPM, *command.split(), "--json"]
        answer = run(words, scene.client.environment)
        if answer.code == 0:
            break
        told.add(answer.code)
        assert installed(scene.client.store) == {
            path: value for path, value in before.items() if not path.startswith("trust")
        }

    assert told <= {1, 3, 41}, "3: a file that cannot be opened is not verified; 1: Python itself cannot start"
    scene.client.spm("verify")
    scene.client.spm("gc").ok()


def test_long_names_and_names_that_begin_alike_are_told_apart(scene: Scene) -> None:
    client = scene.client
    client.spm("install", LONG, "sibling", "sibling-evil").ok()
    client.require_sound()

    client.spm("uninstall", "sibling").ok()

    assert sorted(path.name for path in (client.store / "plugins").iterdir()) == sorted([LONG, "beta", "sibling-evil"])
    client.require_sound()
    client.spm("rollback").ok()
    client.spm("uninstall", "sibling-evil").ok()
    client.spm("gc", "--keep", "1").ok()
    assert client.installed() == {LONG: "1.0.0", "beta": "1.0.0", "sibling": "1.0.0"}
    client.require_sound()


@pytest.mark.parametrize("path", ["/".join([SEGMENT] * 5), DEEP], ids=["long", "deep"])
def test_the_longest_and_the_deepest_path_of_a_manifest_go_the_whole_way(tmp_path: Path, path: str) -> None:
    registry, data = SimulatedRegistry(), b"x = 1\n"
    file = FileEntry(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode="r")
    registry.documents[f"/v1/blobs/{file.sha256}"] = data
    registry.publish("deep", files=(file,))
    client = Client(tmp_path)
    with ServedFiles(registry.file) as served:
        client.trust(registry.loader_conf(served.url))
        client.spm("install", "deep").ok()
    client.require_sound()

    client.spm("uninstall", "deep").ok()
    client.spm("rollback").ok()

    client.require_sound()
    assert client.tree("deep").joinpath(path).read_bytes() == data
    client.spm("uninstall", "deep").ok()
    client.spm("gc", "--keep", "1").ok()
    assert not any((client.store / "plugins").iterdir())


def test_what_somebody_made_read_only_is_removed_all_the_same(scene: Scene) -> None:
    tree = scene.client.tree("beta")
    (tree / "more" / "deep").mkdir(parents=True)
    (tree / "more" / "deep" / "file").touch(mode=0o400)
    (tree / "more" / "deep").chmod(0o500)
    (tree / "more").chmod(0)
    tree.chmod(0o500)

    scene.client.spm("uninstall", "beta").ok()

    assert not tree.exists()
    assert not (scene.client.store / "tmp").exists()


def test_a_file_that_cannot_be_removed_holds_nothing_up_and_goes_when_it_can(scene: Scene) -> None:
    client = scene.client
    (client.tree("beta") / "bound").touch()
    if os.geteuid() or subprocess.run(["chattr", "+i", client.tree("beta") / "bound"], check=False).returncode:
        pytest.skip("making a file immutable needs root and a disk that can")
    try:
        client.spm("uninstall", "beta").ok()
        left = len(list((client.store / "tmp").rglob("bound")))
        client.spm("rollback").ok()
        client.spm("install", "gamma").ok()
        client.spm("gc", "--keep", "1").ok()
    finally:
        for path in client.store.rglob("bound"):
            subprocess.run(["chattr", "-i", path], check=True)

    assert (left, [path.parent.parent.parent.name for path in client.store.rglob("bound")]) == (1, ["tmp"])
    client.require_sound()
    client.spm("gc").ok()
    assert not (client.store / "tmp").exists()


def test_a_store_that_another_user_owns_is_refused_and_unchanged(scene: Scene) -> None:
    (scene.client.store / "generations").chmod(0o777)

    with unchanged(scene.client.home):
        refusal = scene.client.spm("rollback")

    assert (refusal.code, refusal.document["error"]["reason"]) == (26, "conf-perms")

"""Moving verified plugins into place: all or none, damage found and mended, nothing taken from another command."""

import errno
import fcntl
import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from keys.verified import VerifiedManifest
from manifests.errors import DigestMismatch, InUse, TypeMismatch
from manifests.lockfile import InstalledEntry
from manifests.names import PluginName
from manifests.versions import Version
from runtime.in_use import mark
from spm_client.store.blobs import holds
from spm_client.store.layout import Layout
from spm_client.store.staging import staging
from spm_client.workflows.place import Placement, is_sound, remove_trees
from tests.e2e.snapshots import snapshot
from tests.keys import builders


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "store").mkdir()
    return Layout(tmp_path / "store")


def fetched(scratch: Path) -> dict[str, Path]:
    """Write the files of the tests' plugin as downloads leave them."""
    places = {}
    for entry in builders.manifest().files:
        places[entry.sha256] = scratch / entry.sha256
        places[entry.sha256].write_bytes(builders.FILES[entry.path])
    return places


def place(layout: Layout, *plugins: VerifiedManifest, is_kept: bool = True) -> None:
    with staging(layout) as scratch, Placement(layout, scratch) as placement:
        blob_of = fetched(scratch)
        for verified in plugins:
            placement.put(verified, blob_of)
        placement.settle()
        if is_kept:
            placement.keep()


def other(version: str = "2.0.0") -> VerifiedManifest:
    return builders.verified(version=Version.parse(version))


def entry_of(verified: VerifiedManifest) -> InstalledEntry:
    manifest = verified.manifest
    return InstalledEntry(
        name=manifest.name,
        version=manifest.version,
        release=manifest.release,
        manifest_sha256=verified.sha256,
        type=manifest.type,
        keyids=tuple(verified.keyids),
        requested=True,
    )


def tree_of(layout: Layout, verified: VerifiedManifest) -> Path:
    return layout.tree(verified.manifest.name, verified.manifest.release)


def test_what_is_placed_and_kept_is_sound(layout: Layout) -> None:
    verified = builders.verified()
    assert not is_sound(layout, verified)

    place(layout, verified)

    assert is_sound(layout, verified)
    assert all(holds(layout, entry) for entry in verified.manifest.files)
    assert sorted(path.name for path in layout.root.iterdir()) == ["blobs", "manifests", "plugins"]


def test_what_is_not_kept_leaves_the_store_as_it_was(layout: Layout) -> None:
    place(layout, other("0.9.0"))
    before = snapshot(layout.root)

    place(layout, builders.verified(), is_kept=False)

    assert snapshot(layout.root) == before


def test_an_empty_store_is_empty_again(layout: Layout) -> None:
    place(layout, builders.verified(), other(), is_kept=False)

    assert list(layout.root.iterdir()) == []


def test_a_file_that_is_wrong_undoes_the_plugins_placed_before_it(layout: Layout) -> None:
    def place_two(scratch: Path) -> None:
        with Placement(layout, scratch) as placement:
            blob_of = fetched(scratch)
            placement.put(builders.verified(), blob_of)
            wrong = blob_of[builders.manifest().files[0].sha256]
            wrong.chmod(0o644)
            wrong.write_bytes(bytes(reversed(wrong.read_bytes())))
            placement.put(other(), blob_of)

    with staging(layout) as scratch, pytest.raises(DigestMismatch):
        place_two(scratch)

    assert list(layout.root.iterdir()) == []


@pytest.mark.parametrize("step", ["manifests", "plugins", "blobs"])
def test_a_disk_that_fails_at_any_folder_undoes_the_rest(layout: Layout, step: str) -> None:
    (layout.root / step).write_bytes(b"a file in the way")
    before = snapshot(layout.root)

    with pytest.raises(TypeMismatch) as refused:
        place(layout, builders.verified())

    assert refused.value.message == f"{layout.root / step} is no folder, and spm has one there"
    assert snapshot(layout.root) == before


def test_a_damaged_tree_comes_back_when_its_repair_is_undone(layout: Layout) -> None:
    verified = builders.verified()
    place(layout, verified)
    damaged = tree_of(layout, verified) / "plugin.py"
    damaged.unlink()
    damaged.write_bytes(b"evil")
    before = snapshot(layout.root)

    place(layout, verified, is_kept=False)

    assert snapshot(layout.root) == before
    assert not is_sound(layout, verified)


def test_a_damaged_tree_is_mended_when_its_repair_is_kept(layout: Layout) -> None:
    verified = builders.verified()
    place(layout, verified)
    (tree_of(layout, verified) / "extra").write_bytes(b"")
    assert not is_sound(layout, verified)

    place(layout, verified)

    assert is_sound(layout, verified)
    assert list(layout.root.glob("tmp*")) == []


@pytest.mark.parametrize("name", ["manifest.json", "manifest.jws"])
@pytest.mark.parametrize("damage", ["gone", "changed", "longer", "link"])
def test_a_damaged_manifest_folder_is_not_sound(layout: Layout, tmp_path: Path, name: str, damage: str) -> None:
    verified = builders.verified()
    place(layout, verified)
    path = layout.manifest(verified.sha256) / name
    data = path.read_bytes()
    path.unlink()
    match damage:
        case "changed":
            path.write_bytes(data[:-1] + b"!")
        case "longer":
            path.write_bytes(data + b"\n")
        case "link":
            (tmp_path / "same").write_bytes(data)
            path.symlink_to(tmp_path / "same")

    assert not is_sound(layout, verified)


def test_a_file_too_many_in_the_manifest_folder_is_not_sound(layout: Layout) -> None:
    verified = builders.verified()
    place(layout, verified)
    (layout.manifest(verified.sha256) / f"manifest.sig.{'ab' * 32}").write_bytes(b"")

    assert not is_sound(layout, verified)


def test_with_another_command_at_work_sound_trees_stay(layout: Layout) -> None:
    verified = builders.verified()
    with staging(layout):
        place(layout, verified, is_kept=False)

    assert is_sound(layout, verified)


def test_the_tree_of_an_uninstalled_release_is_removed_and_what_a_rollback_needs_stays(layout: Layout) -> None:
    kept, gone = builders.verified(), other()
    place(layout, kept, gone)
    manifest = snapshot(layout.manifest(gone.sha256))

    with staging(layout) as scratch:
        remove_trees((entry_of(gone),), layout, scratch)

    assert not tree_of(layout, gone).exists()
    assert snapshot(layout.manifest(gone.sha256)) == manifest
    assert all(holds(layout, entry) for entry in gone.manifest.files)
    assert is_sound(layout, kept)


def test_the_last_release_takes_its_plugin_s_folder_along(layout: Layout) -> None:
    verified = builders.verified()
    place(layout, verified)

    with staging(layout) as scratch:
        remove_trees((entry_of(verified),), layout, scratch)

    assert list((layout.root / "plugins").iterdir()) == []


def test_a_plugin_named_like_a_folder_of_the_store_is_removed(layout: Layout) -> None:
    entry = entry_of(builders.verified())
    strange = replace(entry, name=PluginName("manifests"))
    for folder in (layout.tree(strange.name, strange.release), layout.manifest(strange.manifest_sha256)):
        folder.mkdir(parents=True)

    with staging(layout) as scratch:
        remove_trees((strange,), layout, scratch)

    assert sorted(str(path.relative_to(layout.root)) for path in layout.root.rglob("*")) == [
        "manifests",
        f"manifests/{strange.manifest_sha256}",
        "plugins",
    ]


@pytest.mark.parametrize("damage", ["tree", "manifest"])
def test_what_is_damaged_is_not_replaced_while_a_host_runs_it(layout: Layout, damage: str) -> None:
    verified = builders.verified()
    place(layout, verified)
    folder = {"tree": tree_of(layout, verified), "manifest": layout.manifest(verified.sha256)}[damage]
    (folder / "extra").write_bytes(b"")
    before = snapshot(layout.root)

    with ExitStack() as marks:
        mark(layout.root, [verified.sha256], marks)
        with pytest.raises(InUse) as refused:
            place(layout, verified)

    assert refused.value.message == (
        f"`audio-encoder` 1.2.0 is run by process {os.getpid()} ({Path('/proc/self/comm').read_text().strip()}); "
        "nothing was changed"
    )
    assert snapshot(layout.root) == before
    place(layout, verified)
    assert is_sound(layout, verified)


def test_a_sound_tree_that_another_command_has_put_there_meanwhile_is_not_exchanged(layout: Layout) -> None:
    verified = builders.verified()
    place(layout, verified)
    inode = tree_of(layout, verified).stat().st_ino

    place(layout, verified)

    assert tree_of(layout, verified).stat().st_ino == inode


def test_the_tree_of_a_release_that_a_host_runs_stays_until_it_ends(layout: Layout) -> None:
    verified = builders.verified()
    place(layout, verified)

    with ExitStack() as marks, staging(layout) as scratch:
        mark(layout.root, [verified.sha256], marks)
        remove_trees((entry_of(verified),), layout, scratch)
        assert is_sound(layout, verified)
        marks.close()
        remove_trees((entry_of(verified),), layout, scratch)

    assert not tree_of(layout, verified).exists()


@pytest.mark.parametrize("is_known_idle", [False, True])
def test_on_a_disk_without_locks_a_tree_goes_only_where_it_is_known_idle(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, is_known_idle: bool
) -> None:
    verified = builders.verified()
    place(layout, verified)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with staging(layout) as scratch:
        remove_trees((entry_of(verified),), layout, scratch, is_known_idle=is_known_idle)

    assert is_sound(layout, verified) is not is_known_idle


def test_a_folder_that_another_command_removes_since_it_is_empty_is_made_again(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, removed = os.rename, list[Path]()

    def remove_first(source: Path, target: Path) -> None:
        parent = Path(target).parent
        if parent.parent == layout.trees and parent not in removed:
            removed.append(parent)
            parent.rmdir()
        rename(source, target)

    verified = builders.verified()
    monkeypatch.setattr(os, "rename", remove_first)
    place(layout, verified)

    assert removed
    assert is_sound(layout, verified)


def test_nothing_is_removed_while_another_command_is_at_work(layout: Layout) -> None:
    verified = builders.verified()
    place(layout, verified)

    with staging(layout), staging(layout) as scratch:
        remove_trees((entry_of(verified),), layout, scratch)

    assert is_sound(layout, verified)


def test_what_a_command_may_have_seen_before_it_was_aside_is_put_back(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified = builders.verified()
    place(layout, verified)
    rename = os.rename

    with staging(layout) as scratch:

        def begin_meanwhile(source: Path, target: Path) -> None:
            """Have another command appear just before the first rename, as a process on another core may."""
            (layout.tmp / "elsewhere-1.1-1.00000000").mkdir(exist_ok=True)
            rename(source, target)

        monkeypatch.setattr(os, "rename", begin_meanwhile)
        remove_trees((entry_of(verified),), layout, scratch)
        monkeypatch.undo()

    assert is_sound(layout, verified)

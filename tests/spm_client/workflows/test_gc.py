"""What gc frees and what it leaves: by generations and manifests alone, alone at work, and never half."""

import os
import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from keys.verified import VerifiedManifest
from manifests.errors import FileSetMismatch, LimitReached
from manifests.lockfile import Generation, InstalledEntry
from manifests.names import PluginName
from manifests.versions import Version
from runtime.in_use import mark
from spm_client.store.generations import commit
from spm_client.store.layout import Layout
from spm_client.store.staging import staging
from spm_client.workflows import take_away
from spm_client.workflows.gc import BATCH, Freed, gc
from spm_client.workflows.place import Placement, is_sound
from spm_client.workflows.unneeded import Kind
from tests.e2e.snapshots import snapshot
from tests.keys import builders
from tests.spm_client.workflows.test_place import entry_of, fetched, tree_of

MOMENT = "2026-01-31T12:00:00Z"
NOW = time.time()
DAY = 24 * 60 * 60


@dataclass
class Store:
    """A store in which releases of one plugin are installed one after the other."""

    layout: Layout
    releases: list[VerifiedManifest] = field(default_factory=list)

    def install(self, *versions: str, created: str = MOMENT) -> None:
        """Commit a generation of just this version."""
        for version in versions:
            verified = builders.verified(version=Version.parse(version))
            self.releases.append(verified)
            self.commit(entry_of(verified), created=created)

    def commit(self, *entries: InstalledEntry, created: str = MOMENT) -> None:
        with staging(self.layout) as scratch, Placement(self.layout, scratch) as placement:
            for verified in self.releases:
                if any(entry.manifest_sha256 == verified.sha256 for entry in entries):
                    held = {one.sha256: self.layout.blob(one.sha256) for one in verified.manifest.files}
                    placement.put(
                        verified, fetched(scratch) | {sha256: at for sha256, at in held.items() if at.exists()}
                    )
            number = len(list(self.layout.generations.glob("*"))) + 1 if self.layout.generations.is_dir() else 1
            commit(
                self.layout,
                Generation(number=number, registry="team.example", created=created, plugins=entries),
                scratch=scratch,
                taken=placement.keep,
            )

    def gc(self, *, keep: int = 2, is_dry_run: bool = False) -> Freed:
        return gc(self.layout, keep=keep, now=NOW, is_dry_run=is_dry_run)

    @property
    def sound(self) -> list[str]:
        return [str(one.manifest.version) for one in self.releases if is_sound(self.layout, one)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "store").mkdir()
    return Store(Layout(tmp_path / "store"))


def numbers(store: Store) -> list[str]:
    return sorted(path.name for path in store.layout.generations.iterdir())


def test_the_current_and_the_previous_generation_keep_what_they_need(store: Store) -> None:
    store.install("1.0.0", "2.0.0", "3.0.0")

    freed = store.gc()

    assert store.sound == ["2.0.0", "3.0.0"]
    assert numbers(store) == ["000002.json", "000003.json"]
    assert (freed.of(Kind.RELEASES), freed.of(Kind.GENERATIONS), freed.manifests) == (["audio-encoder 1.0.0"], ["1"], 1)
    assert (freed.kept, freed.is_complete, freed.still_run) == ((2, 3), True, [])
    assert not store.layout.tmp.exists()


@pytest.mark.parametrize(("keep", "left"), [(1, ["3.0.0"]), (2, ["2.0.0", "3.0.0"]), (9, ["1.0.0", "2.0.0", "3.0.0"])])
def test_as_many_generations_are_kept_as_are_asked_for(store: Store, keep: int, left: list[str]) -> None:
    store.install("1.0.0", "2.0.0", "3.0.0")

    store.gc(keep=keep)

    assert store.sound == left


def test_a_dry_run_tells_the_same_and_changes_nothing(store: Store) -> None:
    store.install("1.0.0", "2.0.0", "3.0.0")
    before = snapshot(store.layout.root)

    told = store.gc(is_dry_run=True)

    assert snapshot(store.layout.root) == before
    done = store.gc()
    assert (told.items, told.kept) == (done.items, done.kept)
    assert (told.footprint.files, told.footprint.bytes) == (done.footprint.files, done.footprint.bytes)


def test_the_bytes_told_are_those_that_the_disk_gets_back(store: Store) -> None:
    """Data files are links to their blobs: they count once, and not at all where a kept tree has them too."""
    store.install("1.0.0", "2.0.0", "3.0.0")
    executable = len(builders.FILES["data/deep/run.sh"])
    manifest = sum(path.stat().st_size for path in store.layout.manifest(store.releases[0].sha256).iterdir())
    generation = store.layout.generation(1).stat().st_size

    freed = store.gc()

    assert freed.footprint.bytes == executable + manifest + generation
    assert freed.footprint.files == 3 + 2 + 1


def test_what_no_generation_has_is_freed_and_what_spm_does_not_name_is_left(store: Store) -> None:
    store.install("1.0.0")
    layout, kept = (
        store.layout,
        ["plugins/README", "blobs/notes", "manifests/x", "plugins/Upper/1.0.0", "plugins/a/docs"],
    )
    for name in kept:
        (layout.root / name).parent.mkdir(parents=True, exist_ok=True)
        (layout.root / name).write_bytes(b"mine")
    before = snapshot(layout.root)
    orphans = [
        layout.tree(PluginName("ghost"), "1.0.0") / "a.py",
        layout.manifest("ab" * 32) / "manifest.json",
        layout.receipt("ab" * 32),
        layout.blob("ab" * 32),
        layout.blobs / "ab" / ".abcd.0123",
    ]
    for path in orphans:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left")

    freed = store.gc()

    assert len(freed.items) == len(orphans)
    after = snapshot(layout.root)
    assert {path: value for path, value in after.items() if path not in {"manifests", "receipts"}} == {
        path: value for path, value in before.items() if path not in {"manifests", "receipts"}
    }


def test_a_plugin_whose_name_begins_like_another_s_is_another(store: Store) -> None:
    store.install("1.0.0")
    sibling = store.layout.tree(PluginName("audio-encoder-evil"), "1.0.0")
    inner = store.layout.tree(PluginName("audio-encoder"), "1.0.0+evil")
    for folder in (sibling, inner):
        folder.mkdir(parents=True)
        (folder / "x.py").touch()

    freed = store.gc()

    assert freed.of(Kind.RELEASES) == ["audio-encoder 1.0.0+evil", "audio-encoder-evil 1.0.0"]
    assert store.sound == ["1.0.0"]


def test_neither_links_nor_read_only_folders_lead_out_or_hold_up(store: Store, tmp_path: Path) -> None:
    store.install("1.0.0")
    outside = tmp_path / "outside"
    (outside / "1.0.0").mkdir(parents=True)
    (outside / "1.0.0" / "kept").write_bytes(b"mine")
    (store.layout.trees / "linked").symlink_to(outside)
    ghost = store.layout.tree(PluginName("ghost"), "1.0.0")
    (ghost / "deep" / "er").mkdir(parents=True)
    (ghost / "deep" / "link").symlink_to(outside)
    (ghost / "deep").chmod(0o500)
    ghost.chmod(0)
    before = snapshot(outside)

    freed = store.gc()

    assert freed.of(Kind.RELEASES) == ["ghost 1.0.0"]
    assert snapshot(outside) == before
    assert not ghost.exists()
    assert not store.layout.tmp.exists()


def test_an_empty_store_has_nothing_to_free(store: Store) -> None:
    assert (store.gc().items, list(store.layout.root.iterdir())) == ([], [])


def test_a_release_that_a_host_runs_stays_with_its_manifest(store: Store) -> None:
    store.install("1.0.0", "2.0.0")
    old = store.releases[0]

    with ExitStack() as marks:
        mark(store.layout.root, [old.sha256], marks)
        freed = store.gc(keep=1)

    assert [(one.item.words, one.processes) for one in freed.still_run] == [("`audio-encoder` 1.0.0", (os.getpid(),))]
    assert store.sound == ["1.0.0", "2.0.0"]
    store.gc(keep=1)
    assert store.sound == ["2.0.0"]


def test_gc_is_refused_while_another_command_is_at_work(store: Store) -> None:
    store.install("1.0.0", "2.0.0")

    with staging(store.layout) as other:
        before = snapshot(store.layout.root)
        with pytest.raises(LimitReached) as refused:
            store.gc(keep=1)
        assert snapshot(store.layout.root) == before

    assert (refused.value.reason, refused.value.message, refused.value.hint) == (
        "limit:busy",
        f"another command is at work in `{store.layout.root}`, and may need what is there; nothing was freed",
        "run the command again when it is done; if none is at work, on no host and in no container that shares the "
        f"store, remove `{other}`",
    )


def test_a_command_that_begins_meanwhile_ends_the_work_and_finds_all_it_may_have_seen(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.install("1.0.0", "2.0.0")
    rename = os.rename
    stranger = store.layout.tmp / "elsewhere-1.1-1.00000000"

    def begin_meanwhile(source: Path, target: Path) -> None:
        if store.layout.trees in Path(source).parents:
            stranger.mkdir(exist_ok=True)
        rename(source, target)

    monkeypatch.setattr(os, "rename", begin_meanwhile)
    freed = store.gc(keep=1)
    monkeypatch.undo()

    assert (freed.is_complete, freed.of(Kind.RELEASES)) == (False, [])
    assert store.sound == ["1.0.0", "2.0.0"]
    shutil.rmtree(store.layout.tmp)
    assert store.gc(keep=1).is_complete
    assert store.sound == ["2.0.0"]


def test_a_disk_that_fails_midway_leaves_each_release_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.install("1.0.0", "2.0.0")
    rename = os.rename

    def fail(source: Path, target: Path) -> None:
        if store.layout.manifests in Path(source).parents:
            raise PermissionError(13, "Permission denied", str(source))
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(Exception, match="cannot be written: Permission denied"):
        store.gc(keep=1)
    monkeypatch.undo()

    assert store.sound == ["1.0.0", "2.0.0"]
    assert store.gc(keep=1).is_complete


def test_blobs_on_another_disk_are_freed_where_they_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.install("1.0.0")
    blobs = [store.layout.blob(f"{number:02x}" * 32) for number in range(BATCH + 2)]
    for blob in blobs:
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(b"x")
    rename = os.rename

    def across(source: Path, target: Path) -> None:
        if (store.layout.blobs in Path(source).parents) != (store.layout.blobs in Path(target).parents):
            raise OSError(18, "Invalid cross-device link", str(source), None, str(target))
        rename(source, target)

    monkeypatch.setattr(os, "rename", across)
    freed = store.gc()

    assert len(freed.of(Kind.BLOBS)) == len(blobs)
    assert sorted(path.name for path in store.layout.blobs.glob("*/*")) == sorted(
        entry.sha256 for entry in builders.manifest().files
    )
    assert store.sound == ["1.0.0"]


def plant(path: Path, kind: str, target: Path) -> None:
    if kind == "folder":
        (path / "inner").mkdir(parents=True)
        return
    path.parent.mkdir()
    os.mkfifo(path) if kind == "pipe" else (path.symlink_to if kind == "link" else path.hardlink_to)(target)


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "hard link"])
def test_what_no_download_can_go_on_with_is_freed_whatever_its_day(store: Store, tmp_path: Path, kind: str) -> None:
    store.install("1.0.0")
    (tmp_path / "foreign").write_bytes(b"foreign")
    planted = store.layout.root / "partial" / f"{'ab' * 32}.x"
    plant(planted, kind, tmp_path / "foreign")

    freed = store.gc()

    assert freed.of(Kind.PARTIALS) == [planted.name]
    assert not planted.parent.exists()
    assert (tmp_path / "foreign").read_bytes() == b"foreign"


@pytest.mark.parametrize(("age", "is_freed"), [(DAY + 60, True), (-DAY - 60, True), (60, False), (-60, False)])
def test_a_partial_download_goes_a_day_after_it_was_left_whatever_the_clock(
    store: Store, age: float, is_freed: bool
) -> None:
    partial = store.layout.root / "partial" / f"{'ab' * 32}.gone-1.1-1.00000000"
    partial.parent.mkdir()
    partial.write_bytes(b"some")
    os.utime(partial, (NOW - age, NOW - age))

    freed = store.gc()

    assert (partial.exists(), freed.of(Kind.PARTIALS)) == (not is_freed, [partial.name] if is_freed else [])
    assert partial.parent.exists() is not is_freed


def test_the_clock_of_a_generation_says_nothing_of_its_order(store: Store) -> None:
    store.install("1.0.0", created="9999-12-31T23:59:59Z")
    store.install("2.0.0", created="1970-01-01T00:00:00Z")
    store.install("3.0.0", created="2026-01-31T12:00:00Z")

    store.gc()

    assert store.sound == ["2.0.0", "3.0.0"]


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"{}")])
def test_while_the_manifest_of_what_is_installed_is_damaged_nothing_is_freed(
    store: Store, damage: Callable[[Path], None]
) -> None:
    store.install("1.0.0", "2.0.0")
    damage(store.layout.manifest(store.releases[1].sha256) / "manifest.json")
    before = snapshot(store.layout.root)

    with pytest.raises(FileSetMismatch) as refused:
        store.gc(keep=1)

    assert snapshot(store.layout.root) == before
    assert (refused.value.message, refused.value.hint) == (
        "the manifest of `audio-encoder` 2.0.0, which is installed, is lost or damaged: nobody can say which blobs are "
        "needed; nothing was freed",
        "`spm verify audio-encoder` shows what is amiss, `spm install audio-encoder==2.0.0` mends it",
    )


def test_a_previous_generation_that_has_lost_its_manifest_needs_nothing_more(store: Store) -> None:
    """As in a store of a version whose uninstall took the manifests along."""
    store.install("1.0.0", "2.0.0")
    shutil.rmtree(store.layout.manifest(store.releases[0].sha256))

    freed = store.gc()

    assert freed.items == []
    assert store.sound == ["2.0.0"]


def test_a_generation_that_is_kept_and_damaged_stops_the_work(store: Store) -> None:
    store.install("1.0.0", "2.0.0")
    store.layout.generation(1).write_bytes(b"{}")
    before = snapshot(store.layout.root)

    with pytest.raises(FileSetMismatch) as refused:
        store.gc()

    assert snapshot(store.layout.root) == before
    assert refused.value.message.startswith(f"nobody can say what generation 1 of `{store.layout.root}` needs: ")
    assert refused.value.hint == "restore it from a backup, or keep only what is newer: `spm gc --keep N`"
    store.gc(keep=1)
    assert store.sound == ["2.0.0"]


def test_two_builds_of_one_release_keep_the_tree_and_lose_the_manifest(store: Store) -> None:
    store.install("1.0.0")
    entry = entry_of(store.releases[0])
    other = builders.verified(version=Version.parse("1.0.0"), summary="another build")
    store.releases.append(other)
    store.commit(replace(entry, manifest_sha256=other.sha256))

    freed = store.gc(keep=1)

    assert (freed.of(Kind.RELEASES), freed.of(Kind.MANIFESTS)) == ([], ["audio-encoder 1.0.0"])
    assert is_sound(store.layout, other)
    assert tree_of(store.layout, other).is_dir()
    assert take_away.LEFT.startswith(".")

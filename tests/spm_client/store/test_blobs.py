"""Blobs: taken in from whatever disk, held only when sound, laid out as trees."""

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from manifests.errors import TypeMismatch
from manifests.parts import FileEntry
from spm_client.store.blobs import adopt, holds, lay_out
from spm_client.store.layout import Layout

DATA = b"0123456789"


def entry(path: str, data: bytes = DATA, mode: str = "r") -> FileEntry:
    return FileEntry(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode=mode)


def put(layout: Layout, data: bytes = DATA) -> Path:
    source = layout.root / "incoming"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_bytes(data)
    sha256 = hashlib.sha256(data).hexdigest()
    adopt(layout, sha256, source)
    return layout.blob(sha256)


def test_what_was_adopted_is_held_and_read_only(layout: Layout) -> None:
    assert not holds(layout, entry("a"))

    blob = put(layout)

    assert holds(layout, entry("a"))
    assert blob.stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize("data", [b"", b"012345678", b"01234567890", b"9123456789"], ids=["empty", "-1", "+1", "bit"])
def test_a_damaged_blob_counts_as_absent(layout: Layout, data: bytes) -> None:
    blob = put(layout)
    blob.chmod(0o644)
    blob.write_bytes(data)

    assert not holds(layout, entry("a"))


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_counts_as_absent(layout: Layout, make: Callable[[Path], None]) -> None:
    place = layout.blob(entry("a").sha256)
    place.parent.mkdir(parents=True)
    make(place)

    assert not holds(layout, entry("a"))


def test_a_folder_in_a_blob_s_place_is_named(layout: Layout) -> None:
    place = layout.blob(entry("a").sha256)
    place.mkdir(parents=True)

    with pytest.raises(TypeMismatch) as refused:
        put(layout)

    assert (refused.value.message, refused.value.hint) == (
        f"{place} is no plain file, and spm has one there",
        "move it elsewhere, and run the command again",
    )


def test_a_link_counts_as_absent_whatever_it_names(layout: Layout) -> None:
    blob = put(layout)
    os.rename(blob, layout.root / "same")
    blob.symlink_to(layout.root / "same")

    assert not holds(layout, entry("a"))


def test_a_tree_links_its_data_and_copies_its_executables(layout: Layout) -> None:
    blob = put(layout)
    files = (entry("bin/run", mode="x"), entry("data/a"), entry("data/b"))

    lay_out(files, {entry("a").sha256: blob}, layout.root / "tree")

    tree = layout.root / "tree"
    status = {path: (tree / path).stat() for path in ("bin/run", "data/a", "data/b")}
    assert {path: one.st_mode & 0o777 for path, one in status.items()} == {
        "bin/run": 0o555,
        "data/a": 0o444,
        "data/b": 0o444,
    }
    blob_inode = blob.stat().st_ino
    assert {path: one.st_ino == blob_inode for path, one in status.items()} == {
        "bin/run": False,
        "data/a": True,
        "data/b": True,
    }
    assert {(tree / path).read_bytes() for path in status} == {DATA}


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP])
def test_a_disk_without_hard_links_gets_copies(layout: Layout, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    blob = put(layout)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    lay_out((entry("a"),), {entry("a").sha256: blob}, layout.root / "tree")

    copy = layout.root / "tree" / "a"
    assert copy.read_bytes() == DATA
    assert copy.stat().st_mode & 0o777 == 0o444
    assert copy.stat().st_ino != blob.stat().st_ino


def test_a_full_disk_is_no_reason_for_copies(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    blob = put(layout)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", refuse)

    with pytest.raises(OSError, match="No space left on device"):
        lay_out((entry("a"),), {entry("a").sha256: blob}, layout.root / "tree")


def test_the_longest_path_that_a_manifest_may_hold_is_laid_out(layout: Layout) -> None:
    blob = put(layout)
    path = "/".join([*["d" * 200] * 4, "f" * 200])

    lay_out((entry(path),), {entry("a").sha256: blob}, layout.root / "tree")

    assert (layout.root / "tree" / path).read_bytes() == DATA


def test_the_deepest_path_that_a_manifest_may_hold_is_laid_out(layout: Layout) -> None:
    blob = put(layout)
    path = "/".join(["d"] * 511 + ["f"])

    lay_out((entry(path),), {entry("a").sha256: blob}, layout.root / "tree")

    assert (layout.root / "tree" / path).read_bytes() == DATA


def test_no_umask_opens_a_tree_to_others(layout: Layout) -> None:
    blob = put(layout)
    before = os.umask(0)
    try:
        lay_out((entry("deep/er/a"),), {entry("a").sha256: blob}, layout.root / "tree")
    finally:
        os.umask(before)

    tree = layout.root / "tree"
    assert {(tree / path).stat().st_mode & 0o777 for path in ("", "deep", "deep/er")} == {0o755}


def _another_disk(monkeypatch: pytest.MonkeyPatch, disk: Path) -> None:
    """Let renames between a folder and what lies outside it fail, as between two disks."""
    rename = os.replace

    def replace(source: Path, place: Path) -> None:
        if source.is_relative_to(disk) != place.is_relative_to(disk):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(source), None, str(place))
        rename(source, place)

    monkeypatch.setattr(os, "replace", replace)


def test_a_file_from_another_disk_is_adopted_all_the_same(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    _another_disk(monkeypatch, layout.blobs)

    blob = put(layout)

    assert holds(layout, entry("a"))
    assert blob.stat().st_mode & 0o777 == 0o444
    assert [path.name for path in blob.parent.iterdir()] == [blob.name]
    assert not (layout.root / "incoming").exists()


def test_a_disk_that_is_full_when_a_file_comes_from_another_has_nothing_of_it(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    _another_disk(monkeypatch, layout.blobs)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        put(layout)

    assert list(layout.blob(entry("a").sha256).parent.iterdir()) == []
    assert (layout.root / "incoming").read_bytes() == DATA


def test_the_last_partial_file_that_is_adopted_takes_its_folder_along(layout: Layout) -> None:
    folder = layout.root / "partial"
    folder.mkdir(parents=True)
    files = {entry("a", data).sha256: data for data in (b"one", b"two")}
    for sha256, data in files.items():
        (folder / f"{sha256}.owner").write_bytes(data)

    for sha256 in files:
        assert folder.is_dir()
        adopt(layout, sha256, folder / f"{sha256}.owner")

    assert not folder.exists()

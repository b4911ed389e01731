"""Blobs: taken in by size and digest, held only when sound, laid out as trees."""

import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from manifests.errors import ContentError, DigestMismatch, SizeMismatch
from manifests.parts import FileEntry
from spm_client.store.blobs import adopt, holds, lay_out, receive
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


def test_a_file_comes_in_pieces_and_progress_is_told(tmp_path: Path) -> None:
    told: list[int] = []

    receive(iter([b"0123", b"", b"456789"]), entry("a"), tmp_path / "a", what="`x` 1.0.0", advance=told.append)

    assert (tmp_path / "a").read_bytes() == DATA
    assert sum(told) == 10


def test_an_empty_file_may_come(tmp_path: Path) -> None:
    receive(iter(()), entry("a", b""), tmp_path / "a", what="`x` 1.0.0", advance=lambda _: None)

    assert (tmp_path / "a").read_bytes() == b""


CUT = "the transfer was cut or altered: run the command again, then ask the registry's administrator"
OTHER = "what the registry serves is not what the author signed: ask its administrator"


@pytest.mark.parametrize(
    ("chunks", "kind", "message", "hint"),
    [
        (
            [DATA[:5], DATA[5:], b"!"],
            SizeMismatch,
            "`a` of `x` 1.0.0 came with more than 10 bytes, but the signed manifest says 10; nothing was installed",
            CUT,
        ),
        (
            [DATA[:5]],
            SizeMismatch,
            "`a` of `x` 1.0.0 came with 5 bytes, but the signed manifest says 10; nothing was installed",
            CUT,
        ),
        (
            [b"9876543210"],
            DigestMismatch,
            "`a` of `x` 1.0.0 has the digest "
            "sha256:7619ee8cea49187f309616e30ecf54be072259b43760f1f550a644945d5572f2, but the signed manifest says "
            "sha256:84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882; nothing was installed",
            OTHER,
        ),
    ],
    ids=["too-long", "too-short", "digest"],
)
def test_a_wrong_file_is_refused_and_gone(
    tmp_path: Path, chunks: list[bytes], kind: type[ContentError], message: str, hint: str
) -> None:
    with pytest.raises(kind) as refused:
        receive(iter(chunks), entry("a"), tmp_path / "a", what="`x` 1.0.0", advance=lambda _: None)

    assert (refused.value.message, refused.value.hint) == (message, hint)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_taken_after_the_first_byte_too_many(tmp_path: Path) -> None:
    taken: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield b"xxxx"

    with pytest.raises(SizeMismatch):
        receive(endless(), entry("a"), tmp_path / "a", what="`x` 1.0.0", advance=lambda _: None)

    assert len(taken) == 3


def test_a_transfer_that_breaks_leaves_no_part(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"0"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        receive(broken(), entry("a"), tmp_path / "a", what="`x` 1.0.0", advance=lambda _: None)

    assert list(tmp_path.iterdir()) == []


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

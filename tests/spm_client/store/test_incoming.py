"""A file that comes: held to size and digest over all of it, also where a part of it was there before."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from manifests.errors import ContentError, DigestMismatch, SizeMismatch
from manifests.parts import FileEntry
from spm_client.store.incoming import Incoming

DATA = b"0123456789"
CUT = "the transfer was cut or altered: run the command again, then ask the registry's administrator"
OTHER = "what the registry serves is not what the author signed: ask its administrator"
WRONG_DIGEST = (
    "`a` of `x` 1.0.0 has the digest sha256:7619ee8cea49187f309616e30ecf54be072259b43760f1f550a644945d5572f2, "
    "but the signed manifest says sha256:84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882; "
    "nothing was installed"
)


def entry(data: bytes = DATA) -> FileEntry:
    return FileEntry(path="a", size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode="r")


def come(path: Path, *chunks: bytes, wanted: bytes = DATA) -> None:
    with Incoming(path, entry(wanted), what="`x` 1.0.0") as file:
        for chunk in chunks:
            file.write(chunk)
        file.require_whole()


def test_a_file_comes_in_pieces(tmp_path: Path) -> None:
    come(tmp_path / "a", b"0123", b"", b"456789")

    assert (tmp_path / "a").read_bytes() == DATA


@pytest.mark.parametrize("kind", ["hard link", "pipe"])
def test_what_another_has_too_is_not_written_to(tmp_path: Path, kind: str) -> None:
    other = tmp_path / "other"
    other.write_bytes(DATA[:4])
    os.mkfifo(tmp_path / "a") if kind == "pipe" else (tmp_path / "a").hardlink_to(other)

    come(tmp_path / "a", DATA)

    assert ((tmp_path / "a").read_bytes(), other.read_bytes()) == (DATA, DATA[:4])


def test_an_empty_file_may_come(tmp_path: Path) -> None:
    come(tmp_path / "a", wanted=b"")

    assert (tmp_path / "a").read_bytes() == b""


def test_a_file_goes_on_behind_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DATA[:4])

    come(tmp_path / "a", DATA[4:])

    assert (tmp_path / "a").read_bytes() == DATA


def test_a_file_that_is_all_there_is_whole_at_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(DATA)

    with Incoming(tmp_path / "a", entry(), what="`x` 1.0.0") as file:
        assert (file.size, file.is_whole) == (10, True)
        file.require_whole()


def test_a_file_is_begun_anew_without_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abcdefgh")

    with Incoming(tmp_path / "a", entry(), what="`x` 1.0.0") as file:
        file.begin_anew()
        assert (file.size, file.is_whole) == (0, False)
        file.write(DATA)
        file.require_whole()

    assert (tmp_path / "a").read_bytes() == DATA


def test_the_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    come(tmp_path / "deep" / "a", DATA)

    assert (tmp_path / "deep").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "deep" / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("before", "chunks", "kind", "message", "hint"),
    [
        (
            b"",
            [DATA[:5], DATA[5:], b"!"],
            SizeMismatch,
            "`a` of `x` 1.0.0 came with more than 10 bytes, but the signed manifest says 10; nothing was installed",
            CUT,
        ),
        (
            b"",
            [DATA[:5]],
            SizeMismatch,
            "`a` of `x` 1.0.0 came with 5 bytes, but the signed manifest says 10; nothing was installed",
            CUT,
        ),
        (b"", [b"9876543210"], DigestMismatch, WRONG_DIGEST, OTHER),
        (b"98765", [b"43210"], DigestMismatch, WRONG_DIGEST, OTHER),
    ],
    ids=["too-long", "too-short", "digest", "digest-of-both-parts"],
)
def test_a_wrong_file_is_refused_and_gone(
    tmp_path: Path, before: bytes, chunks: list[bytes], kind: type[ContentError], message: str, hint: str
) -> None:
    if before:
        (tmp_path / "a").write_bytes(before)

    with pytest.raises(kind) as refused:
        come(tmp_path / "a", *chunks)

    assert (refused.value.message, refused.value.hint) == (message, hint)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_after_the_first_byte_too_many(tmp_path: Path) -> None:
    with Incoming(tmp_path / "a", entry(), what="`x` 1.0.0") as file:
        file.write(DATA)
        with pytest.raises(SizeMismatch):
            file.write(b"!")
        assert (tmp_path / "a").read_bytes() == DATA


def test_a_transfer_that_breaks_leaves_its_part(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"01234"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError), Incoming(tmp_path / "a", entry(), what="`x` 1.0.0") as file:
        list(map(file.write, broken()))

    assert (tmp_path / "a").read_bytes() == b"01234"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    (tmp_path / "a").symlink_to("other")

    with pytest.raises(OSError, match="symbolic links"):
        come(tmp_path / "a", DATA)

    assert (tmp_path / "other").read_bytes() == b""


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")

    come(tmp_path / "a", DATA)
    (tmp_path / "b").write_bytes(DATA + b"!")
    with pytest.raises(SizeMismatch):
        come(tmp_path / "b", b"")

    assert os.listdir("/proc/self/fd") == before

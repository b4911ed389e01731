"""An installed folder held against its signed file table: exactly these files, nothing else."""

import errno
import hashlib
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.file_hash import FileHasher
from keys.shown import shown
from keys.tree import BIG_FILE_BYTES, FileStamp, check_tree
from keys.verified import verify_tree
from manifests.errors import (
    DigestMismatch,
    FileSetMismatch,
    LinkRefused,
    SizeMismatch,
    SpmError,
    TypeMismatch,
    Undecided,
)
from manifests.parts import FileEntry
from tests.keys.builders import FILES, UNHURRIED, acting_as, file_entry, verified, write_tree

SHA = {path: hashlib.sha256(data).hexdigest() for path, data in FILES.items()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "tree")


def snapshot(directory: Path) -> list[tuple[str, int, bytes | None]]:
    return [
        (str(path), path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in sorted(directory.rglob("*"))
    ]


def refused(tree: Path) -> tuple[int, str, str]:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(SpmError) as caught:
        verify_tree(verified(), tree)
    assert os.listdir("/proc/self/fd") == before
    prefix = f"audio-encoder 1.2.0 in {tree}: "
    assert caught.value.message.startswith(prefix)
    assert caught.value.hint == "do not run what is there; `spm install audio-encoder==1.2.0` lays it out anew"
    return caught.value.exit_code, caught.value.reason, caught.value.message.removeprefix(prefix)


def replace_file(path: Path, data: bytes, mode: int = 0o444) -> None:
    path.unlink()
    path.write_bytes(data)
    path.chmod(mode)


def test_exact_tree_is_accepted_and_left_as_it_is(tree: Path) -> None:
    before = snapshot(tree)

    installed = verify_tree(verified(), tree)

    assert installed.directory == tree
    assert installed.manifest == installed.verified.manifest == verified().manifest
    assert snapshot(tree) == before


def test_times_owners_write_bits_and_hard_links_do_not_matter(tree: Path, tmp_path: Path) -> None:
    os.utime(tree / "data", (0, 0))
    (tree / "plugin.py").chmod(0o644)
    os.link(tree / "data/weights.bin", tmp_path / "blob")

    verify_tree(verified(), tree)


def test_empty_file_and_file_of_several_chunks_are_read_whole(tmp_path: Path) -> None:
    big = os.urandom((2 << 20) + 17)
    (tmp_path / "big").write_bytes(big)
    (tmp_path / "empty").touch()

    check_tree([file_entry("big", big), file_entry("empty", b"")], tmp_path)


@pytest.mark.parametrize("path", ["sitecustomize.py", "data/x.so", "data/deep/.hidden", "__pycache__/plugin.pyc"])
def test_extra_file_is_refused(tree: Path, path: str) -> None:
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_bytes(b"")

    shown = path.split("/")[0] if path.startswith("__") else path
    assert refused(tree) == (25, "file-set", f"these are there but not in the signed file table: '{shown}'")


def test_extra_empty_folder_is_refused(tree: Path) -> None:
    (tree / "data" / "empty").mkdir()

    assert refused(tree) == (25, "file-set", "these are there but not in the signed file table: 'data/empty'")


def test_many_extra_files_are_named_up_to_a_bound(tree: Path) -> None:
    for number in range(50):
        (tree / f"extra{number}").touch()

    message = refused(tree)[2]

    assert message.count("'extra") == 10
    assert message.endswith(" and more")


def test_extra_file_with_a_hostile_name_is_shown_escaped(tree: Path) -> None:
    (tree / "a\x1b[2J\n").touch()
    os.close(os.open(os.fsencode(tree) + b"/\xff", os.O_CREAT))

    message = refused(tree)[2]

    assert "'a\\x1b[2J\\n'" in message
    assert "'\\udcff'" in message


def test_paths_for_programs_have_no_quotes(tree: Path) -> None:
    (tree / "extra").touch()
    os.close(os.open(os.fsencode(tree) + b"/\xff", os.O_CREAT))
    (tree / ("x" * 200)).touch()

    with pytest.raises(SpmError) as caught:
        verify_tree(verified(), tree)

    assert sorted(caught.value.context["paths"]) == ["\\udcff", "extra", "x" * 80 + "..."]


def test_missing_file_is_refused(tree: Path) -> None:
    (tree / "data/weights.bin").unlink()

    assert refused(tree) == (25, "file-set", "these are in the signed file table but not there: 'data/weights.bin'")


def test_missing_folder_is_refused(tree: Path) -> None:
    (tree / "data/deep/run.sh").unlink()
    (tree / "data/deep").rmdir()

    assert refused(tree) == (25, "file-set", "these are in the signed file table but not there: 'data/deep'")


def test_missing_tree_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path / "none") == (25, "file-set", f"'{tmp_path / 'none'}' is not there")


def test_changed_byte_is_refused_with_both_digests(tree: Path) -> None:
    data = FILES["data/weights.bin"][:-1] + b"\0"
    replace_file(tree / "data/weights.bin", data)

    assert refused(tree) == (
        25,
        "digest",
        f"'data/weights.bin' has the digest sha256:{hashlib.sha256(data).hexdigest()}, "
        f"the signed file table says sha256:{SHA['data/weights.bin']}: it was changed after signing",
    )


@pytest.mark.parametrize("data", [b"", FILES["data/weights.bin"][:-1], FILES["data/weights.bin"] + b"\0"])
def test_wrong_size_is_refused(tree: Path, data: bytes) -> None:
    replace_file(tree / "data/weights.bin", data)

    assert refused(tree) == (
        25,
        "size",
        f"'data/weights.bin' has {len(data)} bytes, the signed file table says 256",
    )


@pytest.mark.parametrize(
    ("path", "mode", "kind"),
    [
        ("plugin.py", 0o555, "a data file"),
        ("plugin.py", 0o454, "a data file"),
        ("data/deep/run.sh", 0o444, "an executable"),
        ("data/deep/run.sh", 0o544, "an executable"),
        ("data/deep/run.sh", 0o4555, "an executable"),
        ("data/deep/run.sh", 0o2555, "an executable"),
    ],
)
def test_wrong_mode_is_refused(tree: Path, path: str, mode: int, kind: str) -> None:
    (tree / path).chmod(mode)

    assert refused(tree) == (25, "type", f"'{path}' has the mode {mode:04o}, the signed file table says it is {kind}")


def test_link_to_the_right_bytes_is_refused(tree: Path, tmp_path: Path) -> None:
    (tree / "plugin.py").rename(tmp_path / "plugin.py")
    (tree / "plugin.py").symlink_to(tmp_path / "plugin.py")

    assert refused(tree) == (25, "link", "'plugin.py' is a symbolic link, a plugin's tree has none")


def test_link_to_the_right_folder_is_refused(tree: Path, tmp_path: Path) -> None:
    (tree / "data").rename(tmp_path / "data")
    (tree / "data").symlink_to(tmp_path / "data")

    assert refused(tree) == (25, "link", "'data' is a symbolic link, a plugin's tree has none")


@pytest.mark.parametrize("target", ["plugin.py", "nowhere", "/etc/passwd", "."])
def test_extra_link_is_refused(tree: Path, target: str) -> None:
    (tree / "data/extra").symlink_to(target)

    assert refused(tree) == (25, "link", "'data/extra' is a symbolic link, a plugin's tree has none")


def test_tree_that_is_itself_a_link_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(tree)

    assert refused(tmp_path / "other") == (
        25,
        "link",
        f"{shown(str(tmp_path / 'other'))} is a symbolic link, a plugin's tree has none",
    )


def test_tree_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert refused(tmp_path / "file") == (25, "type", f"{shown(str(tmp_path / 'file'))} is not a folder")


def make_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("make", [os.mkfifo, make_socket], ids=["pipe", "socket"])
@pytest.mark.parametrize("path", ["plugin.py", "data/extra"])
def test_pipe_or_socket_is_refused_without_waiting(tree: Path, path: str, make: Callable[[Path], None]) -> None:
    (tree / path).unlink(missing_ok=True)
    make(tree / path)

    assert refused(tree) == (25, "type", f"'{path}' is neither a plain file nor a folder")


def test_folder_in_place_of_a_file_is_refused(tree: Path) -> None:
    (tree / "plugin.py").unlink()
    (tree / "plugin.py").mkdir()

    assert refused(tree) == (25, "type", "'plugin.py' is a folder, the signed file table has a file there")


def test_file_in_place_of_a_folder_is_refused(tree: Path) -> None:
    (tree / "data/deep/run.sh").unlink()
    (tree / "data/deep").rmdir()
    (tree / "data/deep").touch()

    assert refused(tree) == (25, "type", "'data/deep' is a file, the signed file table has a folder there")


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root can")
def test_file_that_cannot_be_read_is_undecided_never_good(folder_open_to_all: Path) -> None:
    tree = write_tree(folder_open_to_all / "tree")
    (tree / "plugin.py").chmod(0o000)

    with acting_as(12345), pytest.raises(SpmError) as caught:
        verify_tree(verified(), tree)

    assert (caught.value.exit_code, caught.value.reason, caught.value.hint) == (3, "unknown:content", "")
    assert caught.value.message == (
        f"audio-encoder 1.2.0 in {tree}: "
        "'plugin.py' cannot be read: Permission denied; a file that was not read is not verified"
    )


@pytest.mark.property
@UNHURRIED
@given(path=st.sampled_from(sorted(FILES)), data=st.data())
def test_any_flipped_bit_of_any_file_is_refused(
    tmp_path_factory: pytest.TempPathFactory, path: str, data: st.DataObject
) -> None:
    tree = write_tree(tmp_path_factory.mktemp("tree"))
    changed = bytearray(FILES[path])
    bit = data.draw(st.integers(0, len(changed) * 8 - 1))
    changed[bit // 8] ^= 1 << (bit % 8)
    replace_file(tree / path, bytes(changed), (tree / path).stat().st_mode & 0o777)

    assert refused(tree)[:2] == (25, "digest")


BIG = bytes(range(256)) * 4096 + b"!"


@pytest.fixture
def big(tmp_path: Path) -> Path:
    (tmp_path / "big").mkdir()
    (tmp_path / "big/weights.bin").write_bytes(BIG)
    (tmp_path / "big/small.bin").write_bytes(BIG[:BIG_FILE_BYTES])
    return tmp_path / "big"


def stamp_of(path: Path) -> FileStamp:
    return FileStamp.of(path.stat())


def checked(tree: Path, **options: Any) -> Mapping[str, FileStamp]:
    return check_tree([file_entry("weights.bin", BIG), file_entry("small.bin", BIG[:BIG_FILE_BYTES])], tree, **options)


def overwritten(path: Path) -> None:
    """Change a byte in place and put the time of the last change back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"\xff")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_big_files_that_were_hashed_and_are_settled_give_their_stamps(big: Path) -> None:
    asked: list[FileStamp] = []

    def is_settled(descriptor: int, stamp: FileStamp) -> bool:
        assert FileStamp.of(os.fstat(descriptor)) == stamp
        asked.append(stamp)
        return True

    stamps = checked(big, is_settled=is_settled)

    assert dict(stamps) == {"weights.bin": stamp_of(big / "weights.bin")}
    assert asked == [stamp_of(big / "weights.bin")]


def test_without_a_word_on_its_stamp_a_file_gives_none(big: Path) -> None:
    assert dict(checked(big)) == {}
    assert dict(checked(big, is_settled=lambda *_: False)) == {}


def test_a_file_that_is_written_to_while_it_is_hashed_gives_no_stamp(big: Path) -> None:
    def is_settled(descriptor: int, stamp: FileStamp) -> bool:
        os.utime(big / "weights.bin", ns=(0, 0))
        return True

    assert dict(checked(big, is_settled=is_settled)) == {}


def test_a_file_whose_stamp_is_known_is_not_read(big: Path) -> None:
    overwritten(big / "weights.bin")

    assert dict(checked(big, known={"weights.bin": stamp_of(big / "weights.bin")})) == {}


def test_a_small_file_is_hashed_even_if_its_stamp_is_known(big: Path) -> None:
    overwritten(big / "small.bin")

    with pytest.raises(DigestMismatch):
        checked(big, known={"small.bin": stamp_of(big / "small.bin")})


@pytest.mark.parametrize("member", ["dev", "inode", "size", "mtime_ns", "ctime_ns"])
def test_a_stamp_that_differs_in_one_member_has_the_file_hashed(big: Path, member: str) -> None:
    overwritten(big / "weights.bin")
    stamp = stamp_of(big / "weights.bin")
    known = {"weights.bin": replace(stamp, **{member: getattr(stamp, member) + 1})}

    with pytest.raises(DigestMismatch):
        checked(big, known=known)


def test_a_stamp_of_another_path_is_not_this_file_s(big: Path) -> None:
    overwritten(big / "weights.bin")

    with pytest.raises(DigestMismatch):
        checked(big, known={"other.bin": stamp_of(big / "weights.bin"), "./weights.bin": stamp_of(big / "weights.bin")})


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"!")


def swapped(path: Path) -> None:
    replace_file(path, bytes(reversed(BIG)), 0o644)


ATTACKS: dict[str, tuple[Callable[[Path], object], type[SpmError], str]] = {
    "a byte changed, its time put back": (overwritten, DigestMismatch, "'weights.bin' has the digest sha256:"),
    "other bytes under a new inode": (swapped, DigestMismatch, "'weights.bin' has the digest sha256:"),
    "cut": (
        lambda path: os.truncate(path, 17),
        SizeMismatch,
        "'weights.bin' has 17 bytes, the signed file table says 1048577",
    ),
    "grown": (grown, SizeMismatch, "'weights.bin' has 1048578 bytes, the signed file table says 1048577"),
    "executable": (
        lambda path: path.chmod(0o755),
        TypeMismatch,
        "'weights.bin' has the mode 0755, the signed file table says it is a data file",
    ),
    "setuid": (
        lambda path: path.chmod(0o4644),
        TypeMismatch,
        "'weights.bin' has the mode 4644, the signed file table says it is a data file",
    ),
    "a link to the very file": (
        lambda path: path.symlink_to(path.rename(path.parent.parent / "moved")),
        LinkRefused,
        "'weights.bin' is a symbolic link, a plugin's tree has none",
    ),
    "gone": (
        lambda path: path.unlink(),
        FileSetMismatch,
        "these are in the signed file table but not there: 'weights.bin'",
    ),
    "a file beside it": (
        lambda path: (path.parent / "weights.pth").touch(),
        FileSetMismatch,
        "these are there but not in the signed file table: 'weights.pth'",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_known_stamp_saves_no_changed_file(big: Path, name: str) -> None:
    attack, kind, message = ATTACKS[name]
    known = {"weights.bin": stamp_of(big / "weights.bin")}
    later_than(big / "weights.bin")

    attack(big / "weights.bin")

    with pytest.raises(kind) as caught:
        checked(big, known=known)
    assert caught.value.message.startswith(message)
    assert caught.value.exit_code == 25


def later_than(path: Path) -> None:
    """Wait until a write gives another time than the file has."""
    probe = path.parent.parent / "probe"
    while True:
        probe.write_bytes(b"")
        if probe.stat().st_ctime_ns > path.stat().st_ctime_ns:
            return


def test_the_same_bytes_under_a_new_inode_are_hashed_and_accepted(big: Path) -> None:
    known = {"weights.bin": stamp_of(big / "weights.bin")}
    (big / "weights.bin").rename(big.parent / "kept")
    (big / "weights.bin").write_bytes(BIG)

    stamps = checked(big, known=known, is_settled=lambda *_: True)

    assert dict(stamps) == {"weights.bin": stamp_of(big / "weights.bin")} != known


EXTRA: dict[str, tuple[Callable[[Path], object], str, str]] = {
    name: (make, *told)
    for name, make, told in (
        ("__init__.py", Path.touch, ("file-set", "these are there but not in the signed file table: '__init__.py'")),
        ("path.pth", Path.touch, ("file-set", "these are there but not in the signed file table: 'path.pth'")),
        ("plugin.pyc", Path.touch, ("file-set", "these are there but not in the signed file table: 'plugin.pyc'")),
        ("plugin.so", Path.touch, ("file-set", "these are there but not in the signed file table: 'plugin.so'")),
        ("__pycache__", Path.mkdir, ("file-set", "these are there but not in the signed file table: '__pycache__'")),
        (
            "usercustomize.py",
            Path.touch,
            ("file-set", "these are there but not in the signed file table: 'usercustomize.py'"),
        ),
        (
            "twin.py",
            lambda path: os.link(path.parent / "plugin.py", path),
            ("file-set", "these are there but not in the signed file table: 'twin.py'"),
        ),
        (
            "link.py",
            lambda path: path.symlink_to("plugin.py"),
            ("link", "'link.py' is a symbolic link, a plugin's tree has none"),
        ),
        ("pipe", os.mkfifo, ("type", "'pipe' is neither a plain file nor a folder")),
    )
}


@pytest.mark.parametrize("name", EXTRA)
def test_what_python_would_pick_up_beside_the_signed_files_is_refused(tree: Path, name: str) -> None:
    make, reason, message = EXTRA[name]
    make(tree / name)

    assert refused(tree) == (25, reason, message)


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_that_changes_its_size_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: int
) -> None:
    big = os.urandom((1 << 20) + 17)
    (tmp_path / "big").write_bytes(big)
    readv = os.readv

    def meanwhile(descriptor: int, buffers: Any) -> int:
        os.truncate(tmp_path / "big", len(big) + change)
        return readv(descriptor, buffers)

    monkeypatch.setattr(os, "readv", meanwhile)
    before = os.listdir("/proc/self/fd")

    with pytest.raises(SizeMismatch) as caught:
        check_tree([file_entry("big", big)], tmp_path)

    assert caught.value.message == (f"'big' has {len(big) + change} bytes, the signed file table says {len(big)}")
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    "size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (2 << 20) - 1, 2 << 20, 4 << 20, (9 << 20) + 17]
)
def test_files_of_all_sizes_are_read_whole(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)

    check_tree([file_entry("file", data)], tmp_path)

    (tmp_path / "file").write_bytes(data[:-1] + bytes([data[-1] ^ 1]) if data else b"!")
    with pytest.raises((DigestMismatch, SizeMismatch)):
        check_tree([file_entry("file", data)], tmp_path)


def test_a_read_that_fails_halfway_is_undecided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    big = bytes((1 << 20) + 17)
    (tmp_path / "big").write_bytes(big)
    readv, reads = os.readv, []

    def failing(descriptor: int, buffers: Any) -> int:
        reads.append(descriptor)
        if len(reads) > 1:
            raise OSError(errno.EIO, "Input/output error")
        return readv(descriptor, buffers)

    monkeypatch.setattr(os, "readv", failing)

    with pytest.raises(Undecided) as caught:
        check_tree([file_entry("big", big)], tmp_path)

    assert caught.value.message == (
        "'big' cannot be read: Input/output error; a file that was not read is not verified"
    )


@pytest.mark.parametrize("change", [-1, 1])
def test_a_mapped_file_that_changes_its_size_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: int
) -> None:
    big = os.urandom((9 << 20) + 17)
    (tmp_path / "big").write_bytes(big)
    sha256 = hashlib.sha256

    class Meanwhile:
        def __init__(self) -> None:
            self._digest = sha256()

        def update(self, data: memoryview) -> None:
            self._digest.update(data)
            # Cut what is not reached yet: whole pages of the next piece are gone then.
            os.truncate(tmp_path / "big", len(big) + 1 if change > 0 else 5 << 20)

        def hexdigest(self) -> str:
            return self._digest.hexdigest()

    monkeypatch.setattr(hashlib, "sha256", Meanwhile)
    entry = FileEntry(path="big", size=len(big), sha256=sha256(big).hexdigest(), mode="r")

    with pytest.raises(SizeMismatch) as caught:
        check_tree([entry], tmp_path)

    found = len(big) + 1 if change > 0 else 5 << 20
    assert caught.value.message == f"'big' has {found} bytes, the signed file table says {len(big)}"


@pytest.mark.parametrize("maps_big_files", [True, False])
@pytest.mark.parametrize("size", [0, 1, 2 << 20, (9 << 20) + 17])
def test_reading_and_mapping_give_the_same_digest(tmp_path: Path, size: int, maps_big_files: bool) -> None:
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)

    with (tmp_path / "file").open("rb") as file:
        found = FileHasher(maps_big_files=maps_big_files).sha256(file.fileno(), size)

    assert found == (hashlib.sha256(data).hexdigest(), size)

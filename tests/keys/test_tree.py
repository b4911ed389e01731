"""An installed folder held against its signed file table: exactly these files, nothing else."""

import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.tree import check_tree
from keys.verified import verify_tree
from manifests.errors import SpmError
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
        f"'{tmp_path / 'other'}' is a symbolic link, a plugin's tree has none",
    )


def test_tree_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert refused(tmp_path / "file") == (25, "type", f"'{tmp_path / 'file'}' is not a folder")


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

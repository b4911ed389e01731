"""Paths of a store, files put in place at once, and what the disk says as refusals."""

import errno
import os
import stat
from pathlib import Path

import pytest

from manifests.errors import LimitReached, LinkRefused, PolicyDenied, SpmError, TypeMismatch
from manifests.names import PluginName
from spm_client.store.layout import Layout, make_folder, refusals, write_file


def test_every_path_lies_under_the_root() -> None:
    layout = Layout(Path("/store"))

    assert [
        layout.conf,
        layout.current,
        layout.generation(7),
        layout.blob("ab" + "0" * 62),
        layout.tree(PluginName("log-mel"), "1.0.0+linux"),
        layout.manifest("cd" * 32),
        layout.tmp,
    ] == [
        Path("/store/loader.conf"),
        Path("/store/current"),
        Path("/store/generations/000007.json"),
        Path("/store/blobs/sha256/ab/ab" + "0" * 62),
        Path("/store/plugins/log-mel/1.0.0+linux"),
        Path("/store/manifests/" + "cd" * 32),
        Path("/store/tmp"),
    ]


def test_a_file_is_put_in_place_whole_and_leaves_no_scratch(layout: Layout, scratch: Path) -> None:
    write_file(layout.current, b"000001\n", scratch=scratch)
    write_file(layout.current, b"000002\n", scratch=scratch)

    assert layout.current.read_bytes() == b"000002\n"
    assert list(scratch.iterdir()) == []


def test_a_file_that_cannot_be_written_leaves_the_old_one(layout: Layout, scratch: Path, full_disk: None) -> None:
    layout.current.write_bytes(b"000001\n")

    with pytest.raises(OSError, match="No space left on device"):
        write_file(layout.current, b"000002\n", scratch=scratch)

    assert layout.current.read_bytes() == b"000001\n"


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the disk refuse when what was written is flushed to it, as a full one may."""

    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_folder_in_the_way_leaves_itself(layout: Layout, scratch: Path) -> None:
    (layout.current / "kept").mkdir(parents=True)

    with pytest.raises(IsADirectoryError):
        write_file(layout.current, b"000002\n", scratch=scratch)

    assert [path.name for path in layout.current.iterdir()] == ["kept"]


def test_no_umask_opens_a_folder_of_the_store_to_others(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_folder(tmp_path / "a" / "b")
    finally:
        os.umask(before)

    assert [stat.S_IMODE((tmp_path / place).stat().st_mode) for place in ("a", "a/b")] == [0o755, 0o755]


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)

    make_folder(tmp_path / "a")

    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_a_link_that_leads_nowhere_is_no_folder_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("nowhere")

    with pytest.raises(LinkRefused) as refused:
        make_folder(tmp_path / "a" / "b")

    assert (refused.value.message, refused.value.hint) == (
        f"{tmp_path / 'a'} is a symbolic link that leads nowhere, and spm has a folder there",
        f"`rm {tmp_path / 'a'}`, after a look at what put it there",
    )


def test_a_file_where_a_folder_belongs_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    with pytest.raises(TypeMismatch) as refused:
        make_folder(tmp_path / "a")

    assert (refused.value.message, refused.value.hint) == (
        f"{tmp_path / 'a'} is no folder, and spm has one there",
        "move it elsewhere, and run the command again",
    )


FREE = "free some space there and run the command again"
OWNER = "run as the store's owner, or name another store with `--root`"
ULIMIT = "raise the limit, as in `ulimit -n 4096`"


@pytest.mark.parametrize(
    ("number", "kind", "reason", "message", "hint"),
    [
        (errno.ENOSPC, LimitReached, "limit:disk", "the disk under `/s` is full; nothing was changed", FREE),
        (errno.EDQUOT, LimitReached, "limit:disk", "the disk under `/s` is full; nothing was changed", FREE),
        (
            errno.EMFILE,
            LimitReached,
            "limit:descriptors",
            "no more files can be opened while working in `/s`; nothing was changed",
            ULIMIT,
        ),
        (
            errno.EACCES,
            PolicyDenied,
            "not-writable",
            "the store `/s` cannot be written: Permission denied at `/s/x`",
            OWNER,
        ),
        (
            errno.EROFS,
            PolicyDenied,
            "not-writable",
            "the store `/s` cannot be written: Read-only file system at `/s/x`",
            OWNER,
        ),
        (errno.EIO, LimitReached, "limit:io", "the store `/s` failed: Input/output error at `/s/x`", ""),
        (errno.ENAMETOOLONG, LimitReached, "limit:io", "the store `/s` failed: File name too long at `/s/x`", ""),
    ],
    ids=["full", "quota", "descriptors", "permission", "read-only", "io", "name-too-long"],
)
def test_what_the_disk_says_is_a_refusal(
    number: int, kind: type[SpmError], reason: str, message: str, hint: str
) -> None:
    with pytest.raises(kind) as refused, refusals(Path("/s")):
        raise OSError(number, os.strerror(number), "/s/x")

    assert (refused.value.message, refused.value.reason, refused.value.hint) == (message, reason, hint)


def test_an_error_without_a_number_keeps_its_words() -> None:
    with pytest.raises(LimitReached) as refused, refusals(Path("/s")):
        raise OSError("it broke")

    assert refused.value.message == "the store `/s` failed: it broke at `/s`"


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), refusals(Path("/s")):
        _ = 1 // 0

"""Stamps that can be relied on, and receipts written down under the store's host key."""

import mmap
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keys.public_key import pem_of
from keys.receipts import verify
from keys.tree import BIG_FILE_BYTES, FileStamp
from keys.verified import InstalledPlugin, verify_tree
from spm_client.store.host_key import host_key
from spm_client.store.layout import Layout
from spm_client.store.receipts import MARGIN_NS, StampClock, may_vouch, write_receipt
from tests.keys import builders

BIG = bytes(BIG_FILE_BYTES) + b"!"


@pytest.fixture
def clock(scratch: Path) -> Iterator[StampClock]:
    with StampClock(scratch) as clock:
        yield clock


@pytest.fixture
def opened(layout: Layout, scratch: Path) -> Iterator[int]:
    path = layout.root / "file"
    path.write_bytes(b"content")
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def stamp_of(descriptor: int) -> FileStamp:
    return FileStamp.of(os.fstat(descriptor))


def written_now(scratch: Path) -> int:
    (scratch / "now").write_bytes(b"")
    return (scratch / "now").stat().st_ctime_ns


def test_a_file_just_written_is_settled_once_the_clock_of_its_disk_has_moved_on(
    clock: StampClock, opened: int, scratch: Path
) -> None:
    stamp = stamp_of(opened)

    assert clock.is_settled(opened, stamp)

    assert written_now(scratch) >= stamp.ctime_ns + MARGIN_NS


def test_a_write_in_the_tick_of_the_one_before_cannot_hide_behind_its_stamp(
    clock: StampClock, layout: Layout, scratch: Path
) -> None:
    """Without the wait, a disk whose clock ticks every few milliseconds stamps both writes alike."""
    path = layout.root / "racy"
    for _ in range(10):
        path.write_bytes(b"signed")
        descriptor = os.open(path, os.O_RDONLY)
        stamp = stamp_of(descriptor)
        assert clock.is_settled(descriptor, stamp)

        with path.open("r+b") as file:
            file.write(b"forged")
        os.utime(path, ns=(0, stamp.mtime_ns))

        assert stamp_of(descriptor) == replace(stamp, ctime_ns=stamp_of(descriptor).ctime_ns) != stamp
        os.close(descriptor)


def test_a_file_of_long_ago_is_settled_without_waiting(clock: StampClock, opened: int) -> None:
    stamp = stamp_of(opened)
    assert clock.is_settled(opened, stamp)
    started = time.monotonic()

    assert clock.is_settled(opened, stamp)

    assert time.monotonic() - started < 0.1


def test_a_stamp_of_the_future_or_of_another_disk_is_never_settled(clock: StampClock, opened: int) -> None:
    stamp = stamp_of(opened)

    assert not clock.is_settled(opened, replace(stamp, ctime_ns=stamp.ctime_ns + 3600 * 10**9))
    assert not clock.is_settled(opened, replace(stamp, dev=stamp.dev + 1))


def test_a_file_that_is_open_for_writing_is_not_settled(clock: StampClock, opened: int, layout: Layout) -> None:
    with (layout.root / "file").open("r+b"):
        assert not clock.is_settled(opened, stamp_of(opened))

    assert clock.is_settled(opened, stamp_of(opened))


def test_a_file_that_is_mapped_for_writing_is_not_settled(clock: StampClock, opened: int, layout: Layout) -> None:
    with (layout.root / "file").open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0)
    with mapping:
        assert not clock.is_settled(opened, stamp_of(opened))

    assert clock.is_settled(opened, stamp_of(opened))


def test_opening_for_writing_right_afterwards_ends_no_process(clock: StampClock, opened: int, layout: Layout) -> None:
    assert clock.is_settled(opened, stamp_of(opened))

    (layout.root / "file").write_bytes(b"other")

    assert os.pread(opened, 5, 0) == b"other"


def test_the_clock_leaves_nothing_behind(scratch: Path) -> None:
    with StampClock(scratch):
        assert len(os.listdir(scratch)) == 1

    assert os.listdir(scratch) == []


def installed(layout: Layout, scratch: Path) -> InstalledPlugin:
    verified = builders.verified(files=(builders.file_entry("weights.bin", BIG),))
    tree = layout.tree(verified.manifest.name, verified.manifest.release)
    tree.mkdir(parents=True)
    (tree / "weights.bin").write_bytes(BIG)
    with StampClock(scratch) as clock:
        return verify_tree(verified, tree, is_settled=clock.is_settled)


def test_a_written_receipt_is_the_host_key_s_word_on_what_was_hashed(layout: Layout, scratch: Path) -> None:
    plugin = installed(layout, scratch)

    write_receipt(layout, plugin, scratch)

    place = layout.receipt(plugin.verified.sha256)
    receipt = verify(layout.host_public_key.read_bytes(), place.read_bytes(), plugin.verified.sha256)
    assert receipt.files == plugin.stamps
    assert list(receipt.files) == ["weights.bin"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (place, layout.host_key, layout.host_public_key)}
    assert modes == {place.name: 0o644, "host.key": 0o600, "host.pub": 0o644}
    assert layout.host_public_key.read_bytes() == pem_of(host_key(layout, scratch).public_key())


def test_a_receipt_is_written_over_the_one_before(layout: Layout, scratch: Path) -> None:
    plugin = installed(layout, scratch)
    write_receipt(layout, plugin, scratch)
    place = layout.receipt(plugin.verified.sha256)
    place.write_bytes(b"damaged")

    write_receipt(layout, plugin, scratch)

    verify(layout.host_public_key.read_bytes(), place.read_bytes(), plugin.verified.sha256)
    assert os.listdir(scratch) == []


def test_the_store_s_owner_vouches_and_nobody_else(layout: Layout, scratch: Path) -> None:
    assert may_vouch(layout)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_root_does_not_vouch_in_another_user_s_store(layout: Layout, scratch: Path) -> None:
    """Its key would be one that the owner cannot use."""
    os.chown(layout.root, 1000, 1000)

    assert not may_vouch(layout)

"""Writing a store's receipts, and telling when the stamp of a file can be relied on. Verifies no plugin.

A stamp tells of every later write only under three conditions, which `StampClock.is_settled` makes sure of before a
file is hashed:

1. The clock that stamps the disk's files has moved on since the file's own stamp. Within one tick, 1 to 10 ms and on
   some disks a second, a second write leaves the stamp as it is. So that clock is asked, by writing to a file.
2. Nobody has the file open or mapped for writing: a long write is stamped when it begins, and a store through a mapping
   only when its page was clean. A read lease is given by the kernel only where there is no such writer; a disk without
   leases, as most network disks are, gets no receipts.
3. Both hold when hashing begins. So whoever opens the file later for writing stamps it later.
"""

import fcntl
import os
import signal
import time
from pathlib import Path

from keys.receipts import Receipt, sign
from keys.tree import FileStamp
from keys.verified import InstalledPlugin
from spm_client.store.host_key import host_key
from spm_client.store.layout import Layout, make_folder, write_file

MARGIN_NS = 20_000_000
_LONGEST_WAIT_SECONDS = 0.2
_PAUSE_SECONDS = 0.002


def may_vouch(layout: Layout) -> bool:
    """Tell whether this user keeps the store's host key: its owner, where the store can be written."""
    return layout.root.stat().st_uid == os.geteuid() and os.access(layout.root, os.W_OK, effective_ids=True)


def write_receipt(layout: Layout, plugin: InstalledPlugin, scratch: Path) -> None:
    """Write down by which stamps the plugin's big files are known again.

    Raises: as `host_key`; OSError.
    """
    receipt = sign(host_key(layout, scratch), Receipt.of(plugin))
    place = layout.receipt(plugin.verified.sha256)
    make_folder(place.parent)
    write_file(place, receipt, scratch=scratch)


class StampClock:
    """The clock that stamps the files of a disk, read by writing to a file in `scratch` there.

    Usage: `with StampClock(scratch) as clock: verify_tree(verified, tree, is_settled=clock.is_settled)`.
    """

    def __init__(self, scratch: Path) -> None:
        self._path = scratch / f"stamp-{os.urandom(8).hex()}"

    def __enter__(self) -> "StampClock":
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        self._path.unlink()

    def is_settled(self, descriptor: int, stamp: FileStamp) -> bool:
        """Tell whether every write to this open file from now on must give it another stamp; waits for the clock."""
        return self._has_passed(stamp) and _has_no_writer(descriptor)

    def _has_passed(self, stamp: FileStamp) -> bool:
        deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
        while (now := self._write()).dev == stamp.dev:
            if now.ctime_ns >= stamp.ctime_ns + MARGIN_NS:
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_PAUSE_SECONDS)
        return False

    def _write(self) -> FileStamp:
        os.pwrite(self._descriptor, b".", 0)
        return FileStamp.of(os.fstat(self._descriptor))


def _has_no_writer(descriptor: int) -> bool:
    try:
        # The kernel tells a lease's holder of a new writer by SIGIO, which would end this process; SIGURG is ignored.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True

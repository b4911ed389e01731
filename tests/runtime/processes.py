"""Looking at processes from outside, through /proc. Starts and ends none."""

import os
import time
from pathlib import Path


def is_there(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def wait_gone(pid: int, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while is_there(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.01)


def descendants() -> list[int]:
    """Return all processes below this one."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                status = Path(f"/proc/{entry}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry)] = int(status.rpartition(")")[2].split()[1])
    found, grown = {os.getpid()}, True
    while grown:
        below = {pid for pid, parent in parents.items() if parent in found} | found
        grown, found = below != found, below
    return sorted(found - {os.getpid()})

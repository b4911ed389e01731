"""Looking at processes from outside, through /proc. Starts and ends none."""

import os
import time
from collections.abc import Callable
from pathlib import Path


def is_there(pid: int) -> bool:
    """Tell whether a process lives, or is dead and waits for this very process to take note of it.

    A dead grandchild is its new parent's to reap, which may take init some seconds; it holds nothing any more.
    """
    try:
        state, parent = _state_and_parent(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z" or parent == os.getpid()


def _state_and_parent(pid: int) -> tuple[str, int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], int(fields[1])


def wait_gone(pid: int) -> None:
    wait_until(lambda: not is_there(pid), f"process {pid} is still there")


def wait_until(is_so: Callable[[], bool], otherwise: str = "it has not come to that") -> None:
    """Wait for what comes at once on an idle machine, and in some seconds on a busy one."""
    deadline = time.monotonic() + 20.0
    while not is_so():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.01)


def descendants() -> list[int]:
    """Return all processes below this one, but for the dead that another process has yet to reap."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            try:
                parents[int(entry)] = _state_and_parent(int(entry))[1]
            except (FileNotFoundError, ProcessLookupError):
                continue
    found, grown = {os.getpid()}, True
    while grown:
        below = {pid for pid, parent in parents.items() if parent in found} | found
        grown, found = below != found, below
    return sorted(pid for pid in found - {os.getpid()} if is_there(pid))

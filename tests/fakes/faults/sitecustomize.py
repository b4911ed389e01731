"""Faults from inside a Python process that has this folder on its PYTHONPATH. Imported by nobody.

FAST_CLOCK=N makes its monotonic clock go N times as fast.
NO_FLOCK=NAME makes every flock(2) fail with the error of that name, as a disk without locks does.
FAULT=KIND strikes at the FAULT_AT-th change in the folder FAULT_IN, counted from 1. A change is what Python's audit
events call making, moving, linking and removing, or opening to write. Kinds:
  list        none strikes; each change is a line on stderr
  kill        SIGKILL just before the change
  interrupt   SIGINT just before the change
  disk-full   from that change on nothing can be made in the folder
"""

import errno
import os
import signal
import sys
import time

_MAKING = {"os.link", "os.mkdir"}
_CHANGES = _MAKING | {"os.rename", "os.rmdir", "os.remove", "os.chmod"}


def _hurry(times: int) -> None:
    real = time.monotonic
    time.monotonic = lambda: times * real()


def _watch(kind: str, folder: str, at: int) -> None:
    count = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        is_write = event == "open" and isinstance(arguments[2], int) and bool(arguments[2] & os.O_ACCMODE)
        if not (is_write or event in _CHANGES) or not str(arguments[0]).startswith(folder):
            return
        count += 1
        if kind == "list":
            print(event, arguments[0], file=sys.stderr)
        elif kind == "disk-full" and count >= at and (is_write or event in _MAKING):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))
        elif kind == "kill" and count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "interrupt" and count == at:
            os.kill(os.getpid(), signal.SIGINT)

    sys.addaudithook(watch)


def _without_locks(name: str) -> None:
    import fcntl

    number = getattr(errno, name)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    fcntl.flock = refuse


if "NO_FLOCK" in os.environ:
    _without_locks(os.environ["NO_FLOCK"])
if "FAST_CLOCK" in os.environ:
    _hurry(int(os.environ["FAST_CLOCK"]))
if "FAULT" in os.environ:
    _watch(os.environ["FAULT"], os.environ["FAULT_IN"], int(os.environ.get("FAULT_AT", "0")))

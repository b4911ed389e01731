"""The first process of a worker's pid namespace: reaps, ends with the worker, and cannot be traced. Runs no plugin.

bubblewrap starts the worker's interpreter as that first process. Before it imports anything of torch's or a plugin's,
it forks: the parent stays to guard, the child becomes the worker. When the guard ends, the kernel ends all that is in
the namespace; the kernel ends the guard when bubblewrap dies, and bubblewrap when its host does. So whoever could
write into the guard could outlive the host: it is not dumpable, which closes ptrace and /proc/1/mem to its own uid.
"""

import ctypes
import os
import signal
from typing import NoReturn

from runtime.sandbox import syscalls

_PR_GET_PDEATHSIG, _PR_SET_DUMPABLE = 2, 4

_libc = ctypes.CDLL(None, use_errno=True)


def split() -> None:
    """Return in the worker, a child of this process, which stays as the guard when it is the first of its namespace.

    A process that is not the first splits nothing; the self-test finds it traceable or without a namespace.
    """
    # Whether it is in force is for the self-test to find out.
    syscalls.forbid()
    if os.getpid() != 1 or not is_ended_with_its_parent():
        return
    _set_dumpable(False)
    worker = os.fork()
    if worker:
        _guard(worker)
    _set_dumpable(True)


def is_ended_with_its_parent() -> bool:
    """Tell whether the kernel kills this process when the one that started it dies."""
    number = ctypes.c_int()
    _libc.prctl(_PR_GET_PDEATHSIG, ctypes.byref(number))
    return number.value == signal.SIGKILL


def traceable() -> list[int]:
    """Return the other processes that this one could write into.

    For /proc/PID/mem the kernel asks what it asks for ptrace and process_vm_writev.
    """
    return [pid for pid in others() if _can_open(f"/proc/{pid}/mem")]


def others() -> list[int]:
    """Return all processes in view but this one."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal() and int(entry) != os.getpid()]


def _can_open(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError:
        return False
    return True


def _set_dumpable(is_dumpable: bool) -> None:
    if _libc.prctl(_PR_SET_DUMPABLE, int(is_dumpable), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_DUMPABLE")


def _guard(worker: int) -> NoReturn:
    # The first process ignores whatever signal it does not handle; Python handles this one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The host knows by the channel's end that the worker is gone.
    os.closerange(3, max(map(int, os.listdir("/proc/self/fd"))) + 1)
    while True:
        pid, status = os.wait()
        if pid == worker:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)

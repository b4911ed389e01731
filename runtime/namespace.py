"""A worker's pid namespace as its host holds it: it ends with its first process. Starts nothing."""

import os
import select
import signal
from pathlib import Path


class Namespace:
    """A handle on the first process. When that one ends, the kernel ends every process of the namespace."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def of_worker(cls, pid: int) -> "Namespace | None":
        """Return the handle for a worker that waits for us, or None when it has no pid namespace of its own."""
        first = _first_process(pid)
        if first is None:
            return None
        try:
            namespace = cls(os.pidfd_open(first))
        except OSError:
            return None
        # Numbers are used again: only a first process that the worker still has is the one that was opened.
        if _first_process(pid) == first:
            return namespace
        namespace.close()
        return None

    def kill(self) -> None:
        try:
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
        except ProcessLookupError:
            return

    def wait_gone(self, seconds: float) -> None:
        """Wait until the first process, and so every other, has ended.

        Raises: TimeoutError.
        """
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        if not waiting.poll(max(seconds, 0) * 1000):
            raise TimeoutError

    def close(self) -> None:
        os.close(self._descriptor)


def _first_process(worker: int) -> int | None:
    """Return the first process of the worker's namespace: the worker itself, its parent, or None."""
    deeper = _numbers(os.getpid())
    for pid in (worker, _parent(worker)):
        numbers = _numbers(pid)
        # One of our own namespace, such as this very process, is not to be killed.
        if len(numbers) > len(deeper) and numbers[-1] == "1":
            return pid
    return None


def _numbers(pid: int) -> list[str]:
    return _status(pid).get("NSpid", "").split()


def _parent(pid: int) -> int:
    return int(_status(pid).get("PPid", "0"))


def _status(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)

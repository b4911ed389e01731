"""Hosts that let few threads begin, or none. Makes no claims."""

from threading import Thread

import pytest

NO_THREAD = (
    "no thread can be started to work in: this process may have no more of them, or no more memory",
    "raise the limit, as in `ulimit -u 4096` and `ulimit -v unlimited`, or the container's, as in `--pids-limit`",
)


def let_begin(monkeypatch: pytest.MonkeyPatch, count: int, name: str, error: type[Exception] = RuntimeError) -> None:
    """Let so many threads start whose names begin as `name` says, and no more; others start as they will."""
    start, left = Thread.start, [None] * count

    def limited(thread: Thread) -> None:
        if thread.name.startswith(name):
            if not left:
                raise error("can't start new thread")
            left.pop()
        start(thread)

    monkeypatch.setattr(Thread, "start", limited)

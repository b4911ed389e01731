"""Several calls at once, in threads that a command which is stopped does not wait for. Knows nothing of the calls."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread
from typing import TypeVar

from manifests.errors import LimitReached, SpmError

PARALLEL = 8

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def at_once(call: Callable[[T], R], items: Iterable[T]) -> Iterator[list["Future[R]"]]:
    """Give the future of each call, in the order of the items: `with at_once(fetch, paths) as answers: ...`.

    What has not begun when the block ends never does. What waits for the network then goes on unseen until its own
    time is over or the process ends, so a call must change nothing.
    """
    left: deque[tuple[T, Future[R]]] = deque((item, Future()) for item in items)
    futures = [future for _, future in left]
    list(begin(min(PARALLEL, len(left)), lambda: _work(call, left), name="at-once"))
    try:
        yield futures
    finally:
        left.clear()


def begin(count: int, work: Callable[[], None], *, name: str) -> Iterator[Thread]:
    """Start so many threads that each work until nothing is left, and yield each; fewer where no more can begin.

    Raises: LimitReached where not even one can.
    """
    for number in range(count):
        thread = Thread(target=work, name=f"{name}-{number}", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:  # what Python says of either limit
            if not number:
                raise LimitReached(
                    "no thread can be started to work in: this process may have no more of them, or no more memory",
                    reason="limit:threads",
                    hint="raise the limit, as in `ulimit -u 4096` and `ulimit -v unlimited`, or the container's, as in "
                    "`--pids-limit`",
                ) from error
            return
        yield thread


def _work(call: Callable[[T], R], left: "deque[tuple[T, Future[R]]]") -> None:
    while left:
        try:
            item, future = left.popleft()
        except IndexError:
            return  # another thread has just taken the last
        try:
            future.set_result(call(item))
        except (SpmError, OSError) as error:
            future.set_exception(error)
        except BaseException as error:
            future.set_exception(error)
            raise

"""Connections that are shut down at a point in time, whatever they wait for. Knows no registry.

A read time-out alone bounds nothing: a server that sends one byte now and then, in a header or between two chunks,
starts it anew each time. So a thread shuts the socket down, and the read that waits on it ends.
"""

import math
import socket
import threading
import time
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from spm_client.adapters.at_once import begin

HEADER_SECONDS = 60.0
"""From the end of a request to the end of the answer's headers."""
_LATE = "the headers did not come in time"


class Deadline:
    """Shut a socket down at `moment`, unless the block ends before. `is_over` tells that it was."""

    def __init__(self, watchdog: "Watchdog", seconds: float, connection: socket.socket | None) -> None:
        self.moment = time.monotonic() + seconds
        self.is_over = False
        self._watchdog = watchdog
        self._connection = connection

    def __enter__(self) -> "Deadline":
        self._watchdog.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._watchdog.discard(self)

    def cut(self) -> None:
        self.is_over = True
        if self._connection is not None:
            with suppress(OSError):  # it has ended by itself
                self._connection.shutdown(socket.SHUT_RDWR)


class Watchdog:
    """One thread that cuts whatever is late: a timer a request would start two threads for each small file.

    Usage: `with watchdog.deadline(60.0, connection) as deadline: ...`. It starts with the first deadline and ends with
    `close`; it wakes when the nearest deadline that it has seen is reached, not whenever one is met.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: set[Deadline] = set()
        self._wakes = math.inf
        self._thread: threading.Thread | None = None

    def deadline(self, seconds: float, connection: socket.socket | None) -> Deadline:
        return Deadline(self, seconds, connection)

    def add(self, deadline: Deadline) -> None:
        with self._changed:
            if self._thread is None:
                self._thread = next(begin(1, self._watch, name="deadlines"))
            elif deadline.moment < self._wakes:
                self._changed.notify()
            self._running.add(deadline)

    def discard(self, deadline: Deadline) -> None:
        with self._changed:
            self._running.discard(deadline)

    def close(self) -> None:
        """End the thread; what runs then is watched no more."""
        with self._changed:
            self._thread = None
            self._changed.notify()

    def _watch(self) -> None:
        with self._changed:
            while self._thread is threading.current_thread():
                now = time.monotonic()
                for late in [deadline for deadline in self._running if deadline.moment <= now]:
                    self._running.discard(late)
                    late.cut()
                self._wakes = min((deadline.moment for deadline in self._running), default=math.inf)
                # A moment centuries ahead is more than a lock can wait for.
                self._changed.wait(min(self._wakes - now, threading.TIMEOUT_MAX))


class _Watched(HTTPConnection):
    """Keeps its socket at hand, which http.client forgets once an answer is the last, and bounds the headers."""

    watchdog: Watchdog
    kept: socket.socket | None = None

    def connect(self) -> None:
        super().connect()
        self.kept = self.sock

    def getresponse(self) -> Any:
        with self.watchdog.deadline(HEADER_SECONDS, self.kept) as deadline:
            try:
                response = super().getresponse()
            except (OSError, HTTPException) as error:
                if deadline.is_over:
                    raise TimeoutError(_LATE) from error
                raise
            # Headers that the cut has ended can look complete.
            if deadline.is_over:
                response.close()
                raise TimeoutError(_LATE)
            return response

    def close(self) -> None:
        super().close()
        self.kept = None


class _WatchedTLS(_Watched, HTTPSConnection):
    pass


def watched_pools(watchdog: Watchdog, **options: Any) -> urllib3.PoolManager:
    """Return pools whose connections can be given a deadline, and whose answers' headers have one."""
    plain = type("_Plain", (_Watched,), {"watchdog": watchdog})
    over_tls = type("_OverTLS", (_WatchedTLS,), {"watchdog": watchdog})
    manager = urllib3.PoolManager(**options)
    manager.pool_classes_by_scheme = {
        "http": type("_Pool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
        "https": type("_PoolTLS", (HTTPSConnectionPool,), {"ConnectionCls": over_tls}),
    }
    return manager


def socket_of(response: urllib3.BaseHTTPResponse) -> socket.socket | None:
    """Return the socket that a response comes over; None once it has been given back."""
    return getattr(response.connection, "kept", None)

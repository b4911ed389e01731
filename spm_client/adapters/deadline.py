"""Connections that are shut down at a point in time, whatever they wait for. Knows no registry.

A read time-out alone bounds nothing: a server that sends one byte now and then, in a header or between two chunks,
starts it anew each time. So a timer shuts the socket down, and the read that waits on it ends.
"""

import socket
import threading
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

HEADER_SECONDS = 60.0
"""From the end of a request to the end of the answer's headers."""
_LATE = "the headers did not come in time"


class Deadline:
    """Shut a socket down after so many seconds, unless the block ends before. `is_over` tells that it was."""

    def __init__(self, seconds: float, connection: socket.socket | None) -> None:
        self.is_over = False
        self._connection = connection
        self._timer = threading.Timer(max(seconds, 0.0), self._cut)
        self._timer.daemon = True

    def __enter__(self) -> "Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _cut(self) -> None:
        self.is_over = True
        if self._connection is not None:
            with suppress(OSError):  # it has ended by itself
                self._connection.shutdown(socket.SHUT_RDWR)


class _Watched(HTTPConnection):
    """Keeps its socket at hand, which http.client forgets once an answer is the last, and bounds the headers."""

    kept: socket.socket | None = None

    def connect(self) -> None:
        super().connect()
        self.kept = self.sock

    def getresponse(self) -> Any:
        with Deadline(HEADER_SECONDS, self.kept) as deadline:
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


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Watched


class _PoolTLS(HTTPSConnectionPool):
    ConnectionCls = _WatchedTLS


def watched_pool(**options: Any) -> urllib3.PoolManager:
    """Return a pool whose connections can be given a deadline."""
    manager = urllib3.PoolManager(**options)
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _PoolTLS}
    return manager


def socket_of(response: urllib3.BaseHTTPResponse) -> socket.socket | None:
    """Return the socket that a response comes over; None once it has been given back."""
    return getattr(response.connection, "kept", None)

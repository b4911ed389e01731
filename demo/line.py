"""A line between a host and a registry that counts what comes down it, and can stop. Alters nothing on the way."""

import contextlib
import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Self

_PIECE = 16 * 1024


class Line(socketserver.ThreadingTCPServer):
    """Carries every connection to the registry's port; once `stops_after` bytes came down, nothing more does."""

    daemon_threads = True

    def __init__(self, registry_port: int, *, stops_after: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.registry_port = registry_port
        self.carried = 0
        self._stops_after: int | None = stops_after
        self._is_mended = threading.Event()
        self._count_lock = threading.Lock()

    @property
    def port(self) -> int:
        found: int = self.server_address[1]
        return found

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def mend(self) -> None:
        """Count anew and stop no more."""
        self.carried, self._stops_after = 0, None
        self._is_mended.set()

    def count(self, came: int) -> None:
        """Count what has come down; once the line has stopped, return only when it is mended."""
        with self._count_lock:
            self.carried += came
            is_held = self._stops_after is not None and self.carried >= self._stops_after
        if is_held:
            self._is_mended.wait()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()


class _Connection(socketserver.BaseRequestHandler):
    """One connection: two streams, each until an end of it hangs up."""

    request: socket.socket
    server: Line

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.registry_port)) as registry:
            threading.Thread(target=_carry, args=(self.request, registry, lambda _: None), daemon=True).start()
            _carry(registry, self.request, self.server.count)


def _carry(source: socket.socket, target: socket.socket, count: Callable[[int], None]) -> None:
    # An OSError is the other end hanging up, as a killed command does.
    with contextlib.suppress(OSError):
        while piece := source.recv(_PIECE):
            target.sendall(piece)
            count(len(piece))
        target.shutdown(socket.SHUT_WR)

"""A reverse proxy that alters what a registry says, on the wire and by rule. Knows nothing of plugins.

It is a real HTTP server between a client and a registry: `with TamperingProxy(url) as wire: wire.alter(PATH, change)`.
"""

import http.client
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import urlsplit

PROBLEM = "application/problem+json"
_UPSTREAM_SECONDS = 30
_CHUNK = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What goes back. `length` is what the header says; None leaves the header out, so that the end closes it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: Iterable[bytes]
    length: int | None

    @property
    def data(self) -> bytes:
        return b"".join(self.body)


Change = Callable[[Reply], Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request that came in."""

    method: str
    path: str
    headers: dict[str, str] = field(hash=False)


def flip(place: int) -> Change:
    """Turn one bit of the byte at `place`; -1 is the last."""

    def change(reply: Reply) -> Reply:
        data = bytearray(reply.data)
        data[place] ^= 1
        return replace(reply, body=[bytes(data)])

    return change


def body(data: bytes) -> Change:
    """Send other bytes in the place of the registry's, as a success."""
    return lambda reply: replace(reply, status=200, body=[data], length=len(data))


def edit(change_data: Callable[[bytes], bytes]) -> Change:
    """Send what a function makes of the registry's bytes."""
    return lambda reply: body(change_data(reply.data))(reply)


def cut(keep: int, *, is_open: bool = False) -> Change:
    """Send the first bytes only; the header tells the whole length where `is_open`, else what is sent."""
    return lambda reply: replace(
        reply, body=[reply.data[:keep]], length=reply.length if is_open else min(keep, len(reply.data))
    )


def answer(status: int, data: bytes = b"", content_type: str = "text/html") -> Change:
    """Answer something else."""
    headers = (("Content-Type", content_type),)
    return lambda _: Reply(status=status, headers=headers, body=[data], length=len(data))


def redirect(location: str) -> Change:
    """Answer 302."""
    return lambda _: Reply(status=302, headers=(("Location", location),), body=[b""], length=0)


def delay(seconds: float) -> Change:
    """Wait before the answer."""

    def change(reply: Reply) -> Reply:
        time.sleep(seconds)
        return reply

    return change


def endless(reply: Reply) -> Reply:
    """Send bytes until the other side has had enough."""

    def flood() -> Iterator[bytes]:
        while True:
            yield b"{" * _CHUNK

    return replace(reply, status=200, body=flood(), length=None)


def drip(seconds: float) -> Change:
    """Send a byte now and then, without end."""

    def drops() -> Iterator[bytes]:
        while True:
            time.sleep(seconds)
            yield b" "

    return lambda reply: replace(reply, status=200, body=drops(), length=None)


class TamperingProxy:
    """Forwards to one registry; the last rule whose pattern fits the whole path changes the answer."""

    def __init__(self, upstream: str) -> None:
        address = urlsplit(upstream)
        self._upstream = (address.hostname or "", address.port or 80)
        self._rules: list[tuple[re.Pattern[str], Change]] = []
        self.seen: list[Seen] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.seen]

    def alter(self, pattern: str, change: Change) -> None:
        """Change every answer to a path that the regular expression fits whole."""
        self._rules.append((re.compile(pattern), change))

    def mend(self) -> None:
        """Change nothing any more."""
        self._rules.clear()

    def __enter__(self) -> "TamperingProxy":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _change(self, path: str, reply: Reply) -> Reply:
        fitting = (change for pattern, change in reversed(self._rules) if pattern.fullmatch(path))
        change = next(fitting, None)
        return change(reply) if change else reply

    def _forward(self, request: BaseHTTPRequestHandler) -> Reply:
        connection = http.client.HTTPConnection(*self._upstream, timeout=_UPSTREAM_SECONDS)
        try:
            length = int(request.headers.get("Content-Length", "0"))
            sent = request.rfile.read(length) if length else None
            headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
            connection.request(request.command, request.path, body=sent, headers=headers)
            response = connection.getresponse()
            data = response.read()
            kept = tuple(
                (name, value)
                for name, value in response.getheaders()
                if name.lower() not in {"content-length", "transfer-encoding", "connection", "date", "server"}
            )
            return Reply(status=response.status, headers=kept, body=[data], length=len(data))
        finally:
            connection.close()

    def _handler(proxy) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's below
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                proxy.seen.append(
                    Seen(
                        method=self.command,
                        path=self.path,
                        headers={name.lower(): value for name, value in self.headers.items()},
                    )
                )
                self._send(proxy._change(self.path, proxy._forward(self)))

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _pass_on  # noqa: N815 - http.server's own names

            def _send(self, reply: Reply) -> None:
                self.send_response(reply.status)
                for name, value in reply.headers:
                    self.send_header(name, value)
                if reply.length is not None:
                    self.send_header("Content-Length", str(reply.length))
                else:
                    self.send_header("Connection", "close")
                self.end_headers()
                self._send_body(reply)

            def _send_body(self, reply: Reply) -> None:
                sent = 0
                try:
                    for piece in reply.body:
                        self.wfile.write(piece)
                        sent += len(piece)
                    self.wfile.flush()
                except OSError:
                    # The client hung up, which is what some tests are about.
                    self.close_connection = True
                if sent != reply.length:
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
                del format, args

        return Handler

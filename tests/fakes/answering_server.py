"""A server on loopback that answers as a test says, well or badly, and remembers what came. Knows no registry."""

import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that hangs up resets the connection, which is what some tests are about.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class AnsweringServer:
    """Answers each request as `answer` does, and remembers what came."""

    def __init__(self) -> None:
        self.answer: Answer = send(200, b"{}")
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                server.seen.append((self.command, self.path, headers, body))
                try:
                    server.answer(self)
                except OSError:
                    self.close_connection = True

            do_GET = do_HEAD = do_POST = do_PUT = _answer  # noqa: N815 - http.server's own names

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
                del format, args

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> "AnsweringServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def send(status: int, body: bytes = b"", *, length: int | None = -1, **headers: str) -> Answer:
    """Answer with a body; `length` None sends no Content-Length, so that the end closes it."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        if length is not None:
            handler.send_header("Content-Length", str(len(body) if length < 0 else length))
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = length is None or length > len(body)

    return answer


def drip(handler: BaseHTTPRequestHandler) -> None:
    """Send a byte now and then, without end."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(1000):
        handler.wfile.write(b"x")
        handler.wfile.flush()
        time.sleep(0.02)


def flood(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"x" * 65536)


def serve_blob(data: bytes, *, until: int | None = None, has_ranges: bool = True) -> Answer:
    """Answer as a registry does that has these bytes: whole, or from the byte on that `Range` names.

    `until` ends the connection before the byte of that number in the blob.
    """

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked = handler.headers.get("Range", "") if has_ranges else ""
        first = int(asked.removeprefix("bytes=").removesuffix("-") or 0)
        handler.send_response(206 if asked else 200)
        if asked:
            handler.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        handler.send_header("Content-Length", str(len(data) - first))
        handler.end_headers()
        handler.wfile.write(data[first:until])
        handler.close_connection = until is not None

    return answer


def in_turn(*answers: Answer) -> Answer:
    """Give each answer once, in order, and the last for ever."""
    left = list(answers)
    return lambda handler: (left.pop(0) if len(left) > 1 else left[0])(handler)

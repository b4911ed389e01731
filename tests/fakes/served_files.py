"""A plain HTTP server for files that a test made, as a registry serves them to readers. Verifies nothing."""

import hashlib
import json
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Files = Callable[[str], bytes | None]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that is gone before its last answer was read resets the connection: no fault, and no traceback.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ServedFiles:
    """Serves what `files` returns for a path; a 404 is a problem document and a held file is 304, as a registry has it.

    Usage: `with ServedFiles(files.get) as served: ... served.url`. `seen` has each request's path and status.
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.seen: list[tuple[str, int]] = []
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "ServedFiles":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(served) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - `self` is the handler's below
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                data = served.files(self.path)
                if data is None:
                    detail = f"this registry has no {self.path}"
                    self._send(404, json.dumps({"type": "not-found", "detail": detail}).encode())
                elif self.headers.get("If-None-Match") == _etag(data):
                    self._send(304, b"")
                else:
                    self._send(200, data, ETag=_etag(data))

            def _send(self, status: int, data: bytes, **headers: str) -> None:
                served.seen.append((self.path, status))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status == 404:
                    self.send_header("Content-Type", "application/problem+json")
                if status != 304:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
                del format, args

        return Handler


def _etag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()}"'

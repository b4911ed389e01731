"""The registry under granian's asynchronous interface: no slow client holds a thread. Knows no routes.

A view runs in a thread and takes its body from here, at a pace that has a floor. What a client still sends after
the view has answered is taken in for a moment, because many look for an answer only after their last byte.
"""

import asyncio
import sys
from collections.abc import Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from manifests.errors import RegistryRefused
from registry.api.answers import FileSpan, Headers
from registry.api.fast_reads import Wsgi

GRACE_SECONDS = 15.0
MIN_BYTES_PER_SECOND = 64 << 10
MAX_DRAIN = 8 << 20
DRAIN_SECONDS = 2.0
_CLOSE = ("Connection", "close")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    status: int
    headers: Headers
    body: bytes | FileSpan


class Gateway:
    """An RSGI application in front of a WSGI one."""

    def __init__(self, behind: Wsgi, threads: int) -> None:
        self._behind = behind
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="request")
        self._reads: set[Future[bytes]] = set()

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        """Answer one request."""
        body = PacedBody(protocol, asyncio.get_running_loop(), self._reads)
        environ = _environ(scope, body)
        answered = await asyncio.get_running_loop().run_in_executor(self._pool, self._answer, environ)
        is_over = await body.drained() if _has_body(environ) else True
        body.release()
        headers = answered.headers if is_over else [*answered.headers, _CLOSE]
        if isinstance(answered.body, bytes):
            protocol.response_bytes(answered.status, headers, answered.body)
        else:
            span = answered.body
            protocol.response_file_range(answered.status, headers, span.path, span.first, span.first + span.length)

    def __rsgi_del__(self, loop: Any) -> None:
        """Let go of those who wait for a body: the loop that would bring it has ended."""
        for read in tuple(self._reads):
            read.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _answer(self, environ: dict[str, Any]) -> _Answered:
        told: list[tuple[str, Headers]] = []
        parts = self._behind(environ, lambda status, headers, exc_info=None: told.append((status, headers)))
        body = parts if isinstance(parts, FileSpan) else b"".join(parts)
        _close(parts)
        status, headers = told[-1]
        return _Answered(status=int(status.split(" ", 1)[0]), headers=headers, body=body)


class PacedBody:
    """A request body that is given up once it comes slower than it may. Read in a thread, filled by the loop."""

    def __init__(self, protocol: Any, loop: asyncio.AbstractEventLoop, reads: set[Future[bytes]]) -> None:
        self._chunks: Any = aiter(protocol)
        self._loop = loop
        self._reads = reads
        self._held = b""
        self._got = 0
        self._started: float | None = None
        self._is_over = False
        self._is_given_up = False

    def read(self, size: int) -> bytes:
        """Return at least one byte and at most `size`; none when the body is over.

        Raises:
            RegistryRefused: it comes too slowly (`slow-body`).
        """
        if not self._held and not self._is_over:
            self._held = self._await(self._paced())
        chunk, self._held = self._held[:size], self._held[size:]
        return chunk

    async def drained(self) -> bool:
        """Take in what is still coming, for a moment; tell whether the body is over."""
        if self._is_given_up:
            return False
        until, taken = self._loop.time() + DRAIN_SECONDS, 0
        try:
            while not self._is_over and taken <= MAX_DRAIN:
                taken += len(await self._next(until))
        except TimeoutError:
            return False
        return self._is_over

    def release(self) -> None:
        """Let the server have the connection back, though an error's traceback may still hold this body."""
        self._chunks, self._held, self._is_over = None, b"", True

    def _await(self, paced: Any) -> bytes:
        read: Future[bytes] = asyncio.run_coroutine_threadsafe(paced, self._loop)
        self._reads.add(read)
        try:
            return read.result()
        except CancelledError:
            self._is_over = True
            return b""
        finally:
            self._reads.discard(read)

    async def _paced(self) -> bytes:
        if self._started is None:
            self._started = self._loop.time()
        try:
            return await self._next(self._started + GRACE_SECONDS + self._got / MIN_BYTES_PER_SECOND)
        except TimeoutError as error:
            self._is_given_up = True
            raise RegistryRefused(
                f"the request body came too slowly and was given up after {self._got} bytes",
                reason="slow-body",
                hint="try again when the network is better; a file goes on from its `Upload-Offset`",
            ) from error

    async def _next(self, until: float) -> bytes:
        try:
            async with asyncio.timeout_at(until):
                chunk: bytes = await anext(self._chunks)
        except StopAsyncIteration:
            self._is_over = True
            return b""
        self._got += len(chunk)
        return chunk


def _environ(scope: Any, body: PacedBody) -> dict[str, Any]:
    host, _, port = scope.server.rpartition(":")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": scope.method,
        "SCRIPT_NAME": "",
        # WSGI carries the bytes of a path as Latin-1.
        "PATH_INFO": scope.path.encode().decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "SERVER_NAME": host,
        "SERVER_PORT": port,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": scope.client.rpartition(":")[0],
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.scheme,
        "wsgi.input": body,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name, value in scope.headers.items():
        key = name.upper().replace("-", "_")
        variable = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        environ[variable] = f"{environ[variable]}, {value}" if variable in environ else value
    return environ


def _has_body(environ: dict[str, Any]) -> bool:
    return environ.get("CONTENT_LENGTH", "0") != "0" or "HTTP_TRANSFER_ENCODING" in environ


def _close(parts: Iterable[bytes]) -> None:
    close = getattr(parts, "close", None)
    if close is not None:
        close()

"""One request over HTTP and its answer, bounded in bytes and time, failures in spm's words. Follows no redirect.

No content encoding is accepted, so that the bytes are those that were signed.
"""

import errno
import re
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import BadStatusLine, HTTPException, LineTooLong, RemoteDisconnected

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from manifests.errors import BadResponse, LimitReached, RegistryTimeout, RegistryUnreachable, SpmError
from spm_client.adapters.deadline import Watchdog, socket_of, watched_pools
from spm_client.adapters.problems import refusal_of
from spm_client.adapters.source import ConnectionFailed, TransferCut, TransferStalled

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
TOTAL_SECONDS = 120.0
"""For one document; a blob has the minimum rate below instead."""
MINIMUM_RATE = 16 * 1024
"""Bytes a second that a download must reach on average after its first 30 seconds."""
BUSY_RETRIES, BUSY_SECONDS = 3, 10
"""How often a read is asked again that was answered 503 with `Retry-After`, and the longest wait that is heeded."""
CHUNK = 256 * 1024
MAX_JSON = 8 << 20
_BUSY = 503
_SECONDS = re.compile(r"[0-9]{1,4}")
_AGAIN = "run the command again"


class Wire:
    """Connections to a registry and to where its redirects point. Close it."""

    def __init__(self, registry: str, connections: int) -> None:
        self._registry = registry
        self._watchdog = Watchdog()
        self._pools = watched_pools(
            self._watchdog,
            maxsize=connections,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
        )
        self._pool_of: dict[str, urllib3.HTTPConnectionPool] = {}

    def close(self) -> None:
        self._pools.clear()
        self._watchdog.close()

    def send(
        self, method: str, url: str, headers: Mapping[str, str], *, body: bytes | None = None
    ) -> urllib3.BaseHTTPResponse:
        """Send a request and return what answers, whatever it says.

        Raises: RegistryUnreachable; RegistryTimeout; BadResponse for headers without bound; LimitReached where this
        host can open no connection more.
        """
        sent = {"Accept-Encoding": "identity", "User-Agent": "spm", **headers}
        try:
            return self._pool(url).urlopen(
                method, _target(url), body=body, headers=sent, redirect=False, preload_content=False
            )
        except HTTPError as error:
            _require_descriptors(error)
            _require_headers(error, url)
            raise self._unreachable(error, url) from error

    def read(
        self, url: str, headers: Mapping[str, str] | None = None, *, seconds: float = TOTAL_SECONDS
    ) -> urllib3.BaseHTTPResponse:
        """Return what answers a GET; one that is too busy just now is asked again after the time that it names.

        Only a read is: what was sent along with a write may have been taken in. Raises: as `send`.
        """
        ends = time.monotonic() + seconds
        for _ in range(BUSY_RETRIES):
            response = self.send("GET", url, headers or {})
            pause = _pause(response)
            if pause is None or time.monotonic() + pause > ends:
                return response
            response.close()
            time.sleep(pause)
        return self.send("GET", url, headers or {})

    def whole(
        self,
        response: urllib3.BaseHTTPResponse,
        url: str,
        max_bytes: int,
        *,
        beyond: Callable[..., SpmError] = BadResponse,
        seconds: float | None = None,
        is_read: bool = True,
    ) -> bytes:
        """Return the body of a success.

        Raises: as `require_ok` and `chunks`; `beyond` for more than `max_bytes`.
        """
        self.require_ok(response, url, is_read=is_read)
        allowed = TOTAL_SECONDS if seconds is None else min(seconds, TOTAL_SECONDS)
        data = b"".join(self.chunks(response, url, max_bytes + 1, time.monotonic() + allowed))
        if len(data) > max_bytes:
            raise beyond(f"`{shown(url)}` sent more than the {max_bytes} bytes allowed", url=shown(url))
        return data

    def chunks(self, response: urllib3.BaseHTTPResponse, url: str, limit: int, deadline: float) -> Iterator[bytes]:
        """Yield the body in pieces and stop after `limit` bytes.

        Raises: TransferCut, TransferStalled; RegistryTimeout at the deadline.
        """
        left = limit
        with self._watchdog.deadline(deadline - time.monotonic(), socket_of(response)) as watch:
            while left:
                try:
                    chunk = response.read1(min(CHUNK, left))
                except HTTPError as error:
                    raise (_too_slow(url) if watch.is_over else self._broken(error, url)) from error
                if watch.is_over or time.monotonic() > deadline:
                    raise _too_slow(url)
                if not chunk:
                    return
                left -= len(chunk)
                yield chunk
                if response.length_remaining == 0:
                    return

    def require_ok(self, response: urllib3.BaseHTTPResponse, url: str, *, is_read: bool) -> None:
        """Refuse all but a success; on what a read brings the verdict is this host's own.

        Raises: BadResponse, or the refusal that the registry names.
        """
        if encoding := response.headers.get("Content-Encoding"):
            raise BadResponse(f"`{shown(url)}` sent the encoding {encoding[:40]!r}, which was not asked for")
        if 200 <= response.status < 300:
            return
        if 300 <= response.status < 400:
            raise _redirected(response, url)
        body = b"".join(self.chunks(response, url, MAX_JSON, time.monotonic() + READ_SECONDS))
        content_type = response.headers.get("Content-Type", "")
        raise refusal_of(response.status, content_type, body, url=shown(url), is_read=is_read)

    def _pool(self, url: str) -> urllib3.HTTPConnectionPool:
        """Return the connections to a URL's host, which urllib3 would look up anew by all its options each time."""
        place = url.removesuffix(_target(url))
        if place not in self._pool_of:
            self._pool_of[place] = self._pools.connection_from_url(url)
        return self._pool_of[place]

    def _broken(self, error: HTTPError, url: str) -> RegistryUnreachable:
        """Return the refusal of a body that does not come to its end."""
        if isinstance(error, ReadTimeoutError):
            return TransferStalled(
                f"`{shown(url)}` sent nothing for {READ_SECONDS:.0f} seconds", hint=_AGAIN, url=shown(url)
            )
        if isinstance(error, ProtocolError | SSLError):
            return TransferCut(f"`{shown(url)}` was cut off before its end", hint=_AGAIN, url=shown(url))
        return self._unreachable(error, url)

    def _unreachable(self, error: HTTPError, url: str) -> RegistryUnreachable:
        is_own = url.startswith(self._registry)
        place = f"the registry at `{self._registry}`" if is_own else f"`{shown(url)}`, to which the registry points,"
        # A refused connection is a ConnectTimeoutError to urllib3, and no time-out to anybody else.
        if isinstance(error, ReadTimeoutError | ConnectTimeoutError) and not isinstance(error, NewConnectionError):
            hint = "run the command again, or ask whether the registry is up"
            return RegistryTimeout(f"{place} did not answer in time", hint=hint, url=shown(url))
        kind = ConnectionFailed if isinstance(error, NewConnectionError | ProtocolError) else RegistryUnreachable
        return kind(
            f"{place} cannot be reached: {_plainly(error)}",
            hint="check `registry.url` in loader.conf and whether the registry is up",
            url=shown(url),
        )


class Opened:
    """Give the connection back whatever happens: drained responses are used again, others are closed."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def __enter__(self) -> urllib3.BaseHTTPResponse:
        return self._response

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._response.close()
        self._response.release_conn()


def shown(url: str) -> str:
    """Return a URL as it may be told: what follows a `?` can be a signature that opens an object store."""
    return url.partition("?")[0]


def _target(url: str) -> str:
    """Return what of a URL a request line holds."""
    return "/" + "".join(url.split("/", 3)[3:])


def _pause(response: urllib3.BaseHTTPResponse) -> int | None:
    after = response.headers.get("Retry-After", "")
    is_heeded = response.status == _BUSY and _SECONDS.fullmatch(after) and int(after) <= BUSY_SECONDS
    return int(after) if is_heeded else None


def _too_slow(url: str) -> RegistryTimeout:
    return RegistryTimeout(
        f"`{shown(url)}` was too slow and was given up",
        hint="run the command again when the network is better",
        url=shown(url),
    )


def _redirected(response: urllib3.BaseHTTPResponse, url: str) -> BadResponse:
    location = shown(response.headers.get("Location", ""))[:200]
    return BadResponse(
        f"`{shown(url)}` answered {response.status} and points to {location!r}, but spm follows no redirect",
        hint="if the registry has moved, write where it is now as `registry.url` in loader.conf",
        url=shown(url),
        status=response.status,
        location=location,
    )


def _require_descriptors(error: HTTPError) -> None:
    """Refuse where it is this host that can open no more connections: no registry is to blame for it."""
    inner = _innermost(error)
    if isinstance(inner, OSError) and inner.errno in {errno.EMFILE, errno.ENFILE}:
        raise LimitReached(
            "no more files can be opened, and none for a connection",
            reason="limit:descriptors",
            hint="raise the limit, as in `ulimit -n 4096`",
        ) from error


def _require_headers(error: HTTPError, url: str) -> None:
    """Refuse an answer whose headers are more than http.client reads: a line of 64 KiB, or a hundred of them."""
    inner = _innermost(error)
    if isinstance(inner, LineTooLong) or type(inner) is HTTPException:
        raise BadResponse(
            f"`{shown(url)}` answered with headers beyond all bounds: {inner}",
            hint="check `registry.url` in loader.conf, or ask the registry's administrator",
            url=shown(url),
        ) from error


def _innermost(error: HTTPError) -> BaseException:
    return error.__cause__ or next((one for one in error.args if isinstance(one, Exception)), error)


def _plainly(error: HTTPError) -> str:
    """Return what the innermost error says, without the objects around it."""
    inner = _innermost(error)
    if isinstance(inner, BadStatusLine) and not isinstance(inner, RemoteDisconnected):
        return "what answers there does not speak HTTP"
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return str(inner).rpartition(": ")[2] or type(error).__name__

"""The registry over HTTP, everything bounded in bytes and time. Believes nothing that it hands on.

Redirects are not followed and no content encoding is accepted, so that the bytes are those that were signed.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from http.client import BadStatusLine, RemoteDisconnected
from typing import Any, BinaryIO

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
)

from manifests.errors import AuthRequired, BadResponse, NotFound, RegistryTimeout, RegistryUnreachable, SpmError, TooBig
from spm_client.adapters.deadline import Deadline, socket_of, watched_pool
from spm_client.adapters.problems import refusal_of

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
TOTAL_SECONDS = 120.0
"""For one document; a blob has the minimum rate below instead."""
MINIMUM_RATE = 16 * 1024
"""Bytes a second that a download must reach on average after its first 30 seconds."""
NOT_MODIFIED, NOT_FOUND = 304, 404
CHUNK = 256 * 1024
MAX_JSON = 8 << 20
UPLOAD_PART = 8 << 20
_OFFSET = re.compile(r"[0-9]{1,15}")
_TOKEN = re.compile(r"[!-~]{1,512}")


class RegistryClient:
    """One registry at one URL. Close it, or use it as a context manager."""

    def __init__(self, url: str, *, token: str | None = None, connections: int = 8) -> None:
        if token and not _TOKEN.fullmatch(token):
            raise AuthRequired(
                "the registry token is not one: a token is up to 512 letters, digits and signs without spaces",
                hint="`spm login` keeps a token; `SPM_TOKEN` stands before it where it is set",
            )
        self.url = url.rstrip("/")
        self._headers = {"Accept-Encoding": "identity", "User-Agent": "spm"}
        self._authorization = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = watched_pool(
            maxsize=connections,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS),
        )

    def __enter__(self) -> "RegistryClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.clear()

    def document(self, path: str, *, max_bytes: int) -> bytes:
        """Return the body of a GET, whole.

        Raises: BadResponse, RegistryTimeout, RegistryUnreachable, or the refusal that the registry names.
        """
        with _Opened(self._send("GET", path)) as response:
            return self._whole(response, path, max_bytes)

    def metadata(self, path: str, *, max_bytes: int, held: bytes | None = None, seconds: float | None = None) -> bytes:
        """Return what lies below `/v1/tuf/`: `held` itself where the registry says that nothing has changed since.

        `seconds` is what is left of the caller's time, where that is less than one document may take.
        Raises: as `document`, and TooBig for more than `max_bytes`; NotFound by the status alone, since what stands
        before a registry may answer for it, and that `N+1.root.json` is not there is how TUF says that N is the newest.
        """
        path = f"/v1/tuf/{path}"
        asked = {} if held is None else {"If-None-Match": f'"{hashlib.sha256(held).hexdigest()}"'}
        with _Opened(self._send("GET", path, headers=asked)) as response:
            if held is not None and response.status == NOT_MODIFIED:
                return held
            if response.status == NOT_FOUND:
                raise NotFound(f"there is nothing at `{self.url}{path}`", url=self.url + path)
            return self._whole(response, path, max_bytes, beyond=_too_big, seconds=seconds)

    def blob(self, sha256: str, *, size: int) -> Iterator[bytes]:
        """Yield a blob as it comes, at most one byte more than `size` says, at no less than the minimum rate."""
        path = f"/v1/blobs/{sha256}"
        with _Opened(self._send("GET", path)) as response:
            self._require_ok(response, path, is_read=True)
            deadline = time.monotonic() + READ_SECONDS + size / MINIMUM_RATE
            yield from self._chunks(response, path, size + 1, deadline)

    def call(self, method: str, path: str, body: Any = None, *, authorized: bool = True) -> dict[str, Any]:
        """Send JSON and return the JSON that comes back."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        with _Opened(self._send(method, path, data, headers, authorized=authorized)) as response:
            answer = self._whole(response, path, MAX_JSON, is_read=not authorized)
        try:
            value = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise BadResponse(f"`{self.url}{path}` answered something that is not JSON", url=self.url + path) from error
        if not isinstance(value, dict):
            raise BadResponse(f"`{self.url}{path}` answered JSON that is not an object", url=self.url + path)
        return value

    def upload_offset(self, path: str) -> int:
        """Return how many bytes of an upload the registry has."""
        with _Opened(self._send("HEAD", path, authorized=True)) as response:
            self._require_ok(response, path, is_read=False)
            written = response.headers.get("Upload-Offset", "")
        if not _OFFSET.fullmatch(written):
            raise BadResponse(f"`{self.url}{path}` told no upload offset", url=self.url + path)
        return int(written)

    def upload(self, path: str, file: BinaryIO, *, offset: int, size: int) -> None:
        """Send a file from an offset to its end; nothing where the registry has it all, by whoever's upload.

        It goes in parts, so that a registry that has seen enough can say so between two of them.
        Raises: BadResponse when the offset lies behind the file's end, or the file has become shorter.
        """
        if offset > size:
            message = f"`{self.url}{path}` says that it has {offset} bytes of {size}"
            raise BadResponse(message, url=self.url + path)
        file.seek(offset)
        if not size:
            self._put(path, b"", {})
        for start in range(offset, size, UPLOAD_PART):
            part = file.read(min(UPLOAD_PART, size - start))
            self._put(path, part, {"Content-Range": f"bytes {start}-{start + len(part) - 1}/{size}"})

    def _put(self, path: str, body: bytes, headers: dict[str, str]) -> None:
        headers = {"Content-Type": "application/octet-stream", **headers}
        with _Opened(self._send("PUT", path, body, headers, authorized=True)) as response:
            self._whole(response, path, MAX_JSON, is_read=False)

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        authorized: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        sent = self._headers | (self._authorization if authorized else {}) | (headers or {})
        try:
            return self._pool.request(
                method, self.url + path, body=body, headers=sent, redirect=False, preload_content=False
            )
        except HTTPError as error:
            raise self._unreachable(error, path) from error

    def _whole(
        self,
        response: urllib3.BaseHTTPResponse,
        path: str,
        max_bytes: int,
        *,
        beyond: Callable[..., SpmError] = BadResponse,
        seconds: float | None = None,
        is_read: bool = True,
    ) -> bytes:
        self._require_ok(response, path, is_read=is_read)
        allowed = TOTAL_SECONDS if seconds is None else min(seconds, TOTAL_SECONDS)
        data = b"".join(self._chunks(response, path, max_bytes + 1, time.monotonic() + allowed))
        if len(data) > max_bytes:
            raise beyond(f"`{self.url}{path}` sent more than the {max_bytes} bytes allowed", url=self.url + path)
        return data

    def _chunks(self, response: urllib3.BaseHTTPResponse, path: str, limit: int, deadline: float) -> Iterator[bytes]:
        """Yield the body in pieces and stop after `limit` bytes; a cut body is a refusal."""
        left = limit
        with Deadline(deadline - time.monotonic(), socket_of(response)) as watch:
            while left:
                try:
                    chunk = response.read1(min(CHUNK, left))
                except HTTPError as error:
                    raise (self._too_slow(path) if watch.is_over else self._unreachable(error, path)) from error
                if watch.is_over or time.monotonic() > deadline:
                    raise self._too_slow(path)
                if not chunk:
                    return
                left -= len(chunk)
                yield chunk

    def _too_slow(self, path: str) -> RegistryTimeout:
        return RegistryTimeout(
            f"`{self.url}{path}` was too slow and was given up",
            hint="run the command again when the network is better",
            url=self.url + path,
        )

    def _require_ok(self, response: urllib3.BaseHTTPResponse, path: str, *, is_read: bool) -> None:
        """Refuse all but a success; what goes without the token is a read, on which the verdict is this host's own."""
        if encoding := response.headers.get("Content-Encoding"):
            raise BadResponse(f"`{self.url}{path}` sent the encoding {encoding[:40]!r}, which was not asked for")
        if 200 <= response.status < 300:
            return
        if 300 <= response.status < 400:
            raise self._redirected(response, path)
        body = b"".join(self._chunks(response, path, MAX_JSON, time.monotonic() + READ_SECONDS))
        content_type = response.headers.get("Content-Type", "")
        raise refusal_of(response.status, content_type, body, url=self.url + path, is_read=is_read)

    def _redirected(self, response: urllib3.BaseHTTPResponse, path: str) -> BadResponse:
        location = response.headers.get("Location", "")[:200]
        return BadResponse(
            f"`{self.url}{path}` answered {response.status} and points to {location!r}, but spm follows no redirect",
            hint="if the registry has moved, write where it is now as `registry.url` in loader.conf",
            url=self.url + path,
            status=response.status,
            location=location,
        )

    def _unreachable(self, error: HTTPError, path: str) -> RegistryUnreachable:
        # A refused connection is a ConnectTimeoutError to urllib3, and no time-out to anybody else.
        if isinstance(error, ReadTimeoutError | ConnectTimeoutError) and not isinstance(error, NewConnectionError):
            return RegistryTimeout(
                f"the registry at `{self.url}` did not answer in time",
                hint="run the command again, or ask whether the registry is up",
                url=self.url + path,
            )
        if isinstance(error, ProtocolError) and "IncompleteRead" in str(error):
            return BadResponse(
                f"`{self.url}{path}` was cut off before its end",
                hint="run the command again",
                url=self.url + path,
            )
        return RegistryUnreachable(
            f"the registry at `{self.url}` cannot be reached: {_plainly(error)}",
            hint="check `registry.url` in loader.conf and whether the registry is up",
            url=self.url + path,
        )


class _Opened:
    """Give the connection back whatever happens: drained responses are used again, others are closed."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def __enter__(self) -> urllib3.BaseHTTPResponse:
        return self._response

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._response.close()
        self._response.release_conn()


def _too_big(message: str, **context: Any) -> TooBig:
    """Return the refusal of metadata beyond its bound, to which no honest registry comes."""
    return TooBig(message, hint="it was changed on its way or in the registry; nothing of it was used", **context)


def _plainly(error: HTTPError) -> str:
    """Return what the innermost error says, without the objects around it."""
    inner = error.__cause__ or next((one for one in error.args if isinstance(one, Exception)), error)
    if isinstance(inner, BadStatusLine) and not isinstance(inner, RemoteDisconnected):
        return "what answers there does not speak HTTP"
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return str(inner).rpartition(": ")[2] or type(error).__name__

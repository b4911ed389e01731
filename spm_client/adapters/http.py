"""The registry over HTTP, everything bounded in bytes and time. Believes nothing that it hands on.

Redirects are followed for blobs alone (`blob_request.py`), and no content encoding is accepted, so that the bytes are
those that were signed.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from manifests.errors import AuthRequired, BadResponse, NotFound, TooBig
from spm_client.adapters.blob_request import blob_chunks
from spm_client.adapters.wire import MAX_JSON, TOTAL_SECONDS, Opened, Wire

NOT_MODIFIED, NOT_FOUND = 304, 404
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
        self._authorization = {"Authorization": f"Bearer {token}"} if token else {}
        self._wire = Wire(self.url, connections)

    def __enter__(self) -> "RegistryClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._wire.close()

    def document(self, path: str, *, max_bytes: int) -> bytes:
        """Return the body of a GET, whole.

        Raises: BadResponse, RegistryTimeout, RegistryUnreachable, or the refusal that the registry names.
        """
        url = self.url + path
        with Opened(self._wire.read(url)) as response:
            return self._wire.whole(response, url, max_bytes)

    def metadata(self, path: str, *, max_bytes: int, held: bytes | None = None, seconds: float | None = None) -> bytes:
        """Return what lies below `/v1/tuf/`: `held` itself where the registry says that nothing has changed since.

        `seconds` is what is left of the caller's time, where that is less than one document may take.
        Raises: as `document`, and TooBig for more than `max_bytes`; NotFound by the status alone, since what stands
        before a registry may answer for it, and that `N+1.root.json` is not there is how TUF says that N is the newest.
        """
        url = f"{self.url}/v1/tuf/{path}"
        asked = {} if held is None else {"If-None-Match": f'"{hashlib.sha256(held).hexdigest()}"'}
        allowed = TOTAL_SECONDS if seconds is None else seconds
        with Opened(self._wire.read(url, asked, seconds=allowed)) as response:
            if held is not None and response.status == NOT_MODIFIED:
                return held
            if response.status == NOT_FOUND:
                raise NotFound(f"there is nothing at `{url}`", url=url)
            return self._wire.whole(response, url, max_bytes, beyond=_too_big, seconds=seconds)

    def blob(self, sha256: str, *, size: int, offset: int = 0) -> Iterator[bytes]:
        """Yield a blob as it comes, from a byte on, at most one byte more than `size` says.

        Raises: as `document`; TransferCut, TransferStalled and ConnectionFailed where asking for the rest can help.
        """
        return blob_chunks(self._wire, f"{self.url}/v1/blobs/{sha256}", size=size, offset=offset)

    def call(self, method: str, path: str, body: Any = None, *, authorized: bool = True) -> dict[str, Any]:
        """Send JSON and return the JSON that comes back."""
        url = self.url + path
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if data else {}
        if authorized:
            sent = self._wire.send(method, url, headers | self._authorization, body=data)
        else:
            sent = self._wire.read(url) if method == "GET" else self._wire.send(method, url, headers, body=data)
        with Opened(sent) as response:
            answer = self._wire.whole(response, url, MAX_JSON, is_read=not authorized)
        try:
            value = json.loads(answer)
        except (ValueError, RecursionError) as error:
            raise BadResponse(f"`{url}` answered something that is not JSON", url=url) from error
        if not isinstance(value, dict):
            raise BadResponse(f"`{url}` answered JSON that is not an object", url=url)
        return value

    def upload_offset(self, path: str) -> int:
        """Return how many bytes of an upload the registry has."""
        url = self.url + path
        with Opened(self._wire.send("HEAD", url, self._authorization)) as response:
            self._wire.require_ok(response, url, is_read=False)
            written = response.headers.get("Upload-Offset", "")
        if not _OFFSET.fullmatch(written):
            raise BadResponse(f"`{url}` told no upload offset", url=url)
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
        url = self.url + path
        headers = {"Content-Type": "application/octet-stream", **headers, **self._authorization}
        with Opened(self._wire.send("PUT", url, headers, body=body)) as response:
            self._wire.whole(response, url, MAX_JSON, is_read=False)


def _too_big(message: str, **context: Any) -> TooBig:
    """Return the refusal of metadata beyond its bound, to which no honest registry comes."""
    return TooBig(message, hint="it was changed on its way or in the registry; nothing of it was used", **context)

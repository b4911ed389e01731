"""The signed index, shards, manifests and blobs, answered before Flask sees the request. Knows only the policy's rules.

Everything here is immutable under its name, save the timestamp and the shards by plugin, which have an entity tag.
"""

import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from manifests.errors import NotFound, RegistryRefused, SpmError
from registry.api.answers import Answer, StartResponse, send_problem
from registry.api.problems import internal_problem, problem_of
from registry.services.policy import ANYONE, Action, require
from registry.services.reading import Reader

Wsgi = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]

_IMMUTABLE = "public, max-age=31536000, immutable"
_JSON = "application/json"
_PREFIXES = ("/v1/tuf/", "/v1/index/", "/v1/manifests/", "/v1/blobs/")
_SHA256 = "[0-9a-f]{64}"
_NAME = "[a-z0-9-]{1,64}"
_ROLE = "root|snapshot|targets|bin-[0-9a-f]{1,4}"


class FastReads:
    """A WSGI layer: its own routes are answered here, all others by the application behind it."""

    def __init__(self, behind: Wsgi, reader: Reader) -> None:
        self._behind = behind
        self._reader = reader
        self.routes: tuple[tuple[re.Pattern[str], Action, Callable[..., Answer]], ...] = (
            (re.compile(r"/v1/tuf/timestamp\.json"), Action.READ_INDEX, self._timestamp),
            (re.compile(rf"/v1/tuf/([1-9][0-9]{{0,15}})\.({_ROLE})\.json"), Action.READ_INDEX, self._signed),
            (re.compile(rf"/v1/tuf/targets/({_SHA256})\.keyring\.json"), Action.READ_INDEX, self._keyring),
            (re.compile(rf"/v1/tuf/targets/index/({_SHA256})\.({_NAME})\.json"), Action.READ_INDEX, self._signed_shard),
            (re.compile(rf"/v1/index/({_NAME})\.json"), Action.READ_INDEX, self._shard),
            (re.compile(rf"/v1/blobs/({_SHA256})"), Action.READ_BLOB, self._blob),
            (re.compile(rf"/v1/manifests/({_SHA256})"), Action.READ_MANIFEST, self._manifest),
            (
                re.compile(rf"/v1/manifests/({_SHA256})/(manifest\.jws|manifest\.sig\.{_SHA256})"),
                Action.READ_MANIFEST,
                self._signature,
            ),
        )
        # These routes look at no token, so each must be open to everyone.
        for _, action, _ in self.routes:
            require(ANYONE, action)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer, or let the application behind do it."""
        path = environ["PATH_INFO"]
        if not path.startswith(_PREFIXES):
            return self._behind(environ, start_response)
        try:
            return self._answer(path, environ).send(environ, start_response)
        except SpmError as error:
            return send_problem(problem_of(error, *_allow(error)), start_response)
        except Exception as error:  # noqa: BLE001 - the outermost layer: whatever happened is logged and answered
            return send_problem(internal_problem(error, method=environ["REQUEST_METHOD"], path=path), start_response)

    def _answer(self, path: str, environ: dict[str, Any]) -> Answer:
        for pattern, _, read in self.routes:
            match = pattern.fullmatch(path)
            if match is not None:
                _require_reading(environ["REQUEST_METHOD"], path)
                return read(*match.groups())
        raise _not_found(path)

    def _timestamp(self) -> Answer:
        row = self._reader.timestamp()
        if row is None:
            raise NotFound("this registry has no signed index yet")
        return _checked_each_time(row.data, f'"{row.sha256}"')

    def _signed(self, version: str, role: str) -> Answer:
        row = self._reader.signed(role, int(version))
        if row is None:
            raise NotFound(f"this registry has no version {version} of its {role}")
        return _immutable(row.data, f'"{row.sha256}"', _JSON)

    def _keyring(self, sha256: str) -> Answer:
        data = self._reader.keyring(sha256)
        if data is None:
            raise NotFound(f"this registry has no keyring sha256:{sha256}")
        return _immutable(data, f'"{sha256}"', _JSON)

    def _signed_shard(self, sha256: str, name: str) -> Answer:
        data = self._reader.shard_with_digest(name, sha256)
        if data is None:
            raise NotFound(f"this registry has no index of `{name}` with sha256:{sha256}", name=name)
        return _immutable(data, f'"{sha256}"', _JSON)

    def _shard(self, name: str) -> Answer:
        row = self._reader.shard(name)
        if row is None:
            raise NotFound(f"this registry has no plugin `{name}`", name=name)
        return _checked_each_time(row.data, row.etag)

    def _manifest(self, sha256: str) -> Answer:
        data = self._reader.manifest(sha256)
        if data is None:
            raise NotFound(f"this registry has no manifest sha256:{sha256}")
        return _immutable(data, f'"{sha256}"', "application/vnd.spm.manifest+json")

    def _signature(self, sha256: str, file_name: str) -> Answer:
        data = self._reader.signature(sha256, file_name)
        if data is None:
            raise NotFound(f"this registry has no `{file_name}` for manifest sha256:{sha256}")
        kind = "application/jose" if file_name.endswith(".jws") else "application/octet-stream"
        return _immutable(data, f'"{sha256}.{file_name}"', kind)

    def _blob(self, sha256: str) -> Answer:
        found = self._reader.blob(sha256)
        if found is None:
            raise NotFound(f"this registry has no blob sha256:{sha256}")
        path, size = found
        file = path.open("rb")
        if os.fstat(file.fileno()).st_size != size:
            file.close()
            raise OSError(f"blob {sha256} has another size on disk than in the database")
        return Answer(
            etag=f'"{sha256}"',
            caching=_IMMUTABLE,
            content_type="application/octet-stream",
            size=size,
            file=file,
        )


def _checked_each_time(data: bytes, etag: str) -> Answer:
    return Answer(etag=etag, caching="no-cache", content_type=_JSON, size=len(data), data=data)


def _immutable(data: bytes, etag: str, content_type: str) -> Answer:
    return Answer(etag=etag, caching=_IMMUTABLE, content_type=content_type, size=len(data), data=data)


def _require_reading(method: str, path: str) -> None:
    if method not in ("GET", "HEAD"):
        raise RegistryRefused(f"`{path}` does not take {method}", reason="method", allow=["GET", "HEAD"])


def _allow(error: SpmError) -> tuple[tuple[str, str], ...]:
    return (("Allow", "GET, HEAD"),) if error.reason == "method" else ()


def _not_found(path: str) -> NotFound:
    return NotFound(f"there is nothing at `{ascii(path)[1:-1]:.200}`")

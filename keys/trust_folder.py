"""The folder that python-tuf works in, and what it asks for from there. Decides nothing, verifies nothing."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from tuf.api.exceptions import DownloadHTTPError
from tuf.api.metadata import Metadata, Root, Snapshot, Targets, Timestamp
from tuf.ngclient.fetcher import FetcherInterface

from keys.trust_metadata import check_metadata
from keys.trust_policy import KeyPolicy
from manifests.errors import NotFound, TooBig

BASE = "tuf:/"
MAX_BYTES = {"root": 512_000, "timestamp": 16_384, "snapshot": 4_000_000}
MAX_TARGETS_BYTES = 16_000_000
"""Ours, for a length that is listed may be signed by whoever stole the online key."""
_NOT_FOUND = 404


class Fetch(Protocol):
    """How files of a registry are had: `fetch("timestamp.json", 16384)`, paths as they are below `/v1/tuf/`.

    Raises: NotFound where there is no such file; another SpmError for whatever else went wrong.
    """

    def __call__(self, path: str, max_bytes: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class TrustFolder:
    """Trusted metadata as the updater persists it, under names without versions."""

    path: Path

    def read(self, role: str) -> bytes | None:
        """Return a role's metadata, or None where there is none yet."""
        try:
            return (self.path / f"{quote(role, '')}.json").read_bytes()
        except FileNotFoundError:
            return None

    def root(self) -> Metadata[Root]:
        return Metadata[Root].from_bytes((self.path / "root.json").read_bytes())

    def targets(self) -> Metadata[Targets]:
        return Metadata[Targets].from_bytes((self.path / "targets.json").read_bytes())

    def timestamp(self) -> Metadata[Timestamp]:
        return Metadata[Timestamp].from_bytes((self.path / "timestamp.json").read_bytes())

    def snapshot(self) -> Metadata[Snapshot]:
        return Metadata[Snapshot].from_bytes((self.path / "snapshot.json").read_bytes())

    def version(self, role: str) -> int | None:
        """Return the version that the file of a role says it is, unverified; None for none that can be read."""
        try:
            return int(json.loads(self.read(role) or b"null")["signed"]["version"])
        except (ValueError, TypeError, KeyError, RecursionError):
            return None

    def numbered_root(self, version: int) -> str:
        return (self.path / "root_history" / f"{version}.root.json").read_text(encoding="utf-8")

    def write(self, role: str, text: str) -> None:
        (self.path / f"{role}.json").write_bytes(text.encode())


@dataclass(slots=True)
class Fetched:
    """The file that was asked for last, as it came."""

    path: str = ""
    data: bytes = b""

    @property
    def role(self) -> str:
        name = os.path.basename(self.path).removesuffix(".json")
        number, _, role = name.partition(".")
        return role if role and number.isdecimal() else name

    @property
    def asked_version(self) -> int | None:
        number = self.path.partition(".")[0]
        return int(number) if number.isdecimal() else None


@dataclass(slots=True)
class TrustFetcher(FetcherInterface):
    """The updater's fetcher over `Fetch`. It remembers what came last, by which a refusal is explained."""

    fetch_file: Fetch
    policy: KeyPolicy
    last: Fetched = field(default_factory=Fetched)
    timestamp: bytes | None = None

    def download_bytes(self, url: str, max_length: int) -> bytes:
        """Return metadata, held against the policy before the library reads it.

        Raises: DownloadHTTPError for a file that is not there; what `fetch_file` and the policy raise.
        """
        path = url.removeprefix(BASE)
        role = Fetched(path).role
        _require_bounded(path, max_length, MAX_BYTES.get(role, MAX_TARGETS_BYTES))
        try:
            data = self.whole(path, max_length)
        except NotFound as error:
            raise DownloadHTTPError(error.message, _NOT_FOUND) from error
        if self.policy.is_strict:
            check_metadata(data, path)
            self._check_terms(role, data)
        if role == "timestamp":
            self.timestamp = data
        return data

    def _check_terms(self, role: str, data: bytes) -> None:
        signed = Metadata[Any].from_bytes(data).signed
        if isinstance(signed, Root):
            self.policy.check_root(signed)
        if isinstance(signed, Targets) and role != Targets.type:
            self.policy.check_bin(role, signed)

    def whole(self, path: str, max_bytes: int) -> bytes:
        """Return a file of `max_bytes` at most.

        Raises: TooBig; what `fetch_file` raises.
        """
        self.last.path, self.last.data = path, b""
        data = self.fetch_file(path, max_bytes)
        if len(data) > max_bytes:
            raise TooBig(f"the registry's `{path}` has more than the {max_bytes} bytes allowed", path=path)
        self.last.data = data
        return data

    def _fetch(self, url: str) -> Iterator[bytes]:
        raise NotImplementedError("the updater downloads metadata only, as bytes")


def _require_bounded(path: str, listed: int, allowed: int) -> None:
    if listed > allowed:
        raise TooBig(
            f"the registry's signed index lists {listed} bytes for `{path}`, more than the {allowed} allowed", path=path
        )

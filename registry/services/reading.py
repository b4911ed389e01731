"""What anyone may read: the signed index, shards, manifests, signatures and blobs. Renews a timestamp, no more."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from registry.services.bounded_cache import BoundedCache
from registry.services.fresh_timestamp import FreshTimestamp
from registry.storage.changes import Changes
from registry.storage.rows import ShardRow, SignedRow
from registry.storage.site import Site

_SHARD_BYTES = 64 << 20
_OBJECT_BYTES = 32 << 20
_ENTRY_BYTES = 256
_SIZE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShardAt:
    serial: int
    row: ShardRow


class Reader:
    """Published objects, held in memory while that is certain to be right.

    A shard is held for one serial, the timestamp for its version. Everything else never changes under its name.
    """

    def __init__(self, site: Site, now: Callable[[], int]) -> None:
        self._site = site
        self._changes = Changes(site.database)
        self._timestamp = FreshTimestamp(site, self._changes, now)
        self._signed: BoundedCache[tuple[str, int], SignedRow] = BoundedCache(
            _OBJECT_BYTES, lambda row: len(row.data) + _ENTRY_BYTES
        )
        self._shards: BoundedCache[str, _ShardAt] = BoundedCache(
            _SHARD_BYTES, lambda held: len(held.row.data) + _ENTRY_BYTES
        )
        self._objects: BoundedCache[tuple[str, str], bytes] = BoundedCache(
            _OBJECT_BYTES, lambda data: len(data) + _ENTRY_BYTES
        )
        self._blob_sizes: BoundedCache[str, int] = BoundedCache(_SIZE_BYTES, lambda _: _ENTRY_BYTES)

    def shard(self, name: str) -> ShardRow | None:
        """Return a plugin's shard as of now."""
        # The serial is asked first: a shard that changes meanwhile is held under the older serial, and read again.
        serial = self._changes.standing().serial
        held = self._shards.get(name)
        if held is not None and held.serial == serial:
            return held.row
        with self._site.database.reading() as records:
            row = records.shard(name)
        if row is not None:
            self._shards.put(name, _ShardAt(serial=serial, row=row))
        return row

    def timestamp(self) -> SignedRow | None:
        """Return the newest timestamp, renewed if it is time."""
        return self._timestamp.row()

    def signed(self, role: str, version: int) -> SignedRow | None:
        """Return one version of a role of the signed index."""
        # Every client asks for a newer root, and there hardly ever is one.
        if role == "root" and version > self._changes.standing().root:
            return None
        row = self._signed.get((role, version))
        if row is None:
            with self._site.database.reading() as records:
                row = records.signed.at(role, version)
            if row is not None:
                self._signed.put((role, version), row)
        return row

    def keyring(self, sha256: str) -> bytes | None:
        """Return a keyring document."""
        with self._site.database.reading() as records:
            row = records.signed.with_digest("keyring", sha256)
        return None if row is None else row.data

    def shard_with_digest(self, name: str, sha256: str) -> bytes | None:
        """Return a plugin's shard as it is now, or as it was a moment ago."""
        row = self.shard(name)
        if row is not None and row.etag == f'"{sha256}"':
            return row.data
        with self._site.database.reading() as records:
            return records.signed.kept_shard(name, sha256)

    def manifest(self, sha256: str) -> bytes | None:
        """Return a published manifest."""
        return self._object(sha256, "")

    def signature(self, sha256: str, file_name: str) -> bytes | None:
        """Return a signature file of a published manifest."""
        return self._object(sha256, file_name)

    def _object(self, sha256: str, file_name: str) -> bytes | None:
        data = self._objects.get((sha256, file_name))
        if data is None:
            with self._site.database.reading() as records:
                data = records.signature(sha256, file_name) if file_name else records.manifest(sha256)
            if data is not None:
                self._objects.put((sha256, file_name), data)
        return data

    def blob(self, sha256: str) -> tuple[Path, int] | None:
        """Return where a blob of a published release is, and its size."""
        size = self._blob_sizes.get(sha256)
        if size is None:
            with self._site.database.reading() as records:
                size = records.blob_size(sha256)
            if size is None:
                return None
            self._blob_sizes.put(sha256, size)
        return self._site.blobs.path(sha256), size

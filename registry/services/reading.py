"""What anyone may read: shards, manifests, signatures and blobs of published releases. Changes nothing."""

from dataclasses import dataclass
from pathlib import Path

from registry.services.bounded_cache import BoundedCache
from registry.storage.changes import Changes
from registry.storage.rows import ShardRow
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

    A shard is held for one serial. Everything else is named by its digest and never changes.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._changes = Changes(site.database)
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
        serial = self._changes.serial()
        held = self._shards.get(name)
        if held is not None and held.serial == serial:
            return held.row
        with self._site.database.reading() as records:
            row = records.shard(name)
        if row is not None:
            self._shards.put(name, _ShardAt(serial=serial, row=row))
        return row

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

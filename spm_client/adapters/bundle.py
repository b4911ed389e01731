"""A bundle file as a `Source`: opened once, read where its header says, blobs held to digests. Trusts no key."""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType

from manifests.errors import DigestMismatch, FileSetMismatch, NotFound, SizeMismatch, SpmError, UsageError
from manifests.manifest import Manifest
from manifests.parts import FileEntry
from spm_client.bundle_format import PREAMBLE, BundleHeader, Extent, header_size

CHUNK = 1 << 20
_ALTERED = "the file was damaged or altered after its export: copy it anew; nothing of it was used"
_NARROW = "it was exported for another target or from other installed plugins: export it anew, for this host"


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledBlob:
    """Where a blob lies, and the first file of a signed manifest that it is."""

    extent: Extent
    manifest: Manifest
    entry: FileEntry


class BundleFile:
    """An open bundle. Usage: `with BundleFile(path) as bundle: bundle.header`.

    Raises: UsageError where it cannot be read; ContentError where it is no bundle, or shorter than its header says.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _reading(path):
            # What is no regular file could keep the one who opens it waiting.
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            self._require_regular()
            self.size = os.fstat(self._descriptor).st_size
            with self._named():
                end = PREAMBLE + header_size(self._read_some(Extent(0, PREAMBLE)))
                self.header = BundleHeader.from_bytes(self.read(Extent(PREAMBLE, end - PREAMBLE)))
                self.documents = dict(self.header.documents(end))
                self.documents_end = max(extent.end for extent in self.documents.values())
                self._require(self.documents_end)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "BundleFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self, extent: Extent) -> bytes:
        """Return the bytes of an extent.

        Raises: SizeMismatch where the file ends before it does.
        """
        self._require(extent.end)
        data = self._read_some(extent)
        if len(data) != extent.size:
            raise self._cut(extent.end)
        return data

    def chunks(self, extent: Extent) -> Iterator[bytes]:
        """Yield the bytes of an extent in pieces. Several threads may read at once."""
        for offset in range(extent.offset, extent.end, CHUNK):
            yield self.read(Extent(offset, min(CHUNK, extent.end - offset)))

    def require_end(self, end: int) -> None:
        """Hold the file to its end.

        Raises: SizeMismatch.
        """
        self._require(end)
        if self.size > end:
            raise SizeMismatch(
                f"the bundle `{self.path}` has {self.size} bytes, {self.size - end} more than belong to it",
                hint=_ALTERED,
                found=self.size,
                expected=end,
            )

    def _require(self, end: int) -> None:
        if self.size < end:
            raise self._cut(end)

    def _cut(self, end: int) -> SizeMismatch:
        return SizeMismatch(
            f"the bundle `{self.path}` is cut: it has {self.size} bytes, and what it says of itself needs {end}",
            hint=_ALTERED,
            found=self.size,
            expected=end,
        )

    def _read_some(self, extent: Extent) -> bytes:
        with _reading(self.path):
            pieces, offset = [], extent.offset
            while offset < extent.end and (piece := os.pread(self._descriptor, extent.end - offset, offset)):
                pieces.append(piece)
                offset += len(piece)
            return b"".join(pieces)

    def _require_regular(self) -> None:
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            raise UsageError(f"the bundle `{self.path}` is not a regular file")

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Say of which file a refusal of its form is."""
        try:
            yield
        except SpmError as error:
            if str(self.path) in error.message:
                raise
            message = f"`{self.path}` is refused: {error.message}"
            hint = error.hint or _ALTERED
            raise type(error)(message, reason=error.reason, hint=hint, **error.context) from error


class BundleSource:
    """What a bundle answers in a registry's place. `asked` holds the paths that somebody has read."""

    def __init__(self, bundle: BundleFile, blobs: Mapping[str, BundledBlob] = MappingProxyType({})) -> None:
        self._bundle = bundle
        self._blobs = blobs
        self.asked: set[str] = set()

    def document(self, path: str, *, max_bytes: int) -> bytes:
        extent = self._bundle.documents.get(path)
        if extent is None and path.rpartition("/")[2].startswith("manifest."):
            raise NotFound(f"the bundle `{self._bundle.path}` has no `{path}`")
        if extent is None:
            raise self._lacks(path)
        self.asked.add(path)
        return self._bundle.read(Extent(extent.offset, min(extent.size, max_bytes + 1)))

    def metadata(self, path: str, *, max_bytes: int, held: bytes | None = None, seconds: float | None = None) -> bytes:
        del seconds
        whole = f"/v1/tuf/{path}"
        if whole not in self._bundle.documents:
            if path.endswith(".root.json"):
                raise NotFound(f"the bundle `{self._bundle.path}` has no `{path}`")
            raise self._lacks(path)
        data = self.document(whole, max_bytes=max_bytes)
        return held if held == data else data

    def blob(self, sha256: str, *, size: int, offset: int = 0) -> Iterator[bytes]:
        """Yield a blob from a byte on, the digest of the whole checked at the end.

        Raises: SizeMismatch, DigestMismatch.
        """
        blob = self._blobs.get(sha256)
        if blob is None or blob.extent.size != size:
            raise self._lacks(f"/v1/blobs/{sha256}")
        digest = hashlib.sha256()
        for chunk in self._bundle.chunks(blob.extent):
            digest.update(chunk)
            if offset < len(chunk):
                yield chunk[offset:]
            offset = max(offset - len(chunk), 0)
        if (found := digest.hexdigest()) != sha256:
            raise DigestMismatch(
                f"`{blob.entry.path}` of `{blob.manifest.name}` {blob.manifest.version} in the bundle has the digest "
                f"sha256:{found}, but the signed manifest says sha256:{sha256}",
                hint=_ALTERED,
                path=blob.entry.path,
                expected=sha256,
                actual=found,
            )

    def _lacks(self, path: str) -> FileSetMismatch:
        return FileSetMismatch(
            f"the bundle `{self._bundle.path}` does not carry `{path}`, which is needed here", hint=_NARROW, path=path
        )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"the bundle `{path}` cannot be read: {os.strerror(error.errno or 0)}") from error

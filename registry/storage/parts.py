"""Files on their way in, `uploads/<id>/<sha256>[.part]`. Knows sizes and digests, not who may send them."""

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from manifests.errors import DigestMismatch, RegistryRefused, SizeMismatch
from registry.storage.blobs import CHUNK, digest_of, sync_folder
from registry.storage.shortage import storage_full


@dataclass(frozen=True, slots=True, kw_only=True)
class PartKey:
    """One file of one upload, with the size its manifest declares."""

    upload_id: str
    sha256: str
    size: int


class Source(Protocol):
    """Where bytes come from: a request body or an open file."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        ...


class Parts:
    """Partly and wholly received files, in one folder for each upload."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def prepare(self) -> None:
        """Make the folder of all uploads where it is missing: nothing in it is durable."""
        self._root.mkdir(mode=0o700, exist_ok=True)

    def whole(self, upload_id: str, sha256: str) -> Path:
        """Return where a whole, verified file waits for its commit."""
        return self._root / upload_id / sha256

    def is_whole(self, upload_id: str, sha256: str) -> bool:
        """Tell whether a file has come in whole."""
        return self.whole(upload_id, sha256).exists()

    def offset(self, key: PartKey) -> int:
        """Return how many bytes of a file are here."""
        if self.is_whole(key.upload_id, key.sha256):
            return key.size
        try:
            held = self._part(key).stat().st_size
        except FileNotFoundError:
            return 0
        return _usable(held, key)

    def append(self, key: PartKey, source: Source, *, start: int | None, length: int) -> int:
        """Append `length` bytes at `start` (None: replace what is there); return the new offset.

        Raises:
            RegistryRefused: another request is writing this file, or `start` is not where it ends.
            SizeMismatch: the source ended early; what came stays, so that the sender can go on.
            DigestMismatch: the whole file has another digest; it was removed.
        """
        if self.is_whole(key.upload_id, key.sha256):
            return key.size
        with _full_disk_is_refused(), self._locked(key) as part:
            offset = _check_start(key, part, start)
            digest = _copy(source, part, length)
            if offset + length < key.size:
                return offset + length
            # What came in one piece was digested on its way; parts are read once more.
            self._finish(key, part, digest_of(part) if offset else digest)
        return key.size

    def folders(self) -> frozenset[str]:
        """List the uploads that have files here."""
        self.prepare()
        return frozenset(path.name for path in self._root.iterdir())

    def remove_upload(self, upload_id: str) -> None:
        """Remove all files of an upload."""
        shutil.rmtree(self._root / upload_id, onerror=_unless_gone)

    def _part(self, key: PartKey) -> Path:
        return self._root / key.upload_id / f"{key.sha256}.part"

    @contextmanager
    def _locked(self, key: PartKey) -> Iterator[BinaryIO]:
        path = self._part(key)
        self.prepare()
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "r+b") as part:
            try:
                fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise _in_use(key) from error
            # The holder before us may have finished or discarded the file between our open and our lock.
            if not _is_same_file(part, path):
                raise _in_use(key)
            yield part

    def _finish(self, key: PartKey, part: BinaryIO, got: str) -> None:
        if got != key.sha256:
            self._part(key).unlink()
            raise DigestMismatch(
                f"the file sent as sha256:{key.sha256} has sha256:{got}; it was discarded",
                hint="send the file again from its first byte",
                expected=key.sha256,
                got=got,
            )
        os.fsync(part.fileno())
        os.replace(self._part(key), self.whole(key.upload_id, key.sha256))
        sync_folder(self._root / key.upload_id)


@contextmanager
def _full_disk_is_refused() -> Iterator[None]:
    """Turn a full disk or quota into a refusal."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise storage_full() from error


def _check_start(key: PartKey, part: BinaryIO, start: int | None) -> int:
    held = os.fstat(part.fileno()).st_size
    offset = 0 if start is None else _usable(held, key)
    if start is not None and start != offset:
        raise RegistryRefused(
            f"file {key.sha256} has {offset} bytes here, and the request starts at {start}",
            reason="offset",
            hint=f"go on from byte {offset}",
            offset=offset,
        )
    if held > offset:
        part.truncate(offset)
    part.seek(offset)
    return offset


def _usable(held: int, key: PartKey) -> int:
    # As many bytes as the file has, and yet unfinished: a crash came before the digest. They are sent again.
    return held if held < key.size else 0


def _copy(source: Source, part: BinaryIO, length: int) -> str:
    """Append bytes and return their SHA-256."""
    digest, left = hashlib.sha256(), length
    while left:
        chunk = source.read(min(left, CHUNK))
        if not chunk:
            part.flush()
            raise SizeMismatch(
                f"the request declared {length} bytes and ended after {length - left}",
                hint="ask for `Upload-Offset` and go on from there",
                expected=length,
                got=length - left,
            )
        part.write(chunk)
        digest.update(chunk)
        left -= len(chunk)
    part.flush()
    return digest.hexdigest()


def _unless_gone(_function: object, _path: str, info: tuple[type[BaseException], BaseException, object]) -> None:
    # Another request may be removing the same upload.
    if not isinstance(info[1], FileNotFoundError):
        raise info[1]


def _is_same_file(part: BinaryIO, path: Path) -> bool:
    ours = os.fstat(part.fileno())
    try:
        theirs = path.stat()
    except FileNotFoundError:
        return False
    return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)


def _in_use(key: PartKey) -> RegistryRefused:
    return RegistryRefused(
        f"another request is sending file {key.sha256} of this upload",
        reason="upload-busy",
        hint="wait for it to end, then ask for `Upload-Offset`",
    )

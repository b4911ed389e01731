"""Content-addressed files in a folder, `sha256/xx/<sha256>`. Knows nothing of releases or uploads."""

import errno
import hashlib
import os
from pathlib import Path
from typing import BinaryIO

from manifests.errors import DigestMismatch

CHUNK = 1 << 20
# Another file system, a foreign owner (protected_hardlinks), too many names, or a file system without links.
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)


class Blobs:
    """Blobs in a folder; an object store can stand in its place later.

    A file under its final name is always whole and of the right digest: it got there by one rename.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, sha256: str) -> Path:
        """Return where a blob is or would be."""
        return self._root / "sha256" / sha256[:2] / sha256

    def size(self, sha256: str) -> int | None:
        """Return a held blob's size."""
        try:
            return self.path(sha256).stat().st_size
        except FileNotFoundError:
            return None

    def adopt(self, whole: Path, sha256: str) -> None:
        """Take over a verified, fsynced file of the same file system."""
        target = self.path(sha256)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            os.replace(whole, target)
        except FileNotFoundError:
            # Of two commits of one upload the other was faster; it moved the very same bytes.
            if not target.exists():
                raise

    def keep(self, source: Path, sha256: str) -> bool:
        """Hold a second copy of another folder's blob; tell whether it is a hard link, which takes no room.

        Raises:
            DigestMismatch: the bytes that were copied are not the blob's.
        """
        target = self.path(sha256)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            _copy(source, target, sha256)
            return False
        return True

    def settle(self, digests: frozenset[str]) -> None:
        """Make adoptions survive a power cut: sync each folder once."""
        for folder in {self.path(sha256).parent for sha256 in digests}:
            sync_folder(folder)
            sync_folder(folder.parent)


def _copy(source: Path, target: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with source.open("rb") as whole, os.fdopen(descriptor, "wb") as copy:
        while chunk := whole.read(CHUNK):
            digest.update(chunk)
            copy.write(chunk)
        copy.flush()
        os.fsync(copy.fileno())
    if digest.hexdigest() != sha256:
        raise DigestMismatch(
            f"{source} has sha256:{digest.hexdigest()}",
            hint="the registry's disk has changed it: put it back from an older backup",
            expected=sha256,
            got=digest.hexdigest(),
        )


def digest_of(file: BinaryIO) -> str:
    """Return the SHA-256 of a whole open file."""
    file.seek(0)
    digest = hashlib.sha256()
    while chunk := file.read(CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

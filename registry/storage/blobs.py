"""Content-addressed files in a folder, `sha256/xx/<sha256>`. Knows nothing of releases or uploads."""

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

CHUNK = 1 << 20


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

    def settle(self, digests: frozenset[str]) -> None:
        """Make adoptions survive a power cut: sync each folder once."""
        for folder in {self.path(sha256).parent for sha256 in digests}:
            sync_folder(folder)
            sync_folder(folder.parent)


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

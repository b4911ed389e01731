"""Files by digest: taking them in, and laying trees out of them. Fetches nothing, trusts no name."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from manifests.errors import DigestMismatch, SizeMismatch
from manifests.parts import FileEntry
from spm_client.progress import Advance
from spm_client.store.layout import Layout, make_folder

CHUNK = 1 << 20
_NO_LINKS = {errno.EPERM, errno.EMLINK, errno.EXDEV, errno.EOPNOTSUPP}


def holds(layout: Layout, entry: FileEntry) -> bool:
    """Tell whether the store has these very bytes. A damaged blob counts as absent, so it is fetched anew."""
    path = layout.blob(entry.sha256)
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size != entry.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256
    except FileNotFoundError:
        return False


def receive(chunks: Iterator[bytes], entry: FileEntry, destination: Path, *, what: str, advance: Advance) -> None:
    """Write one file as it comes, hashing on the way, and stop at the first byte too many.

    Raises: SizeMismatch, DigestMismatch; the destination is then gone.
    """
    try:
        with destination.open("xb") as file:
            for chunk in checked(chunks, entry, what=what):
                file.write(chunk)
                advance(len(chunk))
    except BaseException:
        destination.unlink(missing_ok=True)
        raise


def checked(
    chunks: Iterator[bytes], entry: FileEntry, *, what: str, so: str = "nothing was installed"
) -> Iterator[bytes]:
    """Yield a file as it comes, and say at its end whether it was the one that was signed; `so` ends the message.

    Raises: SizeMismatch, at the first byte too many; DigestMismatch.
    """
    digest, size = hashlib.sha256(), 0
    for chunk in chunks:
        size += len(chunk)
        if size > entry.size:
            raise _wrong_size(entry, f"more than {entry.size}", what, so)
        digest.update(chunk)
        yield chunk
    if size != entry.size:
        raise _wrong_size(entry, str(size), what, so)
    if digest.hexdigest() != entry.sha256:
        raise DigestMismatch(
            f"`{entry.path}` of {what} has the digest sha256:{digest.hexdigest()}, "
            f"but the signed manifest says sha256:{entry.sha256}; {so}",
            hint="what the registry serves is not what the author signed: ask its administrator",
            path=entry.path,
            expected=entry.sha256,
            actual=digest.hexdigest(),
        )


def _wrong_size(entry: FileEntry, actual: str, what: str, so: str) -> SizeMismatch:
    return SizeMismatch(
        f"`{entry.path}` of {what} came with {actual} bytes, but the signed manifest says {entry.size}; {so}",
        hint="the transfer was cut or altered: run the command again, then ask the registry's administrator",
        path=entry.path,
        expected=entry.size,
    )


def adopt(layout: Layout, sha256: str, source: Path) -> None:
    """Move a received file into its place by digest."""
    path = layout.blob(sha256)
    make_folder(path.parent)
    source.chmod(0o444)
    os.replace(source, path)


def lay_out(files: tuple[FileEntry, ...], blob_of: dict[str, Path], tree: Path) -> None:
    """Build a plugin's tree: data files are hard links to their blobs, executables are copies with their own mode."""
    make_folder(tree)
    for entry in files:
        path = tree / entry.path
        make_folder(path.parent)
        source = blob_of[entry.sha256]
        if entry.mode == "x" or not _link(source, path):
            shutil.copyfile(source, path)
            path.chmod(0o555 if entry.mode == "x" else 0o444)


def _link(source: Path, path: Path) -> bool:
    """Link where the disk can; a blob has mode 0444, as a data file must."""
    try:
        source.chmod(0o444)
        os.link(source, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return False
    return True

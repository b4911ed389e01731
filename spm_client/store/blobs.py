"""Files by digest: telling what is held, taking files in, laying trees out of them. Fetches nothing, trusts no name."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from manifests.errors import TypeMismatch
from manifests.parts import FileEntry
from spm_client.store import partial
from spm_client.store.incoming import Measured
from spm_client.store.layout import Layout, make_folder

_NO_LINKS = {errno.EPERM, errno.EMLINK, errno.EXDEV, errno.EOPNOTSUPP}


def holds(layout: Layout, entry: FileEntry) -> bool:
    """Tell whether the store has these very bytes. A damaged blob counts as absent, so it is fetched anew."""
    try:
        # Nothing but a regular file is read, and nothing else keeps whoever opens it waiting.
        descriptor = os.open(layout.blob(entry.sha256), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP}:
            return False
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size != entry.size:
        os.close(descriptor)
        return False
    with open(descriptor, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256


def checked(
    chunks: Iterator[bytes], entry: FileEntry, *, what: str, so: str = "nothing was installed"
) -> Iterator[bytes]:
    """Yield a file as it comes, and say at its end whether it was the one that was signed; `so` ends the message.

    Raises: SizeMismatch, at the first byte too many; DigestMismatch.
    """
    measured = Measured(entry, what=what, so=so)
    for chunk in chunks:
        measured.take(chunk)
        yield chunk
    measured.require_whole()


def adopt(layout: Layout, sha256: str, source: Path) -> None:
    """Move a received file into its place by digest.

    Raises: TypeMismatch for a folder there; OSError.
    """
    place = layout.blob(sha256)
    make_folder(place.parent)
    if place.is_dir() and not place.is_symlink():
        raise TypeMismatch(
            f"{place} is no plain file, and spm has one there",
            hint="move it elsewhere, and run the command again",
            path=str(place),
        )
    source.chmod(0o444)
    try:
        os.replace(source, place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy_over(source, place)
    if source.parent == partial.folder(layout):
        partial.tidy(layout)


def _copy_over(source: Path, place: Path) -> None:
    """Bring a file to another disk, whole before it has its name. What a kill leaves there begins with a dot."""
    copy = place.with_name(f".{place.name}.{os.urandom(8).hex()}")
    try:
        with source.open("rb") as original, copy.open("xb") as file:
            shutil.copyfileobj(original, file, 1 << 20)
            file.flush()
            os.fsync(file.fileno())
        copy.chmod(0o444)
        os.replace(copy, place)
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    source.unlink()


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

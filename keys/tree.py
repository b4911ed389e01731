"""A folder held against a file table: exactly these files, nothing else. Follows no link and opens each file once.

Walks folder by folder through descriptors, so that nothing can be swapped for a link between a look and a read.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keys.shown import shown
from manifests.errors import (
    DigestMismatch,
    FileSetMismatch,
    LinkRefused,
    SizeMismatch,
    SpmError,
    TypeMismatch,
    Undecided,
)
from manifests.parts import FileEntry

_CHUNK = 1 << 20
_LISTED = 10
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

_Branch = dict[str, Any]


def check_tree(files: Iterable[FileEntry], directory: Path) -> None:
    """Accept a folder that holds exactly these files.

    Raises: FileSetMismatch for files missing or not in the table; LinkRefused for any symbolic link; TypeMismatch for
    anything but plain files and folders, and for a wrong executable bit; SizeMismatch; DigestMismatch; Undecided when
    the folder cannot be read.
    """
    with _opened(str(directory), None, str(directory), os.O_DIRECTORY) as descriptor:
        _check_folder(descriptor, _as_branches(files), "", bytearray(_CHUNK))


def _as_branches(files: Iterable[FileEntry]) -> _Branch:
    root: _Branch = {}
    for entry in files:
        *folders, name = entry.path.split("/")
        branch = root
        for folder in folders:
            branch = branch.setdefault(folder, {})
        branch[name] = entry
    return root


def _check_folder(descriptor: int, wanted: _Branch, prefix: str, buffer: bytearray) -> None:
    _check_names(descriptor, wanted, prefix)
    for name, inner in wanted.items():
        path = prefix + name
        if isinstance(inner, FileEntry):
            with _opened(name, descriptor, path, 0) as file:
                _check_file(file, inner, buffer)
        else:
            with _opened(name, descriptor, path, os.O_DIRECTORY) as folder:
                _check_folder(folder, inner, f"{path}/", buffer)


def _check_names(descriptor: int, wanted: _Branch, prefix: str) -> None:
    missing, extra = set(wanted), []
    with _undecided_on_failure(prefix or "."), os.scandir(descriptor) as entries:
        for entry in entries:
            _check_type(entry, wanted.get(entry.name), prefix + entry.name)
            missing.discard(entry.name)
            if entry.name not in wanted:
                extra.append(entry.name)
                if len(extra) > _LISTED:
                    break
    if extra:
        _refuse_set("are there but not in the signed file table", prefix, extra)
    if missing:
        _refuse_set("are in the signed file table but not there", prefix, sorted(missing))


def _check_type(entry: "os.DirEntry[str]", wanted: object, path: str) -> None:
    is_folder = entry.is_dir(follow_symlinks=False)
    if entry.is_symlink():
        raise LinkRefused(f"{shown(path)} is a symbolic link, a plugin's tree has none", path=shown(path))
    if not is_folder and not entry.is_file(follow_symlinks=False):
        raise TypeMismatch(f"{shown(path)} is neither a plain file nor a folder", path=shown(path))
    if wanted is not None and is_folder is isinstance(wanted, FileEntry):
        found, needed = ("folder", "file") if is_folder else ("file", "folder")
        raise TypeMismatch(f"{shown(path)} is a {found}, the signed file table has a {needed} there", path=shown(path))


def _check_file(descriptor: int, entry: FileEntry, buffer: bytearray) -> None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise TypeMismatch(f"'{entry.path}' is not a plain file", path=entry.path)
    _check_mode(stat.S_IMODE(status.st_mode), entry)
    if status.st_size != entry.size:
        raise _wrong_size(entry, status.st_size)
    found = _sha256(descriptor, entry, buffer)
    if found != entry.sha256:
        raise DigestMismatch(
            f"'{entry.path}' has the digest sha256:{found}, the signed file table says sha256:{entry.sha256}: "
            "it was changed after signing",
            path=entry.path,
            found=found,
            expected=entry.sha256,
        )


def _check_mode(mode: int, entry: FileEntry) -> None:
    needed = 0o111 if entry.mode == "x" else 0
    if mode & 0o111 != needed or mode & 0o7000:
        kind = "an executable" if entry.mode == "x" else "a data file"
        raise TypeMismatch(
            f"'{entry.path}' has the mode {mode:04o}, the signed file table says it is {kind}",
            path=entry.path,
            mode=f"{mode:04o}",
            expected=entry.mode,
        )


def _sha256(descriptor: int, entry: FileEntry, buffer: bytearray) -> str:
    digest, view, total = hashlib.sha256(), memoryview(buffer), 0
    with _undecided_on_failure(entry.path):
        while count := os.readv(descriptor, [view]):
            total += count
            # A file that grows while it is read must not keep us reading.
            if total > entry.size:
                raise _wrong_size(entry, total)
            digest.update(view[:count])
    if total != entry.size:
        raise _wrong_size(entry, total)
    return digest.hexdigest()


def _wrong_size(entry: FileEntry, found: int) -> SizeMismatch:
    return SizeMismatch(
        f"'{entry.path}' has {found} bytes, the signed file table says {entry.size}",
        path=entry.path,
        found=found,
        expected=entry.size,
    )


def _refuse_set(what: str, prefix: str, names: list[str]) -> None:
    listed = ", ".join(shown(prefix + name) for name in names[:_LISTED])
    more = " and more" if len(names) > _LISTED else ""
    raise FileSetMismatch(f"these {what}: {listed}{more}", paths=[shown(prefix + name) for name in names[:_LISTED]])


@contextmanager
def _opened(name: str, parent: int | None, path: str, flags: int) -> Iterator[int]:
    try:
        descriptor = os.open(name, _OPEN | flags, dir_fd=parent)
    except OSError as error:
        raise _why_not_opened(name, parent, path, error) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _why_not_opened(name: str, parent: int | None, path: str, error: OSError) -> SpmError:
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return FileSetMismatch(f"{shown(path)} is not there", paths=[shown(path)])
    except OSError:
        return _undecided(path, error)
    if stat.S_ISLNK(mode):
        return LinkRefused(f"{shown(path)} is a symbolic link, a plugin's tree has none", path=shown(path))
    if isinstance(error, NotADirectoryError):
        return TypeMismatch(f"{shown(path)} is not a folder", path=shown(path))
    return _undecided(path, error)


@contextmanager
def _undecided_on_failure(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _undecided(path, error) from error


def _undecided(path: str, error: OSError) -> Undecided:
    return Undecided(
        f"{shown(path)} cannot be read: {error.strerror}; a file that was not read is not verified",
        reason="unknown:content",
        path=shown(path),
    )

"""A folder held against a file table: exactly these files, nothing else. Follows no link and opens each file once.

Walks folder by folder through descriptors, so that nothing can be swapped for a link between a look and a read. Who
has reason to believe that a big file with a certain stamp is sound says so in `known`; that file alone is not read.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keys.file_hash import FileHasher
from keys.shown import bounded, shown
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

BIG_FILE_BYTES = 1 << 20
"""A file of at most this size is always hashed."""

_LISTED = 10
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NOTHING: Mapping[str, "FileStamp"] = MappingProxyType({})

_Branch = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStamp:
    """What a file system says of a file's identity and last change."""

    dev: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "FileStamp":
        return cls(
            dev=status.st_dev,
            inode=status.st_ino,
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
        )


IsSettled = Callable[[int, FileStamp], bool]
"""Tells of an open file whether every write from now on must give it another stamp than this one."""


def check_tree(
    files: Iterable[FileEntry],
    directory: Path,
    *,
    known: Mapping[str, FileStamp] = _NOTHING,
    is_settled: IsSettled | None = None,
) -> Mapping[str, FileStamp]:
    """Accept a folder that holds exactly these files.

    A big file whose stamp is the `known` one of its path is taken without reading it. Returns the stamps of the big
    files that were hashed and that `is_settled` accepted before: as long as a stamp stays, so does the content.
    Raises: FileSetMismatch for files missing or not in the table; LinkRefused for any symbolic link; TypeMismatch for
    anything but plain files and folders, and for a wrong executable bit; SizeMismatch; DigestMismatch; Undecided when
    the folder cannot be read.
    """
    check = _Check(known, is_settled)
    descriptor = _open(str(directory), None, str(directory), os.O_DIRECTORY)
    try:
        check.folder(descriptor, _as_branches(files), "")
    finally:
        os.close(descriptor)
    return MappingProxyType(check.stamps)


def _as_branches(files: Iterable[FileEntry]) -> _Branch:
    root: _Branch = {}
    for entry in files:
        *folders, name = entry.path.split("/")
        branch = root
        for folder in folders:
            branch = branch.setdefault(folder, {})
        branch[name] = entry
    return root


class _Check:
    """One walk through a tree; `stamps` holds the big files that were hashed and are settled."""

    def __init__(self, known: Mapping[str, FileStamp], is_settled: IsSettled | None) -> None:
        self._hasher = FileHasher()
        self._known = known
        self._is_settled = is_settled
        self.stamps: dict[str, FileStamp] = {}

    def folder(self, descriptor: int, wanted: _Branch, prefix: str) -> None:
        _check_names(descriptor, wanted, prefix)
        for name, inner in wanted.items():
            path = prefix + name
            is_file = isinstance(inner, FileEntry)
            opened = _open(name, descriptor, path, 0 if is_file else os.O_DIRECTORY)
            try:
                if is_file:
                    self._file(opened, inner)
                else:
                    self.folder(opened, inner, f"{path}/")
            finally:
                os.close(opened)

    def _file(self, descriptor: int, entry: FileEntry) -> None:
        status = os.fstat(descriptor)
        _check_status(status, entry)
        if entry.size <= BIG_FILE_BYTES:
            self._content(descriptor, entry)
            return
        stamp = FileStamp.of(status)
        if self._known.get(entry.path) == stamp:
            return
        is_settled = self._is_settled is not None and self._is_settled(descriptor, stamp)
        self._content(descriptor, entry)
        if is_settled and FileStamp.of(os.fstat(descriptor)) == stamp:
            self.stamps[entry.path] = stamp

    def _content(self, descriptor: int, entry: FileEntry) -> None:
        try:
            found, size = self._hasher.sha256(descriptor, entry.size)
        except OSError as error:
            raise _undecided(entry.path, error) from error
        if size != entry.size:
            raise _wrong_size(entry, size)
        if found != entry.sha256:
            raise DigestMismatch(
                f"'{entry.path}' has the digest sha256:{found}, the signed file table says sha256:{entry.sha256}: "
                "it was changed after signing",
                path=entry.path,
                found=found,
                expected=entry.sha256,
            )


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
        raise LinkRefused(f"{shown(path)} is a symbolic link, a plugin's tree has none", path=bounded(path))
    if not is_folder and not entry.is_file(follow_symlinks=False):
        raise TypeMismatch(f"{shown(path)} is neither a plain file nor a folder", path=bounded(path))
    if wanted is not None and is_folder is isinstance(wanted, FileEntry):
        found, needed = ("folder", "file") if is_folder else ("file", "folder")
        raise TypeMismatch(
            f"{shown(path)} is a {found}, the signed file table has a {needed} there", path=bounded(path)
        )


def _check_status(status: os.stat_result, entry: FileEntry) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise TypeMismatch(f"'{entry.path}' is not a plain file", path=entry.path)
    _check_mode(stat.S_IMODE(status.st_mode), entry)
    if status.st_size != entry.size:
        raise _wrong_size(entry, status.st_size)


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
    raise FileSetMismatch(f"these {what}: {listed}{more}", paths=[bounded(prefix + name) for name in names[:_LISTED]])


def _open(name: str, parent: int | None, path: str, flags: int) -> int:
    try:
        return os.open(name, _OPEN | flags, dir_fd=parent)
    except OSError as error:
        raise _why_not_opened(name, parent, path, error) from error


def _why_not_opened(name: str, parent: int | None, path: str, error: OSError) -> SpmError:
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return FileSetMismatch(f"{shown(path)} is not there", paths=[bounded(path)])
    except OSError:
        return _undecided(path, error)
    if stat.S_ISLNK(mode):
        return LinkRefused(f"{shown(path)} is a symbolic link, a plugin's tree has none", path=bounded(path))
    if isinstance(error, NotADirectoryError):
        return TypeMismatch(f"{shown(path)} is not a folder", path=bounded(path))
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
        path=bounded(path),
    )

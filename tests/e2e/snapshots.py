"""Everything under a folder as a value, to show that nothing changed. Changes nothing itself."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Snapshot = dict[str, tuple[str, str, int, str]]


def snapshot(folder: Path) -> Snapshot:
    """Return type, mode, size and digest (of a link: its text) of the folder and all that is in it."""
    return {str(path.relative_to(folder)): _look(path) for path in (folder, *sorted(folder.rglob("*")))}


def _look(path: Path) -> tuple[str, str, int, str]:
    status = path.lstat()
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    if stat.S_ISDIR(status.st_mode):
        return "folder", mode, 0, ""
    if stat.S_ISLNK(status.st_mode):
        return "link", mode, status.st_size, os.readlink(path)
    if stat.S_ISREG(status.st_mode):
        return "file", mode, status.st_size, hashlib.sha256(path.read_bytes()).hexdigest()
    return "other", mode, status.st_size, ""


@contextmanager
def unchanged(*folders: Path) -> Iterator[None]:
    """Assert that nothing in the folders is another at the end than at the beginning."""
    before = [snapshot(folder) for folder in folders]
    yield
    assert [snapshot(folder) for folder in folders] == before

"""What has come of a blob so far, kept by digest for the command that goes on with it. Fetches and trusts nothing.

A partial file is `partial/<sha256>.<owner>`, where the owner is the command's own folder in `tmp/`:

1. Only its owner writes a partial file, so two commands at once never write into one.
2. The owner's folder is made before anything is fetched and is gone when the command is, if only because the next one
   sweeps it up. From then on the file is anybody's, and who renames it first goes on with it.
3. Whoever goes on hashes what is there before he appends: what a partial file holds is believed by its digest alone.
4. What is no plain file there, or has another name elsewhere, is nobody's partial file: it is never written to.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from manifests.errors import LinkRefused, RegistryUnreachable, SpmError, TypeMismatch
from runtime.generation import listed
from spm_client.store.layout import Layout

WORTH_KEEPING = 64 << 10
"""Bytes: what is smaller is fetched as quickly as it is looked for."""
_NAME = re.compile(r"([0-9a-f]{64})\.([^/]+)")


class Partials:
    """The partial files of one command, and those that are anybody's. `scratch` lies in the command's own folder.

    Raises: LinkRefused, TypeMismatch where something else is in the folder's place.
    """

    def __init__(self, layout: Layout, scratch: Path) -> None:
        self._layout = layout
        self.owner = owner_of(layout, scratch)
        self._found: dict[str, list[Path]] = {}
        for path, sha256, owner in _partials(layout):
            if owner == self.owner or _is_anybodys(layout, owner):
                self._found.setdefault(sha256, []).append(path)

    def claim(self, sha256: str, size: int) -> Path:
        """Return where this command writes a blob: a file with what has come of it, or none there yet."""
        place = folder(self._layout) / f"{sha256}.{self.owner}"
        found = self._found.pop(sha256, [])
        fitting = [path for path in found if 0 < _bytes_held(path) <= size]
        best = place if place in fitting else max(fitting, key=_bytes_held, default=None)
        for path in found:
            if path != best:
                _remove(path)
        if best is not None:
            with suppress(FileNotFoundError):  # another command has claimed it first
                best.rename(place)
                place.chmod(0o600)  # a whole one may have become a plugin's read-only file before its command ended
        return place

    def leave(self) -> None:
        """Keep for the next command what is worth it."""
        for path, _, owner in _partials(self._layout):
            if owner == self.owner and _bytes_held(path) < WORTH_KEEPING:
                _remove(path)
        tidy(self._layout)


def settle(layout: Layout, owner: str, ending: BaseException) -> None:
    """Remove what a refused command has fetched, unless it was the network that failed, or a person who stopped it.

    Usage: `except BaseException as error: settle(layout, folder.name, error); raise`, before the folder is removed.
    """
    if isinstance(ending, SpmError | OSError) and not isinstance(ending, RegistryUnreachable):
        with suppress(LinkRefused, TypeMismatch):  # it holds nothing of ours, and `ending` is what is told
            for path, _, other in _partials(layout):
                if owner == other:
                    _remove(path)
        tidy(layout)


def unowned(layout: Layout) -> Iterator[Path]:
    """Yield what has the name of a partial file that no command writes, whatever it is."""
    for path, _, owner in _partials(layout):
        if _is_anybodys(layout, owner):
            yield path


def tidy(layout: Layout) -> None:
    """Remove the folder where nothing is in it."""
    with suppress(OSError):
        folder(layout).rmdir()


def folder(layout: Layout) -> Path:
    return layout.root / "partial"


def owner_of(layout: Layout, scratch: Path) -> str:
    """Return the name of the command's own folder, in which `scratch` lies."""
    return scratch.relative_to(layout.tmp).parts[0]


def _partials(layout: Layout) -> Iterator[tuple[Path, str, str]]:
    try:
        names = listed(folder(layout))
    except (LinkRefused, TypeMismatch) as error:
        error.hint = "spm keeps there what has come of big files: move it elsewhere, and run the command again"
        raise
    for name in names:
        if told := _NAME.fullmatch(name):
            yield folder(layout) / name, told[1], told[2]


def _is_anybodys(layout: Layout, owner: str) -> bool:
    return not os.path.lexists(layout.tmp / owner)


def _remove(path: Path) -> None:
    with suppress(IsADirectoryError):  # nothing of ours, and for gc to free
        path.unlink(missing_ok=True)


def _bytes_held(path: Path) -> int:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return 0
    return status.st_size if is_own(status) else 0


def is_own(status: os.stat_result) -> bool:
    """Tell whether what is written to this file is written nowhere else."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1

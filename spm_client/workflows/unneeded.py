"""What of a store neither the generations that are kept nor a host needs. Reads the store, changes nothing in it.

What is needed follows from generations and manifests alone, never from a clock; what is there is read from the disk, so
that what a killed command has left is found too. Names that spm does not give are left alone.
"""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from manifests.errors import FileSetMismatch
from manifests.lockfile import Generation, InstalledEntry
from spm_client.store.generations import numbers
from spm_client.store.layout import Layout
from spm_client.store.partial import is_own, unowned
from spm_client.workflows.history import manifest_of

_DAY_SECONDS = 24 * 60 * 60
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_RELEASE = re.compile(r"[0-9][A-Za-z0-9._+-]{0,199}")


class Kind(StrEnum):
    """What is freed, as its count is called."""

    GENERATIONS = "generations"
    RELEASES = "releases"
    MANIFESTS = "manifests"
    RECEIPTS = "receipts"
    BLOBS = "blobs"
    PARTIALS = "partials"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unneeded:
    """What goes together. A release has the manifests whose marks keep it, since a host runs it."""

    kind: Kind
    shown: str
    places: tuple[Path, ...]
    marks: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        name, _, release = self.shown.partition(" ")
        return f"`{name}` {release}".strip()


@dataclass(slots=True)
class Footprint:
    """Files and the bytes that the disk gets back: a file with several links only with the last of them."""

    files: int = 0
    _links: Counter[tuple[int, int]] = field(default_factory=Counter)
    _sizes: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def add(self, found: Sequence[os.stat_result]) -> None:
        for status in found:
            key = (status.st_dev, status.st_ino)
            self.files += 1
            self._links[key] += 1
            self._sizes[key] = (status.st_size, status.st_nlink)

    @property
    def bytes(self) -> int:
        return sum(size for key, (size, links) in self._sizes.items() if self._links[key] >= links)


def unneeded(layout: Layout, kept: Sequence[Generation]) -> Iterator[Unneeded]:
    """Yield what none of the kept generations needs; the last of them is the current one.

    Raises: FileSetMismatch where the manifest of what is installed is lost or damaged, so that nobody can say which
    blobs are its own.
    """
    needed = {
        entry.manifest_sha256: manifest_of(layout, entry.manifest_sha256) for one in kept for entry in one.plugins
    }
    for entry in kept[-1].plugins if kept else ():
        if needed[entry.manifest_sha256] is None:
            raise _damaged(entry)
    oldest = kept[0].number if kept else 0
    for number in (number for number in numbers(layout) if number < oldest):
        yield Unneeded(kind=Kind.GENERATIONS, shown=str(number), places=(layout.generation(number),))
    trees = {(str(entry.name), entry.release) for one in kept for entry in one.plugins}
    yield from _releases(layout, needed, trees)
    yield from _receipts(layout, needed)
    yield from _blobs(layout, {file.sha256 for manifest in needed.values() if manifest for file in manifest.files})


def partials(layout: Layout, now: float) -> Iterator[Unneeded]:
    """Yield what downloads of commands that are no more have left, unless it is of today; a clock may be wrong.

    What no download can go on with, a folder or a link, is freed whatever its day.
    """
    for path in unowned(layout):
        try:
            status = path.lstat()
        except FileNotFoundError:
            continue
        if abs(now - status.st_mtime) > _DAY_SECONDS or not is_own(status):
            yield Unneeded(kind=Kind.PARTIALS, shown=path.name, places=(path,))


def footprint(places: Iterable[Path]) -> list[os.stat_result]:
    """Return what is known of the files at and below the places; links count as themselves."""
    found = []
    for place in places:
        for path in (str(place), *_below(place)):
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if not stat.S_ISDIR(status.st_mode):
                found.append(status)
    return found


def _releases(layout: Layout, needed: Iterable[str], trees: set[tuple[str, str]]) -> Iterator[Unneeded]:
    """Yield trees and manifests; those of one release together, under the manifests' marks."""
    manifests: dict[tuple[str, str], list[str]] = {}
    nameless = []
    for sha256 in _names(layout.manifests, _DIGEST):
        if sha256 not in needed:
            manifest = manifest_of(layout, sha256)
            if manifest is None:
                nameless.append(sha256)
            else:
                manifests.setdefault((manifest.name, manifest.release), []).append(sha256)
    there = {
        (name, release): layout.trees / name / release
        for name in _names(layout.trees, _NAME)
        for release in _names(layout.trees / name, _RELEASE)
        if (name, release) not in trees
    }
    for key in sorted(there.keys() | manifests.keys()):
        marks = tuple(manifests.get(key, ()))
        places = (*((there[key],) if key in there else ()), *map(layout.manifest, marks))
        kind = Kind.RELEASES if key in there else Kind.MANIFESTS
        yield Unneeded(kind=kind, shown=" ".join(key), places=places, marks=marks)
    for sha256 in nameless:
        yield Unneeded(kind=Kind.MANIFESTS, shown=sha256, places=(layout.manifest(sha256),), marks=(sha256,))


def _receipts(layout: Layout, needed: Iterable[str]) -> Iterator[Unneeded]:
    for name in _names(layout.receipts, re.compile(rf"{_DIGEST.pattern}\.json")):
        if name.removesuffix(".json") not in needed:
            yield Unneeded(kind=Kind.RECEIPTS, shown=name, places=(layout.receipts / name,))


def _blobs(layout: Layout, needed: set[str]) -> Iterator[Unneeded]:
    for first in _names(layout.blobs, re.compile(r"[0-9a-f]{2}")):
        folder = layout.blobs / first
        for name in _names(folder, re.compile(rf"{_DIGEST.pattern}|\..*")):
            # What begins with a dot is of a command that was killed while it copied or put aside.
            if name not in needed:
                yield Unneeded(kind=Kind.BLOBS, shown=name, places=(folder / name,))


def _names(folder: Path, pattern: re.Pattern[str]) -> list[str]:
    if folder.is_symlink():
        return []  # what it leads to is not this store's to free
    try:
        return sorted(name for name in os.listdir(folder) if pattern.fullmatch(name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _below(folder: Path) -> Iterator[str]:
    for path, folders, files in os.walk(folder):
        yield from (os.path.join(path, name) for name in (*folders, *files))


def _damaged(entry: InstalledEntry) -> FileSetMismatch:
    return FileSetMismatch(
        f"the manifest of `{entry.name}` {entry.release}, which is installed, is lost or damaged: nobody can say which "
        "blobs are needed; nothing was freed",
        hint=f"`spm verify {entry.name}` shows what is amiss, `spm install {entry.name}=={entry.version}` mends it",
        plugin=entry.name,
        release=entry.release,
    )

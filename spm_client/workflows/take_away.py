"""Taking away what nothing needs, unless another command may have seen it. Does not decide what goes.

1. A command shows itself by its scratch folder before it looks at anything: while one is there, nothing is touched.
2. What goes is renamed into this command's own scratch, a few places at a time.
3. Where a command or a newer generation has appeared meanwhile, it is put back: else nobody has seen what is gone.
4. It is removed with the scratch folder: by this command at its end, or by the next one if this one is killed.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from manifests.lockfile import InstalledEntry
from runtime.generation import current_generation
from runtime.in_use import Running, Untold, seized
from spm_client.store.generations import newest_number
from spm_client.store.layout import Layout
from spm_client.store.staging import is_shared

LEFT = ".gone-"
"""How the name of a file begins that was put aside on a disk of its own, and that a killed command has left there."""


def remove_trees(gone: Sequence[InstalledEntry], layout: Layout, scratch: Path, *, is_known_idle: bool = False) -> None:
    """Take away the trees of releases that the current generation does not name; one that a host runs stays.

    Manifests and blobs stay, for a rollback. Places are made of checked names, never of a plugin's own data.
    """
    standing = current_generation(layout.root)
    named = {(entry.name, entry.release) for entry in standing.plugins}
    for entry in gone:
        if (entry.name, entry.release) in named:
            continue
        tree = layout.tree(entry.name, entry.release)
        with seized(layout.root, entry.manifest_sha256) as host:
            if not isinstance(host, Running) and (is_known_idle or not isinstance(host, Untold)):
                take_away([tree, layout.receipt(entry.manifest_sha256)], layout, scratch, standing.number)
        remove_if_empty(tree.parent)


def take_away(places: Sequence[Path], layout: Layout, scratch: Path, number: int) -> bool:
    """Take all of these places away or none, judged by generation `number`; tell whether they are gone.

    Raises: OSError, and then they are where they were.
    """
    if may_be_needed(layout, scratch, number):
        return False
    moved: list[tuple[Path, Path]] = []
    try:
        for place in places:
            with suppress(FileNotFoundError):
                moved.append((place, _put_aside(place, scratch)))
        if not may_be_needed(layout, scratch, number):
            _remove_what_left_the_disk(moved, scratch)
            return True
    except BaseException:
        _put_all_back(moved)
        raise
    _put_all_back(moved)
    return False


def may_be_needed(layout: Layout, scratch: Path, number: int) -> bool:
    """Tell whether another command is at work, or was and has committed since generation `number`."""
    # In this order: a command that ends between the two looks has committed before the second.
    return is_shared(layout, scratch) or newest_number(layout) != number


def put_back(aside: Path, place: Path) -> None:
    """Move what was put aside to its place again, unless something lies there by now."""
    if not os.path.lexists(place):
        os.rename(aside, place)


def remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _put_aside(place: Path, scratch: Path) -> Path:
    aside = scratch / f"gone-{os.urandom(8).hex()}"
    try:
        os.rename(place, aside)
    except OSError as error:
        if error.errno != errno.EXDEV or place.is_dir():
            raise
        # The blobs are on another disk than the scratch folder.
        aside = place.with_name(f"{LEFT}{os.urandom(8).hex()}")
        os.rename(place, aside)
    return aside


def _put_all_back(moved: Sequence[tuple[Path, Path]]) -> None:
    for place, aside in reversed(moved):
        put_back(aside, place)


def _remove_what_left_the_disk(moved: Sequence[tuple[Path, Path]], scratch: Path) -> None:
    for _, aside in moved:
        if aside.parent != scratch:
            aside.unlink()

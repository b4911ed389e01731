"""Generations: what is installed at one moment, committed by exclusive create. Resolves and fetches nothing.

Creating the next number decides who goes first; `current` then follows, and readers believe `current` alone. Whoever
finds the number taken, or a number above `current` that a killed command has left, finishes that work and plans again.
"""

import os
from dataclasses import replace
from pathlib import Path

from manifests.errors import LimitReached
from manifests.lockfile import Generation
from runtime.generation import current_generation
from spm_client.store.layout import Layout, make_folder, sync_folder, write_file, write_scratch


class NumberTaken(Exception):
    """Another command has committed this generation's number: plan again."""


def read_current(layout: Layout, registry: str) -> Generation:
    """Return the current generation; number 0, of `registry`, where nothing was ever installed."""
    generation = current_generation(layout.root)
    return generation if generation.number else replace(generation, registry=registry)


def commit(layout: Layout, generation: Generation, *, scratch: Path) -> None:
    """Make this generation the current one.

    Raises: NumberTaken when another command has committed the same number.
    """
    if generation.number > 999_999:
        raise LimitReached("the store has used all 999999 generation numbers", reason="limit:generations")
    make_folder(layout.generations)
    _create(layout.generation(generation.number), write_scratch(generation.to_bytes(), scratch=scratch))
    point_at_newest(layout, scratch=scratch)


def point_at_newest(layout: Layout, *, scratch: Path) -> None:
    """Let `current` name the newest committed generation, also when another command commits meanwhile."""
    named = _named(layout)
    while (newest := _newest(layout)) != named:
        write_file(layout.current, f"{newest:06d}\n".encode(), scratch=scratch)
        named = newest


def _create(path: Path, written: Path) -> None:
    """Create the file with its whole content at once, or find it taken."""
    try:
        os.link(written, path)
    except FileExistsError as error:
        raise NumberTaken(path.name) from error
    sync_folder(path.parent)


def _newest(layout: Layout) -> int:
    try:
        names = os.listdir(layout.generations)
    except FileNotFoundError:
        return 0
    return max((int(name[:6]) for name in names if len(name) == 11 and name[:6].isdecimal()), default=0)


def _named(layout: Layout) -> int:
    try:
        return int(layout.current.read_text(encoding="ascii"))
    except FileNotFoundError:
        return 0

"""Generations: what is installed at one moment, committed by exclusive create. Resolves and fetches nothing.

Creating the next number decides who goes first; `current` then follows, and readers believe `current` alone. Whoever
finds the number taken, or a number above `current` that a killed command has left, finishes that work and plans again.
What no command can have left there, a damaged one, is never made current.
"""

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from manifests.errors import FileSetMismatch, LimitReached, SpmError
from manifests.lockfile import Generation
from runtime.generation import current_generation, listed, read_bounded, read_generation
from spm_client.store.layout import Layout, make_folder, sync_folder, write_file, write_scratch

_FILE = re.compile(r"[0-9]{6}\.json")
_CURRENT = re.compile(rb"[0-9]{6}\n?")
_MAX_CURRENT = 32


MAX_RACES = 64


class NumberTaken(Exception):
    """Another command has committed this generation's number: plan again."""


def lost_races(layout: Layout) -> LimitReached:
    """Return the refusal of a command that others were always faster than."""
    message = f"other commands changed `{layout.root}` {MAX_RACES} times while this one tried"
    return LimitReached(message, reason="limit:races", hint="run the command again")


def read_current(layout: Layout, registry: str) -> Generation:
    """Return the current generation; number 0, of `registry`, where nothing was ever installed."""
    generation = current_generation(layout.root)
    return generation if generation.number else replace(generation, registry=registry)


def commit(
    layout: Layout,
    generation: Generation,
    *,
    scratch: Path,
    taken: Callable[[], None] = lambda: None,
    along: AbstractContextManager[None] | None = None,
) -> None:
    """Make this generation the current one, and call `taken` as soon as its number is this command's for good.

    Both files are written before, so that what can fail, as on a full disk, fails while nothing has changed; and from
    there on Ctrl-C is too late. `along` is entered just before the number is taken, and left when it was or was not.
    Raises: NumberTaken when another command has committed the same number.
    """
    if generation.number > 999_999:
        raise LimitReached("the store has used all 999999 generation numbers", reason="limit:generations")
    written = write_scratch(generation.to_bytes(), scratch=scratch)
    pointer = write_scratch(f"{generation.number:06d}\n".encode(), scratch=scratch)
    with undisturbed():
        with along or nullcontext():
            _create(layout, generation.number, written)
        taken()
        os.replace(pointer, layout.current)
        sync_folder(layout.root)
        with suppress(FileSetMismatch):  # this commit stands; what is damaged beyond it is for the next command to say
            point_at_newest(layout, scratch=scratch)


def point_at_newest(layout: Layout, *, scratch: Path) -> None:
    """Let `current` name the newest committed generation, also when another command commits meanwhile.

    Raises: FileSetMismatch where that is lost or damaged, and `current` is as it was.
    """
    named = _named(layout)
    if newest_number(layout) < (named or 0) or (named is None and newest_number(layout) == 0):
        raise FileSetMismatch(
            f"`{layout.current}` names a generation that is not in `{layout.generations}`: the store lost what it had",
            hint="restore the folder from a backup, or remove `current` to begin from the newest that is there",
            path=str(layout.generations),
        )
    while (newest := newest_number(layout)) != named:
        _require_whole(layout, newest)
        write_file(layout.current, f"{newest:06d}\n".encode(), scratch=scratch)
        named = newest


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore SIGINT meanwhile, where it could be raised: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _create(layout: Layout, number: int, written: Path) -> None:
    """Create the file with its whole content at once, or find it taken."""
    make_folder(layout.generations)
    try:
        os.link(written, layout.generation(number))
    except FileExistsError as error:
        raise NumberTaken(number) from error
    except OSError:
        with suppress(OSError):  # it holds earlier generations
            layout.generations.rmdir()
        raise
    sync_folder(layout.generations)


def newest_number(layout: Layout) -> int:
    """Return the number of the newest committed generation; 0 where there is none."""
    return max(numbers(layout), default=0)


def numbers(layout: Layout) -> list[int]:
    """Return the numbers of all generations that are there, oldest first, whatever their clocks said."""
    return [int(name[:6]) for name in listed(layout.generations) if _FILE.fullmatch(name)]


def damage_beyond(layout: Layout) -> FileSetMismatch | None:
    """Return why the newest generation cannot be made current, if it is not; it then stays in nobody's way but its own.

    Nothing is removed for that: `current` stands, and a return to an earlier generation goes beyond it.
    """
    newest = newest_number(layout)
    try:
        if newest > (_named(layout) or 0):
            _require_whole(layout, newest)
    except FileSetMismatch as refusal:
        return refusal
    return None


def _require_whole(layout: Layout, number: int) -> None:
    try:
        read_generation(layout.root, number)
    except SpmError as error:
        path = layout.generation(number)
        raise FileSetMismatch(
            f"`{path}` is the newest generation, but damaged, and cannot be made current: {error.message}; nothing was "
            "changed",
            hint=f"restore it from a backup, or remove it (`rm -r {path}`): what is installed now is whole, `spm list` "
            "shows it",
            path=str(path),
            generation=number,
        ) from error


def _named(layout: Layout) -> int | None:
    """Return the number that `current` names: 0 where it is absent, None where it is damaged."""
    if not os.path.lexists(layout.current):
        return 0
    try:
        text = read_bounded(layout.current, _MAX_CURRENT)
    except SpmError:
        return None
    return int(text) if _CURRENT.fullmatch(text) else None

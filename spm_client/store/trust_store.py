"""What the store remembers of its registry's signed metadata, committed as generations are. Verifies nothing.

A state is a file of its own, `trust/NNNNNN.json`, linked whole under the next number; readers take the newest. Until
its command has succeeded it has a second link, in that command's scratch: it may then be taken back, and no other
command counts on it. Beside it `trust/cache/` keeps bins, shards and what shards no longer say; each file there may be
gone, and bins and shards are verified by whoever reads them.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from keys.trust_state import TrustState, read_trust_state
from manifests.errors import ContentError, LimitReached, SpmError, Undecided
from runtime.generation import listed, read_bounded
from spm_client.store.generations import MAX_RACES, lost_races
from spm_client.store.layout import Layout, make_folder, sync_folder, write_scratch

_FILE = re.compile(r"[0-9]{6}\.json")
_LAST = 999_999


@contextmanager
def committing(
    layout: Layout, state: TrustState, cache: Mapping[str, Path], *, scratch: Path, is_anew: bool = False
) -> Iterator[None]:
    """Make `state` the newest within the block, and take it back where the block ends in an error.

    `cache` holds files in scratch by the name that they will have in `trust/cache/`; they are kept as far as they can.
    `is_anew` puts the state also over a newest one that is damaged.
    """
    linked: _Linked | None = None
    try:
        if cache:
            make_folder(layout.trust_cache)
        linked = _link_next(layout, state, scratch, is_anew=is_anew)
        yield
    except BaseException:
        if linked is not None:
            linked.path.unlink(missing_ok=True)
        for folder in (layout.trust_cache, layout.trust):
            _remove_if_empty(folder)
        raise
    if linked is not None:
        with suppress(OSError):  # while it stays, others only do more than they must
            linked.written.unlink()
        _prune(layout, linked.number)
    with suppress(OSError):  # what is not kept is fetched again
        _keep(layout, cache)


def newer(held: TrustState | None, ours: TrustState) -> TrustState:
    """Return what is to stand where another command may have learnt more meanwhile: of each part the newer one."""
    if held is None or (held.registry, held.root_sha256) != (ours.registry, ours.root_sha256):
        return ours
    later = ours if _age(ours) >= _age(held) else held
    of_file = ours if _serial(ours.imported_keyring) >= _serial(held.imported_keyring) else held
    return replace(later, imported_targets=of_file.imported_targets, imported_keyring=of_file.imported_keyring)


def held_or_anew(layout: Layout, *, is_anew: bool) -> TrustState | None:
    """Return what the store remembers; nothing where that is damaged and trust is to begin anew."""
    try:
        return read_trust_state(layout.root)
    except (ContentError, Undecided):
        if is_anew:
            return None
        raise


def cached(layout: Layout, name: str, max_bytes: int) -> bytes | None:
    """Return a file of the cache; None where it is not there or no file of a store."""
    try:
        return read_bounded(layout.trust_cache / name, max_bytes)
    except SpmError:
        return None


@dataclass(frozen=True, slots=True)
class _Linked:
    """A state of this command's own: its number and place, and the file in scratch that it has been linked from."""

    number: int
    path: Path
    written: Path


def _link_next(layout: Layout, state: TrustState, scratch: Path, *, is_anew: bool) -> _Linked | None:
    """Create the state under the next number; None where what is there for good says as much already."""
    for _ in range(MAX_RACES):
        newest = max(_numbers(layout), default=0)
        held = held_or_anew(layout, is_anew=is_anew)
        wanted = newer(held, state)
        if wanted == held and _is_for_good(layout, newest):
            return None
        number = _within(newest + 1)
        written = write_scratch(wanted.to_bytes(), scratch=scratch)
        linked = _Linked(number, layout.trust_state(number), written)
        make_folder(layout.trust)
        try:
            os.link(linked.written, linked.path)
        except (FileExistsError, FileNotFoundError):
            continue  # another command was faster, or has just removed the empty folder: look again
        # A number may have come and gone since it was looked for, and a state that is not the newest holds nothing.
        if max(_numbers(layout), default=0) == linked.number:
            sync_folder(layout.trust)
            return linked
        linked.path.unlink(missing_ok=True)
    raise lost_races(layout)


def _is_for_good(layout: Layout, number: int) -> bool:
    """Tell whether a state is still the newest, and of a command that will not take it back."""
    try:
        links = layout.trust_state(number).stat(follow_symlinks=False).st_nlink
    except FileNotFoundError:
        return False
    return links == 1 and max(_numbers(layout), default=0) == number


def _within(number: int) -> int:
    if number > _LAST:
        raise LimitReached(f"the store has used all {_LAST} numbers of trust states", reason="limit:trust-states")
    return number


def _numbers(layout: Layout) -> list[int]:
    return [int(name[:6]) for name in listed(layout.trust) if _FILE.fullmatch(name)]


def _prune(layout: Layout, own: int) -> None:
    """Remove what this command's state came after, but for the one before, for whoever has just read its name."""
    for number in [number for number in _numbers(layout) if number < own][:-1]:
        with suppress(OSError):  # a damaged one may be a folder
            layout.trust_state(number).unlink(missing_ok=True)


def _keep(layout: Layout, cache: Mapping[str, Path]) -> None:
    for name, path in cache.items():
        path.chmod(0o644)
        os.replace(path, layout.trust_cache / name)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # it was there before, or is not there
        folder.rmdir()


def _age(state: TrustState) -> tuple[int, int, int]:
    return state.root_version, _version(state.timestamp), _serial(state.keyring)


def _version(metadata: str | None) -> int:
    return int(json.loads(metadata)["signed"]["version"]) if metadata else 0


def _serial(keyring: str | None) -> int:
    return int(json.loads(keyring)["serial"]) if keyring else 0

"""Gc: free what neither the generations that are kept nor a host needs. Installs nothing, and decides by no clock.

1. Only alone: another command at work may count on anything that is there.
2. Find what is unneeded; that a host runs it keeps a release with its manifest.
3. Take it away a few places at a time. A command that begins meanwhile ends the work; what is freed by then is freed.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from manifests.errors import FileSetMismatch, InUse, LimitReached, SpmError
from manifests.lockfile import Generation
from runtime.generation import current_generation, read_generation
from runtime.in_use import Running, excluded, seized
from spm_client.store.generations import newest_number, numbers, point_at_newest
from spm_client.store.layout import Layout, refusals
from spm_client.store.partial import tidy
from spm_client.store.staging import at_work, staging
from spm_client.workflows.take_away import remove_if_empty, take_away
from spm_client.workflows.unneeded import Footprint, Kind, Unneeded, footprint, partials, unneeded

BATCH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class StillRun:
    """A release that is unneeded, and stays since hosts run it."""

    item: Unneeded
    processes: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class Freed:
    """What was freed, or would be; what stayed for a host; and whether another command ended the work early."""

    generation: int
    kept: tuple[int, ...]
    items: list[Unneeded] = field(default_factory=list)
    footprint: Footprint = field(default_factory=Footprint)
    still_run: list[StillRun] = field(default_factory=list)
    is_complete: bool = True

    def of(self, kind: Kind) -> list[str]:
        return [item.shown for item in self.items if item.kind is kind]

    @property
    def manifests(self) -> int:
        return sum(len(item.marks) for item in self.items)


def gc(layout: Layout, *, keep: int, now: float, is_dry_run: bool = False, is_known_idle: bool = False) -> Freed:
    """Free what the newest `keep` generations do not need; with `is_dry_run` only find it.

    Raises: LimitReached while another command is at work; Undecided where the disk cannot tell whether a host runs what
    were to be freed, unless `is_known_idle`; FileSetMismatch where it cannot be told what is needed.
    """
    with refusals(layout.root):
        if is_dry_run:
            return _found(layout, keep, now, is_known_idle=is_known_idle)
        with staging(layout) as scratch:
            _require_alone(layout, scratch)
            point_at_newest(layout, scratch=scratch)
            found = _found(layout, keep, now, is_known_idle=is_known_idle)
            return _free(found, layout, scratch)


def _found(layout: Layout, keep: int, now: float, *, is_known_idle: bool) -> Freed:
    current_generation(layout.root)  # a store that has lost it must not seem empty
    kept = _kept(layout, keep)
    found = Freed(generation=newest_number(layout), kept=tuple(one.number for one in kept))
    for item in (*unneeded(layout, kept), *partials(layout, now)):
        hosts = _hosts(layout, item, is_known_idle=is_known_idle)
        if hosts is None:
            found.items.append(item)
            found.footprint.add(footprint(item.places))
        else:
            found.still_run.append(StillRun(item=item, processes=hosts))
    return found


def _kept(layout: Layout, keep: int) -> list[Generation]:
    kept = []
    for number in numbers(layout)[-keep:]:
        try:
            kept.append(read_generation(layout.root, number))
        except SpmError as error:
            raise FileSetMismatch(
                f"nobody can say what generation {number} of `{layout.root}` needs: {error.message}; nothing was freed",
                hint="restore it from a backup, or keep only what is newer: `spm gc --keep N`",
                generation=number,
            ) from error
    return kept


def _hosts(layout: Layout, item: Unneeded, *, is_known_idle: bool) -> tuple[int, ...] | None:
    """Return who runs it; None where nobody does."""
    shown = dict.fromkeys(item.marks, item.words)
    try:
        with excluded(layout.root, shown, is_known_idle=is_known_idle):
            return None
    except InUse as error:
        return tuple(error.context["processes"])


def _free(found: Freed, layout: Layout, scratch: Path) -> Freed:
    freed = Freed(generation=found.generation, kept=found.kept, still_run=found.still_run)
    for group in _groups(found.items):
        status = [one for item in group for one in footprint(item.places)]
        with ExitStack() as marks:
            hosts = [marks.enter_context(seized(layout.root, sha256)) for item in group for sha256 in item.marks]
            if any(isinstance(host, Running) for host in hosts):
                continue  # it began a moment ago
            places = [place for item in group for place in item.places]
            if not take_away(places, layout, scratch, found.generation):
                freed.is_complete = False
                return freed
        freed.items.extend(group)
        freed.footprint.add(status)
        for folder in {place.parent for place in places}:
            if folder.parent in {layout.blobs, layout.trees}:
                remove_if_empty(folder)
    tidy(layout)
    return freed


def _groups(items: Sequence[Unneeded]) -> Iterator[list[Unneeded]]:
    """Yield what is taken away at once: a release by itself, under its marks; of the rest, which has none, many."""
    group: list[Unneeded] = []
    for item in items:
        if group and (item.marks or len(group) == BATCH):
            yield group
            group = []
        group.append(item)
        if item.marks:
            yield group
            group = []
    if group:
        yield group


def _require_alone(layout: Layout, scratch: Path) -> None:
    others = at_work(layout, scratch)
    if others:
        raise LimitReached(
            f"another command is at work in `{layout.root}`, and may need what is there; nothing was freed",
            reason="limit:busy",
            hint=f"run the command again when it is done; if none is at work, on no host and in no container that "
            f"shares the store, remove `{others[0]}`",
            at_work=[str(path) for path in others],
        )

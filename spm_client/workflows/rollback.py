"""Rollback: make what an earlier generation had stand again, as a new generation. Asks no registry, removes nothing.

1. Find the generation to return to: the one before the current, or the one that was named.
2. Judge each of its plugins by what this host trusts today: keys, revocations, the signature.
3. Find what has no sound tree any more, and whether its blobs are there.
4. Lay those trees out in scratch, move them into place, commit. What the generation left has stays until `spm gc`.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from keys.keyring import LoaderConf
from keys.receipts import may_use_receipt
from keys.verified import VerifiedManifest
from manifests.errors import ConfigError, FileSetMismatch, LimitReached, NotFound, SpmError
from manifests.lockfile import Generation, InstalledEntry
from runtime.generation import current_generation, read_generation
from runtime.guard import require_guarded_store
from runtime.installed import StoreTrust, read_manifest
from spm_client.store.blobs import holds
from spm_client.store.generations import (
    NumberTaken,
    commit,
    damage_beyond,
    newest_number,
    numbers,
    point_at_newest,
)
from spm_client.store.layout import Layout, refusals
from spm_client.store.receipts import may_vouch
from spm_client.store.staging import staging
from spm_client.workflows.history import Changed, changes
from spm_client.workflows.place import Placement, is_sound


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """The generation that now stands, the number of the one that it repeats, and what changed."""

    generation: Generation
    repeats: int
    changes: tuple[Changed, ...]
    laid_out: tuple[InstalledEntry, ...]
    """What had no sound tree any more."""


def rollback(
    layout: Layout,
    conf: LoaderConf,
    *,
    to: int | None,
    now: datetime,
    created: str,
    is_known_idle: bool = False,
) -> RolledBack:
    """Return to the previous generation, or to number `to`, or refuse and change nothing.

    Raises: NotFound where there is no such generation; what trust refuses; FileSetMismatch for what is gone; InUse
    where a damaged tree that a host runs were to be replaced; LimitReached where another command was faster.
    """
    conf.require_root()
    require_guarded_store(layout.root)
    with refusals(layout.root), staging(layout) as scratch:
        if damage_beyond(layout) is None:
            point_at_newest(layout, scratch=scratch)
        # Taken before what is current is read: another command's number is then never passed over.
        newest = newest_number(layout)
        base = current_generation(layout.root)
        goal = _goal(layout, base, to)
        _require_registry(layout, goal, conf)
        trust = StoreTrust(layout.root, conf, now)
        absent = _absent(layout, goal, trust)
        following = base.following(registry=goal.registry, created=created, plugins=goal.plugins)
        following = replace(following, number=max(newest, base.number) + 1)
        is_same = following.plugins == base.plugins
        with Placement(layout, scratch, is_known_idle=is_known_idle) as placement:
            _place(placement, layout, absent, conf)
            if not is_same:
                _commit(layout, following, placement, scratch)
            placement.keep()
        return RolledBack(
            generation=base if is_same else following,
            repeats=goal.number,
            changes=changes(base.plugins, goal.plugins),
            laid_out=tuple(absent),
        )


def _goal(layout: Layout, base: Generation, to: int | None) -> Generation:
    there = [number for number in numbers(layout) if number <= base.number]
    if to is None and base.number <= 1:
        raise NotFound(
            f"nothing was installed in `{layout.root}` before {'generation 1' if there else 'now'}: "
            "there is nothing to return to",
            hint="`spm uninstall NAME` removes a plugin" if there else "",
        )
    number = base.number - 1 if to is None else to
    if number not in there:
        listed = ", ".join(map(str, there)) or "none"
        was_freed = f"the generation before this one ({number}) was freed by `spm gc`: `{layout.root}` has {listed}"
        raise NotFound(
            was_freed if to is None else f"generation {number} is not in `{layout.root}`, which has {listed}",
            hint="`spm install NAME==VERSION` takes an earlier release"
            if to is None
            else "`spm rollback --list` shows them; `spm gc` frees older ones",
            generation=number,
            there=there,
        )
    try:
        return read_generation(layout.root, number)
    except SpmError as error:
        raise FileSetMismatch(
            f"generation {number} of `{layout.root}` is damaged: {error.message}; nothing was changed",
            hint="`spm rollback --list` shows which are whole, and `--to N` returns to one of them",
            generation=number,
            path=str(layout.generation(number)),
        ) from error


def _require_registry(layout: Layout, goal: Generation, conf: LoaderConf) -> None:
    if goal.plugins and goal.registry != conf.registry_id:
        raise ConfigError(
            f"the plugins of generation {goal.number} in `{layout.root}` are of the registry `{goal.registry}`, "
            f"but loader.conf is of `{conf.registry_id}`",
            hint="a store returns only to what its own registry vouches for; use another store (`--root DIR`)",
        )


def _absent(layout: Layout, goal: Generation, trust: StoreTrust) -> dict[InstalledEntry, VerifiedManifest]:
    """Return what has to be laid out anew; each plugin is judged, also one whose tree is there."""
    absent: dict[InstalledEntry, VerifiedManifest] = {}
    gone: dict[InstalledEntry, str] = {}
    for entry in goal.plugins:
        if not layout.manifest(entry.manifest_sha256).is_dir():
            gone[entry] = "its manifest"
            continue
        verified = read_manifest(layout.root, entry, trust.of(entry))
        if is_sound(layout, verified):
            continue
        absent[entry] = verified
        files = {file.sha256: file for file in verified.manifest.files}
        lost = [file for file in files.values() if not holds(layout, file)]
        if lost:
            gone[entry] = f"{len(lost)} of its {len(files)} blobs"
    if gone:
        raise _gone(goal, gone)
    return absent


def _gone(goal: Generation, gone: dict[InstalledEntry, str]) -> FileSetMismatch:
    listed = "; ".join(f"of `{entry.name}` {entry.release}, {what}" for entry, what in gone.items())
    return FileSetMismatch(
        f"generation {goal.number} cannot be laid out again, since the store no longer has: {listed}; "
        "nothing was changed",
        hint=f"fetch it from the registry: `spm install {' '.join(f'{one.name}=={one.version}' for one in gone)}`",
        generation=goal.number,
        missing=[{"name": entry.name, "release": entry.release, "lacks": what} for entry, what in gone.items()],
    )


def _place(
    placement: Placement, layout: Layout, absent: dict[InstalledEntry, VerifiedManifest], conf: LoaderConf
) -> None:
    for verified in absent.values():
        placement.put(verified, {file.sha256: layout.blob(file.sha256) for file in verified.manifest.files})
    for verified in absent.values() if may_vouch(layout) else ():
        if may_use_receipt(verified.manifest, conf.full_hash_bytes):
            placement.vouch(verified)
    placement.settle()


def _commit(layout: Layout, following: Generation, placement: Placement, scratch: Path) -> None:
    try:
        commit(layout, following, scratch=scratch, taken=placement.keep)
    except NumberTaken as error:
        raise LimitReached(
            f"another command has made generation {following.number} of `{layout.root}` meanwhile: returning now would "
            "undo that too; nothing was changed",
            reason="limit:races",
            hint="`spm rollback --list` shows what changed; run the command again if it still is what you want",
        ) from error

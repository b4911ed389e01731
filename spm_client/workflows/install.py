"""Install: resolve, verify, fetch, lay out, commit. Until the commit nothing in the store has changed.

1. Refresh what is trusted (loader.conf and the signed metadata of each registry that is asked); read what is installed.
2. Resolve the wishes together with what was asked for before.
3. Fetch each new manifest and verify its author's signature before anything of it is read.
4. Fetch the blobs that the store lacks into scratch, digests checked as they come.
5. Lay out the trees in scratch; move blobs, manifests and trees into place; write receipts for the biggest.
6. Commit trust and the next generation. If another command took its number, begin again with what is installed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from keys.keyring import LoaderConf
from keys.receipts import may_use_receipt
from keys.verified import VerifiedManifest
from manifests.errors import ConfigError, WasteTrapFound
from manifests.lockfile import Bindings, Generation, InstalledEntry
from manifests.names import PluginName
from manifests.target import Target
from manifests.traps import Finding, PluginFacts, find_traps
from runtime.guard import require_guarded_store
from spm_client.progress import Advance, Progress, phase
from spm_client.resolve import Pin, Requirement, Resolution, resolve
from spm_client.resolve.requirement import ANY
from spm_client.store.generations import (
    MAX_RACES,
    NumberTaken,
    commit,
    lost_races,
    point_at_newest,
    read_current,
    undisturbed,
)
from spm_client.store.layout import Layout, refusals
from spm_client.store.receipts import may_vouch
from spm_client.store.staging import staging
from spm_client.workflows.alone import WithoutRequired, require_whole
from spm_client.workflows.by_lock import lock_bounds, require_locked
from spm_client.workflows.consent import (
    Wishes,
    move_back,
    require_bindable,
    require_used,
    require_within,
    would_move_back,
)
from spm_client.workflows.counted import Counted
from spm_client.workflows.download import Blobs, find_blobs
from spm_client.workflows.fetch_manifests import fetch_all_verified
from spm_client.workflows.patience import within
from spm_client.workflows.place import Placement, is_sound
from spm_client.workflows.plan import Change, Downloaded, Installed, NoLongerTrusted
from spm_client.workflows.registries import Connect, RegistryIndexes, wished_in

__all__ = ["Change", "Installed", "NoLongerTrusted", "install", "install_by"]


def install(
    wishes: Wishes,
    layout: Layout,
    conf: LoaderConf,
    connect: Connect,
    target: Target,
    *,
    now: datetime,
    created: str,
    progress: Progress,
) -> Installed:
    """Install what is wished for and all that it requires, or refuse and change nothing.

    `connect` gives the registry of a loader.conf; it is called for those alone that have something to be asked.
    Raises: any refusal of trust, resolution, signature, content or transport; ConfigPermissions for a store that others
    may change; LimitReached after 64 lost races.
    """
    conf.require_root()
    require_guarded_store(layout.root)
    with (
        refusals(layout.root),
        staging(layout) as scratch,
        RegistryIndexes(
            layout, conf, connect, scratch=scratch, now=now, wished=wished_in(wishes.requirements)
        ) as indexes,
    ):
        return install_by(indexes, wishes, layout, conf, target, scratch=scratch, created=created, progress=progress)


def install_by(
    indexes: RegistryIndexes,
    wishes: Wishes,
    layout: Layout,
    conf: LoaderConf,
    target: Target,
    *,
    scratch: Path,
    created: str,
    progress: Progress,
) -> Installed:
    """Install by indexes whose trust is refreshed in `scratch`, each when it is first asked.

    Raises: as `install`.
    """
    for attempt in range(MAX_RACES):
        point_at_newest(layout, scratch=scratch)
        folder = scratch / str(attempt)
        folder.mkdir()
        try:
            return _Attempt(wishes, layout, indexes, conf, target, folder).run(created, progress)
        except NumberTaken:
            continue
    raise lost_races(layout)


class _Attempt:
    """One try, based on the generation that was current when it began."""

    def __init__(
        self,
        wishes: Wishes,
        layout: Layout,
        indexes: RegistryIndexes,
        conf: LoaderConf,
        target: Target,
        scratch: Path,
    ) -> None:
        self._wishes = wishes
        self._layout = layout
        self._indexes = indexes
        self._conf = conf
        self._target = target
        self._scratch = scratch
        self._base = read_current(layout, conf.registry_id)
        indexes.stand_on(self._base)

    def run(self, created: str, progress: Progress) -> Installed:
        self._require_registry()
        require_bindable(self._wishes, self._target)
        with phase(progress, "Resolving", noun="plugin") as advance:
            resolution = self._resolve(advance)
        self._require_consent(resolution)
        pins = tuple(pin for pin in resolution.pins if self._is_new(pin))
        with phase(progress, "Verifying", len(pins), noun="manifest") as advance:
            new = self._verified(pins, advance)
        changes = (*(self._change(pin, new) for pin in resolution.pins), *self._left_alone())
        generation = self._following(changes, created)
        refused = tuple(self._no_longer_trusted(generation, new))
        findings = self._findings(new, changes)
        if self._wishes.is_strict and findings:
            raise _wasteful(findings)
        absent = [verified for verified in new.values() if not is_sound(self._layout, verified)]
        blobs = find_blobs([verified.manifest for verified in absent], self._layout)
        if not self._wishes.is_dry_run:
            self._place(generation, absent, blobs, progress)
        lost = {verified.manifest.name for verified in absent}
        return Installed(
            generation=generation,
            changes=tuple(sorted(changes, key=lambda change: change.after.name)),
            findings=findings,
            repaired=frozenset(one.after.name for one in changes if one.before == one.after and one.after.name in lost),
            dropped=tuple(entry for entry in self._base.plugins if generation.find(entry.name) is None),
            wished=self._wishes.names,
            refused=refused,
            downloaded=Downloaded(blobs=len(blobs.missing), size=blobs.size),
            is_exact=self._wishes.is_exact,
        )

    @cached_property
    def _kept(self) -> tuple[InstalledEntry, ...]:
        """What is installed and has a say in the resolution."""
        if self._wishes.is_exact:
            return ()
        return tuple(entry for entry in self._base.plugins if entry.name not in self._wishes.names)

    def _resolve(self, advance: Advance) -> Resolution:
        wishes, kept = self._wishes, self._kept
        index = Counted(self._indexes, advance)
        alone = WithoutRequired(index) if wishes.no_deps else None
        wanted = [entry for entry in kept if entry.requested] if alone is None else []
        before = [Requirement(name=entry.name, range=ANY, source="what is installed") for entry in wanted]
        bounds = lock_bounds(wishes, self._indexes.own, self._indexes.registry_of)
        self._indexes.prefetch([*wishes.names, *(entry.name for entry in wanted), *wishes.locked])
        resolution = resolve(
            alone or index,
            (*wishes.requirements, *before),
            self._target,
            pins=bounds,
            accept_fallback=wishes.accepted,
            pre=wishes.pre,
            locked={entry.name: entry.version for entry in kept}
            | {name: locked.version for name, locked in wishes.locked.items()},
            held_builds={entry.name: frozenset({entry.manifest_sha256}) for entry in kept},
            exclude_newer=wishes.exclude_newer,
            force_arch=wishes.force_arch,
            is_late=within(),
        )
        if alone is not None:
            resolution = alone.whole(resolution)
            require_whole(resolution, kept, self._layout)
        return resolution

    def _left_alone(self) -> Iterator[Change]:
        """Yield what is not even looked at where a plugin is installed alone."""
        for entry in self._kept if self._wishes.no_deps else ():
            yield Change(before=entry, after=entry)

    def _is_new(self, pin: Pin) -> bool:
        """Tell whether the pin must be fetched and verified; what was asked for by name, or by a lock, is so again."""
        before = self._base.find(pin.name)
        return (
            before is None
            or before.manifest_sha256 != pin.variant.manifest_sha256
            or before.bindings != self._wishes.bindings_for(pin.name, before.bindings)
            or pin.name in self._wishes.names
            or pin.name in self._wishes.locked
        )

    def _verified(self, pins: tuple[Pin, ...], advance: Advance) -> dict[PluginName, VerifiedManifest]:
        return fetch_all_verified(
            pins,
            lambda pin: self._indexes.fetch_manifest(pin.name, pin.release, pin.variant),
            lambda pin: self._indexes.of(pin.name).conf,
            self._layout,
            advance,
        )

    def _no_longer_trusted(
        self, generation: Generation, new: Mapping[PluginName, VerifiedManifest]
    ) -> Iterator[NoLongerTrusted]:
        """Yield what stays as it is though its signatures count no longer.

        Raises: the refusal of one that something wished for needs, which could then never load.
        """
        needed = {entry.name for name in self._wishes.names for entry in generation.closure(name)}
        for entry in (entry for entry in generation.plugins if entry.name not in new):
            refusal = self._indexes.no_longer_trusted(entry)
            if refusal is not None and entry.name in needed:
                raise refusal
            if refusal is not None:
                yield NoLongerTrusted(entry=entry, refusal=refusal)

    def _change(self, pin: Pin, new: Mapping[PluginName, VerifiedManifest]) -> Change:
        before = self._base.find(pin.name)
        if pin.name not in new:
            assert before is not None, "only an installed plugin is not new"
            after = replace(before, requested=self._is_requested(pin, before))
            return Change(before=before, after=after, yanked=pin.release.yanked)
        manifest, locked = new[pin.name].manifest, self._wishes.locked.get(pin.name)
        bindings = self._wishes.bindings_for(pin.name, before.bindings if before else Bindings())
        if before is None or bindings != before.bindings or pin.name in self._wishes.names:
            require_within(manifest, bindings, self._target)
        after = InstalledEntry(
            name=pin.name,
            version=pin.version,
            release=manifest.release,
            manifest_sha256=new[pin.name].sha256,
            type=manifest.type,
            keyids=tuple(sorted(new[pin.name].keyids)),
            requested=self._is_requested(pin, before),
            requires=tuple(name for name, _ in manifest.requires.plugins),
            fallback=self._move_back(pin) or (locked.fallback if locked else None) or pin.fallback,
            bindings=bindings,
            registry=self._indexes.entered(pin.name),
        )
        is_taken = before is None or before.version != pin.version
        once_yanked = self._indexes.once_yanked(pin.name, pin.version) if is_taken and not pin.release.yanked else None
        return Change(before=before, after=after, yanked=pin.release.yanked, once_yanked=once_yanked)

    def _is_requested(self, pin: Pin, before: InstalledEntry | None) -> bool:
        was_requested = before is not None and before.requested and not self._wishes.is_exact
        return pin.name in self._wishes.names or was_requested

    def _following(self, changes: tuple[Change, ...], created: str) -> Generation:
        """Return the generation that will stand: the present one where nothing in it changes."""
        plugins = tuple(change.after for change in changes)
        generation = self._base.following(registry=self._conf.registry_id, created=created, plugins=plugins)
        return self._base if generation.plugins == self._base.plugins else generation

    def _require_registry(self) -> None:
        if self._base.plugins and self._base.registry != self._conf.registry_id:
            raise ConfigError(
                f"the plugins in `{self._layout.root}` are of the registry `{self._base.registry}`, "
                f"but loader.conf is of `{self._conf.registry_id}`",
                hint="use another store for another registry (`--root DIR`), or uninstall first what is there",
            )

    def _require_consent(self, resolution: Resolution) -> None:
        require_used(self._wishes, resolution)
        require_locked(self._wishes, resolution)
        for pin in resolution.pins:
            if (why := self._move_back(pin)) and pin.name not in self._wishes.accept_fallback:
                raise would_move_back(pin, why, self._wishes)

    def _move_back(self, pin: Pin) -> str | None:
        before = self._base.find(pin.name)
        if before is None or before.version <= pin.version:
            return None
        return move_back(pin, before.version, self._wishes, self._indexes.releases(pin.name))

    def _findings(self, new: Mapping[PluginName, VerifiedManifest], changes: tuple[Change, ...]) -> tuple[Finding, ...]:
        return tuple(
            finding
            for change in changes
            if change.after.name in new
            for finding in find_traps(
                PluginFacts.of_manifest(new[change.after.name].manifest, change.after.bindings, change.after.fallback),
                self._target,
                target_option=self._wishes.target_option,
            )
        )

    def _place(self, generation: Generation, absent: list[VerifiedManifest], blobs: Blobs, progress: Progress) -> None:
        is_same = generation is self._base
        if is_same and not absent:
            self._keep_trust()
            return
        blob_of = self._indexes.fetch_missing(blobs, self._scratch, progress)
        with (
            phase(progress, "Installing", len(absent), noun="plugin") as advance,
            Placement(self._layout, self._scratch, is_known_idle=self._wishes.is_known_idle) as placement,
        ):
            for verified in absent:
                placement.put(verified, blob_of)
                advance(1)
            for verified in absent if may_vouch(self._layout) else ():
                if may_use_receipt(verified.manifest, self._conf.full_hash_bytes):
                    placement.vouch(verified)
            placement.settle()
            if is_same:
                self._keep_trust()
            else:
                learnt = self._indexes.committing(self._scratch)
                commit(self._layout, generation, scratch=self._scratch, taken=placement.keep, along=learnt)
            placement.keep()

    def _keep_trust(self) -> None:
        with undisturbed(), self._indexes.committing(self._scratch):
            pass


def _wasteful(findings: tuple[Finding, ...]) -> WasteTrapFound:
    return WasteTrapFound(
        "; ".join(finding.message for finding in findings),
        reason=findings[0].trap,
        hint=findings[0].remedy,
        waste_traps=[finding.to_dict() for finding in findings],
    )

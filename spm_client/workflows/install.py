"""Install: resolve, verify, fetch, lay out, commit. Until the commit nothing in the store has changed.

1. Read what is trusted (loader.conf) and what is installed (the current generation).
2. Resolve the wishes together with what was asked for before.
3. Fetch each new manifest and verify its author's signature before anything of it is read.
4. Fetch the blobs that the store lacks into scratch, digests checked as they come.
5. Lay out the trees in scratch; move blobs, manifests and trees into place.
6. Commit the next generation. If another command took its number, begin again at 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keys.keyring import LoaderConf
from keys.verified import Expected, VerifiedManifest, verify_manifest
from manifests.errors import ConfigError, WasteTrapFound
from manifests.lockfile import Bindings, Generation, InstalledEntry
from manifests.names import PluginName
from manifests.target import Target
from manifests.traps import Finding, PluginFacts, find_traps
from runtime.guard import require_guarded_store
from spm_client.adapters.http import RegistryClient
from spm_client.adapters.index import RegistryIndex, require_agreement
from spm_client.progress import Progress
from spm_client.resolve import Pin, Requirement, Resolution, resolve
from spm_client.resolve.requirement import ANY
from spm_client.store.generations import MAX_RACES, NumberTaken, commit, lost_races, point_at_newest, read_current
from spm_client.store.layout import Layout, refusals
from spm_client.store.staging import staging
from spm_client.workflows.consent import (
    Wishes,
    move_back,
    require_bindable,
    require_used,
    require_within,
    would_move_back,
)
from spm_client.workflows.download import download
from spm_client.workflows.place import Placement, is_sound, remove_trees


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one plugin: `before` is None where it is new, equal to `after` where nothing changed."""

    before: InstalledEntry | None
    after: InstalledEntry
    yanked: str | None = None
    """Why the release was yanked, where it is kept all the same or was asked for exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The generation that now stands, how it came, and the waste traps in what was asked for."""

    generation: Generation
    changes: tuple[Change, ...]
    findings: tuple[Finding, ...] = ()
    repaired: frozenset[PluginName] = frozenset()
    """What was installed before and found damaged, now laid out anew."""
    dropped: tuple[InstalledEntry, ...] = ()
    """What nothing requires any more."""
    wished: frozenset[PluginName] = frozenset()


def install(
    wishes: Wishes,
    layout: Layout,
    conf: LoaderConf,
    client: RegistryClient,
    target: Target,
    *,
    created: str,
    progress: Progress,
) -> Installed:
    """Install what is wished for and all that it requires, or refuse and change nothing.

    Raises: any refusal of resolution, signature, content or transport; ConfigPermissions for a store that others may
    change; LimitReached after 64 lost races.
    """
    require_guarded_store(layout.root)
    with refusals(layout.root), staging(layout) as scratch:
        index = RegistryIndex(client, conf.registry_id)
        for attempt in range(MAX_RACES):
            point_at_newest(layout, scratch=scratch)
            folder = scratch / str(attempt)
            folder.mkdir()
            try:
                return _Attempt(wishes, layout, conf, client, index, target, folder).run(created, progress)
            except NumberTaken:
                continue
    raise lost_races(layout)


class _Attempt:
    """One try, based on the generation that was current when it began."""

    def __init__(
        self,
        wishes: Wishes,
        layout: Layout,
        conf: LoaderConf,
        client: RegistryClient,
        index: RegistryIndex,
        target: Target,
        scratch: Path,
    ) -> None:
        self._wishes = wishes
        self._layout = layout
        self._conf = conf
        self._client = client
        self._index = index
        self._target = target
        self._scratch = scratch
        self._base = read_current(layout, conf.registry_id)

    def run(self, created: str, progress: Progress) -> Installed:
        self._require_registry()
        require_bindable(self._wishes, self._target)
        resolution = self._resolve()
        self._require_consent(resolution)
        new = {pin.name: self._verified(pin) for pin in resolution.pins if self._is_new(pin)}
        changes = tuple(self._change(pin, new) for pin in resolution.pins)
        generation = self._following(changes, created)
        findings = self._findings(new, changes)
        if self._wishes.is_strict and findings:
            raise WasteTrapFound(
                "; ".join(finding.message for finding in findings),
                reason=findings[0].trap,
                hint=findings[0].remedy,
                waste_traps=[finding.to_dict() for finding in findings],
            )
        absent = [verified for verified in new.values() if not is_sound(self._layout, verified)]
        dropped = tuple(entry for entry in self._base.plugins if generation.find(entry.name) is None)
        if not self._wishes.is_dry_run:
            self._place(generation, absent, progress)
            remove_trees(dropped, self._layout, self._scratch)
        lost = {verified.manifest.name for verified in absent}
        return Installed(
            generation=generation,
            changes=changes,
            findings=findings,
            repaired=frozenset(one.after.name for one in changes if one.before == one.after and one.after.name in lost),
            dropped=dropped,
            wished=self._wishes.names,
        )

    def _resolve(self) -> Resolution:
        kept = [entry for entry in self._base.plugins if entry.name not in self._wishes.names]
        before = [
            Requirement(name=entry.name, range=ANY, source="what is installed") for entry in kept if entry.requested
        ]
        return resolve(
            self._index,
            (*self._wishes.requirements, *before),
            self._target,
            accept_fallback=self._wishes.accept_fallback,
            pre=self._wishes.pre,
            locked={entry.name: entry.version for entry in kept},
        )

    def _is_new(self, pin: Pin) -> bool:
        """Tell whether the pin must be fetched and verified; what was asked for by name is verified again."""
        before = self._base.find(pin.name)
        return before is None or before.manifest_sha256 != pin.variant.manifest_sha256 or pin.name in self._wishes.names

    def _verified(self, pin: Pin) -> VerifiedManifest:
        expected = Expected(
            registry=self._conf.registry_id,
            name=pin.name,
            version=pin.version,
            manifest_sha256=pin.variant.manifest_sha256,
            variant_tag=pin.variant.variant.tag if pin.variant.variant else None,
            type=pin.release.type,
        )
        fetched = self._index.fetch_manifest(pin.release, pin.variant)
        verified = verify_manifest(fetched, self._conf.keyring, expected)
        require_agreement(pin.release, verified.manifest)
        return verified

    def _change(self, pin: Pin, new: Mapping[PluginName, VerifiedManifest]) -> Change:
        before = self._base.find(pin.name)
        if pin.name not in new:
            assert before is not None, "only an installed plugin is not new"
            return Change(before=before, after=before, yanked=pin.release.yanked)
        verified = new[pin.name]
        is_wished = pin.name in self._wishes.names
        bindings = before.bindings if before else Bindings()
        if is_wished:
            bindings = self._wishes.laid_over(bindings)
            require_within(verified.manifest, bindings, self._target)
        after = InstalledEntry(
            name=pin.name,
            version=pin.version,
            release=verified.manifest.release,
            manifest_sha256=verified.sha256,
            type=verified.manifest.type,
            keyids=tuple(sorted(verified.keyids)),
            requested=is_wished or bool(before and before.requested),
            requires=tuple(name for name, _ in verified.manifest.requires.plugins),
            fallback=self._move_back(pin) or pin.fallback,
            bindings=bindings,
        )
        return Change(before=before, after=after, yanked=pin.release.yanked)

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
        for pin in resolution.pins:
            if (why := self._move_back(pin)) and pin.name not in self._wishes.accept_fallback:
                raise would_move_back(pin, why)

    def _move_back(self, pin: Pin) -> str | None:
        before = self._base.find(pin.name)
        if before is None or before.version <= pin.version:
            return None
        return move_back(pin, before.version, self._wishes, self._index.releases(pin.name))

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

    def _place(self, generation: Generation, absent: list[VerifiedManifest], progress: Progress) -> None:
        is_same = generation is self._base
        if is_same and not absent:
            return
        manifests = [verified.manifest for verified in absent]
        blob_of = download(manifests, self._layout, self._scratch, self._client, progress)
        with Placement(self._layout, self._scratch) as placement:
            for verified in absent:
                placement.put(verified, blob_of)
            placement.settle()
            if not is_same:
                commit(self._layout, generation, scratch=self._scratch, taken=placement.keep)
            placement.keep()

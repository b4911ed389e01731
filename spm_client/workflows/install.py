"""Install: resolve, verify, fetch, lay out, commit. Until the commit nothing in the store has changed.

1. Refresh what is trusted (loader.conf and the registry's signed metadata); read what is installed.
2. Resolve the wishes together with what was asked for before.
3. Fetch each new manifest and verify its author's signature before anything of it is read.
4. Fetch the blobs that the store lacks into scratch, digests checked as they come.
5. Lay out the trees in scratch; move blobs, manifests and trees into place; write receipts for the biggest.
6. Commit trust and the next generation. If another command took its number, begin again with what is installed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from keys.keyring import LoaderConf
from keys.receipts import may_use_receipt
from keys.verified import Expected, VerifiedManifest, verify_manifest
from manifests.errors import ConfigError, SpmError, WasteTrapFound
from manifests.index import ReleaseEntry, VariantEntry
from manifests.lockfile import Bindings, Generation, InstalledEntry
from manifests.names import PluginName
from manifests.target import Target
from manifests.traps import Finding, PluginFacts, find_traps
from runtime.guard import require_guarded_store
from runtime.installed import no_longer_trusted
from spm_client.adapters.index import RegistryIndex, require_agreement
from spm_client.adapters.source import Source
from spm_client.progress import Progress
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
from spm_client.workflows.trust import TrustSession, refreshed


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one plugin: `before` is None where it is new, equal to `after` where nothing changed."""

    before: InstalledEntry | None
    after: InstalledEntry
    yanked: str | None = None
    """Why the release was yanked, where it is kept all the same or was asked for exactly."""
    once_yanked: str | None = None
    """Why it had been yanked when it was seen here before, where it is taken anew and offered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLongerTrusted:
    """An installed release that this command leaves alone, and that no host loads any more."""

    entry: InstalledEntry
    refusal: SpmError


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
    refused: tuple[NoLongerTrusted, ...] = ()
    """What stays installed though its signatures count no longer."""


def install(
    wishes: Wishes,
    layout: Layout,
    conf: LoaderConf,
    source: Source,
    target: Target,
    *,
    now: datetime,
    created: str,
    progress: Progress,
) -> Installed:
    """Install what is wished for and all that it requires, or refuse and change nothing.

    Raises: any refusal of trust, resolution, signature, content or transport; ConfigPermissions for a store that others
    may change; LimitReached after 64 lost races.
    """
    conf.require_root()
    require_guarded_store(layout.root)
    with refusals(layout.root), staging(layout) as scratch:
        trust = refreshed(layout, conf, source, scratch=scratch, now=now)
        index = RegistryIndex(source, trust, conf.registry_id)
        return install_by(
            trust, index, wishes, layout, source, target, scratch=scratch, created=created, progress=progress
        )


def install_by(
    trust: TrustSession,
    index: RegistryIndex,
    wishes: Wishes,
    layout: Layout,
    source: Source,
    target: Target,
    *,
    scratch: Path,
    created: str,
    progress: Progress,
) -> Installed:
    """Install by trust that has just been refreshed in `scratch`, and by an index that it vouches for.

    Raises: as `install`.
    """
    for attempt in range(MAX_RACES):
        point_at_newest(layout, scratch=scratch)
        folder = scratch / str(attempt)
        folder.mkdir()
        try:
            return _Attempt(wishes, layout, trust, source, index, target, folder).run(created, progress)
        except NumberTaken:
            continue
    raise lost_races(layout)


def fetch_verified(
    index: RegistryIndex, conf: LoaderConf, name: PluginName, release: ReleaseEntry, variant: VariantEntry
) -> VerifiedManifest:
    """Return the manifest of a variant that the index lists, its author's signature verified.

    Raises: what `verify_manifest` raises; Mix where the index says of it what no author signed.
    """
    expected = Expected(
        registry=conf.registry_id,
        name=name,
        version=release.version,
        manifest_sha256=variant.manifest_sha256,
        variant_tag=variant.variant.tag if variant.variant else None,
        type=release.type,
    )
    verified = verify_manifest(index.fetch_manifest(release, variant), conf.keyring, expected)
    require_agreement(release, verified.manifest)
    return verified


class _Attempt:
    """One try, based on the generation that was current when it began."""

    def __init__(
        self,
        wishes: Wishes,
        layout: Layout,
        trust: TrustSession,
        source: Source,
        index: RegistryIndex,
        target: Target,
        scratch: Path,
    ) -> None:
        self._wishes = wishes
        self._layout = layout
        self._trust = trust
        self._conf = trust.conf
        self._source = source
        self._index = index
        self._target = target
        self._scratch = scratch
        self._base = read_current(layout, trust.conf.registry_id)

    def run(self, created: str, progress: Progress) -> Installed:
        self._require_registry()
        require_bindable(self._wishes, self._target)
        resolution = self._resolve()
        self._require_consent(resolution)
        new = {pin.name: self._verified(pin) for pin in resolution.pins if self._is_new(pin)}
        changes = tuple(self._change(pin, new) for pin in resolution.pins)
        generation = self._following(changes, created)
        refused = tuple(self._no_longer_trusted(generation, new))
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
            refused=refused,
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
        return fetch_verified(self._index, self._conf, pin.name, pin.release, pin.variant)

    def _no_longer_trusted(
        self, generation: Generation, new: Mapping[PluginName, VerifiedManifest]
    ) -> Iterator[NoLongerTrusted]:
        """Yield what stays as it is though its signatures count no longer.

        Raises: the refusal of one that something wished for needs, which could then never load.
        """
        needed = {entry.name for name in self._wishes.names for entry in generation.closure(name)}
        for entry in (entry for entry in generation.plugins if entry.name not in new):
            refusal = no_longer_trusted(self._layout.root, entry, self._conf)
            if refusal is not None and entry.name in needed:
                raise refusal
            if refusal is not None:
                yield NoLongerTrusted(entry=entry, refusal=refusal)

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
        is_taken = before is None or before.version != pin.version
        once_yanked = self._index.once_yanked(pin.name, pin.version) if is_taken and not pin.release.yanked else None
        return Change(before=before, after=after, yanked=pin.release.yanked, once_yanked=once_yanked)

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
                raise would_move_back(pin, why, self._wishes)

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
            self._keep_trust()
            return
        manifests = [verified.manifest for verified in absent]
        blob_of = download(manifests, self._layout, self._scratch, self._source, progress)
        with Placement(self._layout, self._scratch) as placement:
            for verified in absent:
                placement.put(verified, blob_of)
            for verified in absent if may_vouch(self._layout) else ():
                if may_use_receipt(verified.manifest, self._conf.full_hash_bytes):
                    placement.vouch(verified)
            placement.settle()
            if is_same:
                self._keep_trust()
            else:
                learnt = self._trust.committing(self._scratch)
                commit(self._layout, generation, scratch=self._scratch, taken=placement.keep, along=learnt)
            placement.keep()

    def _keep_trust(self) -> None:
        with undisturbed(), self._trust.committing(self._scratch):
            pass

"""Lock: resolve spm.toml for every target, verify what is new, keep what need not change. Writes nothing itself.

1. Hold what is locked for each target, save what is to be freed; a target that is new holds what the others do.
2. Resolve once a target. What differs between targets for no other reason than being held is freed, and 2 again.
3. Verify the author's signature of every variant that spm.lock does not have yet; judge the others by today's trust.
4. Assemble the lock: only of what the registries and spm.toml say, so that any host writes the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from manifests.devices import matches
from manifests.errors import (
    FallbackRefused,
    Fork,
    IncompatibleTarget,
    OtherRegistry,
    ResolutionError,
    SpmError,
    Undecided,
)
from manifests.index import ReleaseEntry
from manifests.names import PluginName
from manifests.project import Project
from manifests.project_lock import LockedPlugin, ProjectLock, TargetPin
from manifests.target import Target
from manifests.versions import Version
from spm_client.adapters.project_files import target_digest
from spm_client.progress import Advance, Progress, phase
from spm_client.resolve import Pin, Provider, Requirement, Resolution, resolve
from spm_client.workflows.lock_verify import Candidate, Judged, judge_variants
from spm_client.workflows.lock_words import fallback_words
from spm_client.workflows.patience import within
from spm_client.workflows.registries import RegistryIndexes

NOTHING: frozenset[PluginName] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """A lock as it should be now, and what is to be told of releases that it keeps, by name and version.

    Why one was yanked; why one is no longer trusted; when one was published beyond the bound that is set.
    """

    lock: ProjectLock
    yanked: tuple[tuple[PluginName, Version, str], ...] = ()
    distrusted: tuple[tuple[PluginName, Version, SpmError], ...] = ()
    beyond: tuple[tuple[PluginName, Version, str], ...] = ()


def resolve_lock(
    project: Project,
    targets: Mapping[str, Target],
    before: ProjectLock | None,
    indexes: RegistryIndexes,
    *,
    freed: frozenset[PluginName] | None = NOTHING,
    exclude_newer: str | None = None,
    now: datetime,
    progress: Progress,
    command: str = "spm lock",
) -> Locked:
    """Return the lock of a project; of `before` all stays that still does, save the `freed` (None: everything).

    `command` is what a person writes to do it, for the hints.
    Raises: the refusals of resolution, of signatures and of the registries; OtherRegistry for another registry than the
    one that the project or the lock is of; Fork where a locked version has other manifests now; Undecided after 60 s.
    """
    require_registry(project, before, indexes.own)
    _require_bindable(project, targets)
    locking = _Locking(project, targets, before, indexes, exclude_newer, now, progress)
    try:
        return locking.run(freed)
    except FallbackRefused as refusal:
        raise _told_for_project(refusal, command) from refusal
    except (ResolutionError, IncompatibleTarget, Undecided) as refusal:
        if exclude_newer is not None and exclude_newer == project.exclude_newer:
            refusal.message = refusal.message.replace("`--exclude-newer`", "`exclude-newer` in spm.toml")
            refusal.hint = refusal.hint.replace("`--exclude-newer`", "`exclude-newer` in spm.toml")
        raise


def require_registry(project: Project, before: ProjectLock | None, own: str) -> None:
    """Refuse a project or a lock of another registry than the store's own.

    Raises: OtherRegistry.
    """
    if project.registry is not None and project.registry != own:
        raise OtherRegistry(
            f"spm.toml is of the registry `{project.registry}`, but loader.conf is of `{own}`",
            hint="use the store of that registry (`--root DIR`), or change `project.registry` in spm.toml",
            expected=project.registry,
            found=own,
        )
    if before is not None and before.registry != own:
        raise OtherRegistry(
            f"spm.lock is of the registry `{before.registry}`, but loader.conf is of `{own}`",
            hint="use the store of that registry (`--root DIR`); or, if the project has moved to "
            f"`{own}` for good, remove spm.lock, and `spm lock` locks everything anew",
            expected=before.registry,
            found=own,
        )


def _require_bindable(project: Project, targets: Mapping[str, Target]) -> None:
    """Refuse a binding to a device that one of the targets does not have: a sync there would refuse it."""
    for wanted in project.requirements:
        for device in wanted.bindings.affinity or ():
            for name, target in sorted(targets.items()):
                if not any(matches(device, one) for one in target.devices):
                    raise IncompatibleTarget(
                        f"spm.toml binds `{wanted.name}` to `{device}`, and the target `{name}` has "
                        f"{', '.join(one.id for one in target.devices)}",
                        reason="device",
                        hint="bind it to devices that every target has, or give that target a project of its own",
                        plugin=wanted.name,
                        affinity=str(device),
                        target=name,
                    )


class _Locking:
    """One project being locked."""

    def __init__(
        self,
        project: Project,
        targets: Mapping[str, Target],
        before: ProjectLock | None,
        indexes: RegistryIndexes,
        exclude_newer: str | None,
        now: datetime,
        progress: Progress,
    ) -> None:
        self._project = project
        self._targets = targets
        self._before = before
        self._indexes = indexes
        self._exclude_newer = exclude_newer
        self._now = now
        self._progress = progress
        self._is_late = within()
        self._pre = project.pre | {wanted.name for wanted in project.requirements if wanted.is_pre}
        self._accepted = project.accept_fallback | {
            wanted.name for wanted in project.requirements if wanted.is_fallback_accepted
        }
        self._held: dict[str, dict[PluginName, Version]] = {}
        self._entries = {(plugin.name, plugin.version): plugin for plugin in self._plugins}

    def run(self, freed: frozenset[PluginName] | None) -> Locked:
        with phase(self._progress, "Resolving", noun="plugin") as advance:
            found = self._taken(frozenset(plugin.name for plugin in self._plugins) if freed is None else freed, advance)
        variants = self._judged(found)
        distrusted = {
            (one.candidate.name, one.candidate.release.version): one.refusal
            for one in variants.values()
            if one.refusal is not None
        }
        for (name, _), refusal in sorted(distrusted.items()):
            if freed is None or name in freed:
                raise refusal
        lock = ProjectLock.answering(
            self._project,
            registry=self._indexes.own,
            targets={name: target_digest(target) for name, target in self._targets.items()},
            plugins=self._assembled(found, variants),
            exclude_newer=self._exclude_newer,
        )
        pins = {(pin.name, pin.version): pin for one in found.values() for pin in one.pins}
        releases = [(name, version, pin.release) for (name, version), pin in sorted(pins.items())]
        return Locked(
            lock=lock,
            yanked=tuple((name, version, one.yanked) for name, version, one in releases if one.yanked),
            distrusted=tuple((*place, refusal) for place, refusal in sorted(distrusted.items())),
            beyond=tuple(
                (name, version, one.published)
                for name, version, one in releases
                if one.published is not None and self._is_beyond(one.published)
            ),
        )

    def _is_beyond(self, published: str) -> bool:
        bound = self._exclude_newer
        return bound is not None and datetime.fromisoformat(published) > datetime.fromisoformat(bound)

    @property
    def _plugins(self) -> tuple[LockedPlugin, ...]:
        return self._before.plugins if self._before else ()

    # 1 and 2: what is held, and what is taken

    def _taken(self, free: frozenset[PluginName], advance: Advance) -> dict[str, Resolution]:
        provider = _Counted(self._indexes, advance)
        provider.prefetch(
            [*(wanted.name for wanted in self._project.requirements), *(one.name for one in self._plugins)]
        )
        while True:
            self._held = {target: self._holding(target, free) for target in self._targets}
            found = {target: self._resolve(target, provider, self._held[target]) for target in sorted(self._targets)}
            if not (astray := self._astray(found) - free):
                return found
            free |= astray

    def _holding(self, target: str, free: frozenset[PluginName]) -> dict[PluginName, Version]:
        """Return what stays if it can: what the target has, for a new target the newest that any other has."""
        held: dict[PluginName, Version] = {}
        is_new = all(name != target for name, _ in self._before.targets) if self._before else True
        for plugin in self._plugins:  # by name and version
            pin = plugin.pin(target)
            if plugin.name in free or (pin is None and not is_new) or self._is_moved(plugin):
                continue
            if pin is None or pin.fallback is None or plugin.name in self._accepted:
                held[plugin.name] = plugin.version
        return held

    def _is_moved(self, plugin: LockedPlugin) -> bool:
        return (plugin.registry or self._indexes.own) != self._indexes.registry_of(plugin.name)

    def _resolve(self, target: str, provider: Provider, held: Mapping[PluginName, Version]) -> Resolution:
        """Resolve for one target. A lock exempts old releases, not lesser builds: these are accepted, or refused."""
        return resolve(
            provider,
            [
                Requirement(name=wanted.name, range=wanted.range, source="spm.toml", registry=wanted.registry)
                for wanted in self._project.requirements
            ],
            self._targets[target],
            accept_fallback=self._accepted,
            pre=self._pre,
            locked=held,
            exclude_newer=datetime.fromisoformat(self._exclude_newer) if self._exclude_newer else None,
            is_late=self._is_late,
        )

    def _recorded(self, pin: Pin, target: str) -> TargetPin | None:
        """Return what the lock has of this very variant for the target."""
        plugin = self._entries.get((pin.name, pin.version))
        found = plugin.pin(target) if plugin else None
        return found if found and found.manifest_sha256 == pin.variant.manifest_sha256 else None

    def _astray(self, found: Mapping[str, Resolution]) -> frozenset[PluginName]:
        """Return what two targets take in different versions although nothing but the lock holds one of them back."""
        versions: dict[PluginName, set[Version]] = {}
        for resolution in found.values():
            for pin in resolution.pins:
                versions.setdefault(pin.name, set()).add(pin.version)
        return frozenset(
            pin.name
            for target, resolution in found.items()
            for pin in resolution.pins
            if len(versions[pin.name]) > 1 and pin.fallback and self._held[target].get(pin.name) == pin.version
            if self._fallback(pin, target) is None
        )

    # 3 and 4: what is written

    def _judged(self, found: Mapping[str, Resolution]) -> dict[str, Judged]:
        releases = {(pin.name, pin.version): pin.release for one in found.values() for pin in one.pins}
        candidates: list[Candidate] = []
        for (name, _), release in releases.items():
            recorded = self._recorded_keys(name, release)
            candidates += [
                Candidate(name=name, release=release, variant=one, recorded=recorded.get(one.manifest_sha256))
                for one in release.variants
            ]
        return judge_variants(candidates, self._indexes, now=self._now, progress=self._progress)

    def _recorded_keys(self, name: PluginName, release: ReleaseEntry) -> Mapping[str, tuple[str, ...]]:
        """Return the key ids that the lock has for each variant of a release; nothing of one that is new in it."""
        plugin = self._entries.get((name, release.version))
        if plugin is None or self._is_moved(plugin):
            return {}
        listed = {variant.manifest_sha256 for variant in release.variants}
        if listed != plugin.manifests:
            raise Fork(
                f"spm.lock has other manifests of `{name}` {release.version} "
                f"({_digests(plugin.manifests - listed) or 'fewer'}) than the registry lists now "
                f"({_digests(listed - plugin.manifests) or 'fewer'}); a release never changes",
                hint="find out who changed what: spm.lock in your repository's history, or the registry's index; "
                "nothing was changed",
                name=name,
                version=str(release.version),
            )
        return {variant.manifest_sha256: variant.keyids for variant in plugin.variants}

    def _assembled(self, found: Mapping[str, Resolution], variants: Mapping[str, Judged]) -> list[LockedPlugin]:
        taken: dict[tuple[PluginName, Version], dict[str, Pin]] = {}
        for target, resolution in found.items():
            for pin in resolution.pins:
                taken.setdefault((pin.name, pin.version), {})[target] = pin
        return [self._plugin(name, pins, variants) for (name, _), pins in taken.items()]

    def _plugin(self, name: PluginName, pins: Mapping[str, Pin], variants: Mapping[str, Judged]) -> LockedPlugin:
        registry = self._indexes.registry_of(name)
        release = next(iter(pins.values())).release
        locked = (variants[one.manifest_sha256].locked for one in release.variants)
        return LockedPlugin(
            name=name,
            version=release.version,
            type=release.type,
            variants=tuple(sorted(locked, key=lambda variant: variant.tag)),
            targets=tuple(
                (
                    target,
                    TargetPin(manifest_sha256=pin.variant.manifest_sha256, fallback=self._fallback(pin, target)),
                )
                for target, pin in sorted(pins.items())
            ),
            requires=tuple(sorted(release.requires.plugins)),
            registry=None if registry == self._indexes.own else registry,
        )

    def _fallback(self, pin: Pin, target: str) -> str | None:
        """Return what is recorded of a lesser choice; what is only held back by the lock is none."""
        held = self._held[target]
        if pin.fallback is None or held.get(pin.name) != pin.version:
            return pin.fallback
        if pin.name not in self._accepted:
            return None
        others = {name: version for name, version in held.items() if name != pin.name}
        recorded = self._recorded(pin, target)
        return fallback_words(
            pin,
            recorded.fallback if recorded else None,
            self._indexes,
            lambda provider: self._resolve(target, provider, others),
        )


class _Counted:
    """The registries' releases, with how many plugins were asked for told to whoever shows it."""

    def __init__(self, indexes: RegistryIndexes, advance: Advance) -> None:
        self._indexes = indexes
        self._advance = advance

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        releases = self._indexes.releases(name)
        self._advance(1)
        return releases

    def prefetch(self, names: Iterable[PluginName]) -> None:
        self._indexes.prefetch(names)


def _digests(found: frozenset[str] | set[str]) -> str:
    return ", ".join(f"sha256:{digest[:16]}…" for digest in sorted(found))


def _told_for_project(refusal: FallbackRefused, command: str) -> FallbackRefused:
    flags = " ".join(f"--accept-fallback {name}" for name in refusal.context.get("accept", []))
    return FallbackRefused(
        refusal.message,
        hint=f"`{command} {flags}` accepts that; it is written to spm.toml and shown ever after",
        **refusal.context,
    )

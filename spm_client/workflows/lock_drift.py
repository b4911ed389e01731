"""How a lock differs: from what spm.toml says, and from another lock. Pure; asks nobody.

A drift is a sentence; a change is what became of one plugin.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from manifests.errors import LockDrift
from manifests.index import ReleaseEntry
from manifests.names import PluginName
from manifests.project import Project, ProjectRequirement
from manifests.project_lock import LockedPlugin, LockedVariant, ProjectLock
from spm_client.resolve.fit import tag_of

MAX_TOLD = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LockChange:
    """What became of one plugin: its releases, by the targets that take them, before and after."""

    name: PluginName
    before: Mapping[str, LockedPlugin]
    after: Mapping[str, LockedPlugin]

    @property
    def verb(self) -> str:
        """`added`, `removed`, `upgraded`, `downgraded`, `changed` (otherwise) or `unchanged`."""
        if not self.before or not self.after:
            return "added" if self.after else "removed"
        if self._told(self.before) == self._told(self.after):
            return "unchanged"
        moves = {
            ((new := self.after[target].version) > (old := self.before[target].version)) - (new < old)
            for target in self.before.keys() & self.after.keys()
        } - {0}
        return {frozenset({1}): "upgraded", frozenset({-1}): "downgraded"}.get(frozenset(moves), "changed")

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """What lesser choices were accepted, each once."""
        pins = (plugin.pin(target) for target, plugin in self.after.items())
        return tuple(dict.fromkeys(pin.fallback for pin in pins if pin is not None and pin.fallback is not None))

    def moved(self, own: str) -> tuple[str, str] | None:
        """Return the registries that it was and is of, where they differ; `own` is that of the lock."""
        old = {plugin.registry or own for plugin in self.before.values()}
        new = {plugin.registry or own for plugin in self.after.values()}
        return (min(old), min(new)) if old and new and old != new else None

    @staticmethod
    def _told(releases: Mapping[str, LockedPlugin]) -> dict[str, object]:
        return {target: plugin.to_dict() for target, plugin in releases.items()}


def changes(before: ProjectLock | None, after: ProjectLock) -> tuple[LockChange, ...]:
    """Return every plugin of two locks with what became of it, by name."""
    old, new = _by_name(before), _by_name(after)
    return tuple(
        LockChange(name=name, before=old.get(name, {}), after=new.get(name, {})) for name in sorted({*old, *new})
    )


def spoken(releases: Mapping[str, LockedPlugin]) -> str:
    """Return the version of a plugin, or its versions with the targets that take them."""
    by_version: dict[str, list[str]] = {}
    for target, plugin in sorted(releases.items()):
        by_version.setdefault(str(plugin.version), []).append(target)
    if len(by_version) == 1:
        return next(iter(by_version))
    return ", ".join(f"{version} ({', '.join(targets)})" for version, targets in by_version.items())


def project_drift(project: Project, targets: Mapping[str, str], lock: ProjectLock) -> tuple[str, ...]:
    """Return what spm.toml and its target documents (by digest) say that the lock does not answer."""
    return (
        *_requirement_drift(project, lock),
        *_names_drift("pre", project.pre, lock.pre),
        *_names_drift("accept-fallback", project.accept_fallback, lock.accept_fallback),
        *_target_drift(targets, dict(lock.targets)),
        *_rest_drift(project, lock),
        *_unrequired(lock),
        *_unaccepted(lock),
    )


def lock_drift(before: ProjectLock, after: ProjectLock) -> tuple[str, ...]:
    """Return what a new lock would change in the plugins of the old one, each member that differs by itself."""
    return tuple(
        told
        for change in changes(before, after)
        if change.verb != "unchanged"
        for told in _changed(change, before.registry)
    )


def recorded_drift(recorded: LockedPlugin, release: ReleaseEntry) -> tuple[str, ...]:
    """Return what a lock says of a release that the registry, held to what its author signed, says otherwise.

    The key ids of a lock are those that were verified, so the registry may list more.
    """
    listed = {variant.manifest_sha256: variant for variant in release.variants}
    variants = tuple(
        LockedVariant(
            tag=tag_of(entry),
            manifest_sha256=entry.manifest_sha256,
            manifest_size=entry.manifest_size,
            blobs_size=entry.blobs_size,
            keyids=variant.keyids if variant.keyids and {*variant.keyids} <= {*entry.signatures} else entry.signatures,
        )
        for variant in recorded.variants
        if (entry := listed.get(variant.manifest_sha256)) is not None
    )
    told = replace(recorded, type=release.type, requires=tuple(sorted(release.requires.plugins)), variants=variants)
    return tuple(_members(recorded, told))


def drifted(differences: Iterable[str], *, hint: str) -> LockDrift:
    """Return the refusal that lists each difference."""
    found = tuple(differences)
    told = [f"  {one}" for one in found[:MAX_TOLD]]
    if len(found) > MAX_TOLD:
        told.append(f"  and {len(found) - MAX_TOLD} more")
    return LockDrift(
        "\n".join(("spm.lock is not what it would be if it were written now:", *told)),
        hint=hint,
        differences=list(found),
    )


def _by_name(lock: ProjectLock | None) -> dict[PluginName, dict[str, LockedPlugin]]:
    found: dict[PluginName, dict[str, LockedPlugin]] = {}
    for plugin in lock.plugins if lock else ():
        found.setdefault(plugin.name, {}).update(dict.fromkeys((target for target, _ in plugin.targets), plugin))
    return found


def _requirement_drift(project: Project, lock: ProjectLock) -> Iterator[str]:
    said = {wanted.name: wanted for wanted in project.requirements}
    answered = {wanted.name: wanted for wanted in lock.requirements}
    for name in sorted({*said, *answered}):
        if name not in answered:
            yield f"spm.toml requires `{name}` `{said[name].range}`, and spm.lock does not answer that"
        elif name not in said:
            yield f"spm.lock answers a requirement of `{name}` that spm.toml does not have"
        elif said[name] != answered[name]:
            yield _changed_requirement(said[name], answered[name])


def _changed_requirement(said: ProjectRequirement, answered: ProjectRequirement) -> str:
    now, before = said.to_dict(), answered.to_dict()
    told = [
        f"`{member}` {_worded(now.get(member))} in spm.toml and {_worded(before.get(member))} in spm.lock"
        for member in sorted({*now, *before})
        if now.get(member) != before.get(member)
    ]
    return f"`{said.name}`: " + ", ".join(told)


def _worded(value: object) -> str:
    if value is None:
        return "is not written"
    return "is true" if value is True else f"is `{', '.join(value) if isinstance(value, list) else value}`"


def _names_drift(member: str, said: frozenset[PluginName], answered: frozenset[PluginName]) -> Iterator[str]:
    if said != answered:
        now, before = ", ".join(sorted(said)) or "nobody", ", ".join(sorted(answered)) or "nobody"
        yield f"`resolution.{member}` names {now} in spm.toml and {before} in spm.lock"


def _target_drift(said: Mapping[str, str], locked: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*said, *locked}):
        if name not in locked:
            yield f"spm.toml has the target `{name}`, and spm.lock is not for it"
        elif name not in said:
            yield f"spm.lock is for the target `{name}`, which spm.toml does not have"
        elif said[name] != locked[name]:
            yield f"the document of the target `{name}` is another than when spm.lock was written"


def _unrequired(lock: ProjectLock) -> Iterator[str]:
    for target, _ in lock.targets:
        for plugin in lock.unrequired(target):
            yield f"spm.lock has `{plugin.name}` {plugin.version} for the target `{target}`, and nothing requires it"


def _unaccepted(lock: ProjectLock) -> Iterator[str]:
    accepted = lock.accept_fallback | {wanted.name for wanted in lock.requirements if wanted.is_fallback_accepted}
    for plugin in lock.plugins:
        for target, pin in plugin.targets:
            if pin.fallback is not None and plugin.name not in accepted:
                yield (
                    f"spm.lock records a fallback of `{plugin.name}` {plugin.version} for the target `{target}`, and "
                    "spm.toml accepts none of it"
                )


def _rest_drift(project: Project, lock: ProjectLock) -> Iterator[str]:
    if project.registry is not None and project.registry != lock.registry:
        yield f"spm.toml names the registry `{project.registry}`, and spm.lock is of `{lock.registry}`"
    # A bound that was given to one `spm lock` alone is in spm.lock only, and holds until the next.
    if project.exclude_newer is not None and project.exclude_newer != lock.exclude_newer:
        bound = f"is of {lock.exclude_newer}" if lock.exclude_newer else "has no such bound"
        yield f"spm.toml excludes what is newer than {project.exclude_newer}, and spm.lock {bound}"


def _changed(change: LockChange, own: str) -> Iterator[str]:
    before, after = spoken(change.before), spoken(change.after)
    if change.verb == "added":
        yield f"`{change.name}` {after} would be added"
    elif change.verb == "removed":
        yield f"`{change.name}` {before} would be removed"
    elif before != after:
        yield f"`{change.name}` would be {after}, and is {before}"
    elif (moved := change.moved(own)) is not None:
        yield f"`{change.name}` {before} would be of the registry `{moved[1]}`, and is of `{moved[0]}`"
    else:
        both = [(change.before[one], change.after[one]) for one in sorted(change.before.keys() & change.after.keys())]
        told = dict.fromkeys(difference for old, new in both for difference in _members(old, new))
        yield from told or (f"`{change.name}` {before} would be for other targets",)


def _members(old: LockedPlugin, new: LockedPlugin) -> Iterator[str]:
    """Yield each member in which two entries of one release differ, with both values."""
    before, after = _flat(_by_digest(old)), _flat(_by_digest(new))
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            said, found = _valued(before.get(path)), _valued(after.get(path))
            yield f"`{old.name}` {old.version}: `{path}` is {said} in spm.lock, and would be {found}"


def _by_digest(plugin: LockedPlugin) -> dict[str, Any]:
    value = plugin.to_dict()
    return value | {"variants": {one["manifest_sha256"][:12]: one for one in value["variants"]}}


def _flat(value: dict[str, Any], above: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, inner in value.items():
        found |= _flat(inner, f"{above}{name}.") if isinstance(inner, dict) else {f"{above}{name}": inner}
    return found


def _valued(value: object) -> str:
    if value is None:
        return "not there"
    return f"`{', '.join(map(str, value)) if isinstance(value, list) else value}`"

"""spm.lock as a value: the resolution of a project for all its targets, digests and key ids included. No I/O."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NoReturn

from manifests import fields
from manifests.errors import NotCanonical, TooBig, UsageError
from manifests.fields import Fields
from manifests.lockfile import Bindings
from manifests.manifest import MAX_MANIFEST_BYTES
from manifests.names import PluginName, parse_name
from manifests.parts import MAX_FILE_BYTES, MAX_TAG_LENGTH, PluginType
from manifests.project import (
    MAX_TARGETS,
    Project,
    ProjectRequirement,
    read_registry,
    read_requirements,
    read_table,
    read_target_name,
    spoilt,
)
from manifests.ranges import Range
from manifests.versions import Version

LOCK_FILE = "spm.lock"
LOCK_TYPE = "spm.lock/1"
MAX_LOCK_BYTES = 32 << 20
MAX_PLUGINS = 8192
ANY_TAG = "any"

_TAG = fields.matching(rf"[A-Za-z0-9._-]{{1,{MAX_TAG_LENGTH}}}", "a variant's tag")


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedRelease:
    """What an install by the lock may take of one plugin: this version, by one of these manifests."""

    version: Version
    manifests: frozenset[str]
    fallback: str | None = None
    registry: str | None = None
    recorded: "LockedPlugin | None" = field(default=None, compare=False, repr=False)
    """All that spm.lock says of the release, where it is to be held against what the registry lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedVariant:
    """One build of a locked release: its tag, its manifest, and the keys whose signatures were verified."""

    tag: str
    manifest_sha256: str
    manifest_size: int
    blobs_size: int
    keyids: tuple[str, ...]

    @classmethod
    def read(cls, reader: Fields) -> "LockedVariant":
        return cls(
            tag=reader.required("tag", _TAG),
            manifest_sha256=reader.required("manifest_sha256", fields.sha256),
            manifest_size=reader.required("manifest_size", fields.whole(1, MAX_MANIFEST_BYTES)),
            blobs_size=reader.required("blobs_size", fields.whole(0, MAX_FILE_BYTES)),
            keyids=reader.required("keyids", fields.many(fields.sha256, 64)),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "tag": self.tag,
            "manifest_sha256": self.manifest_sha256,
            "manifest_size": self.manifest_size,
            "blobs_size": self.blobs_size,
            "keyids": list(self.keyids),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPin:
    """What one target takes of a locked release: the variant, by its manifest, and the accepted fallback in words."""

    manifest_sha256: str
    fallback: str | None = None

    @classmethod
    def read(cls, reader: Fields) -> "TargetPin":
        return cls(
            manifest_sha256=reader.required("manifest_sha256", fields.sha256),
            fallback=reader.optional("fallback", fields.text),
        )

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = {"manifest_sha256": self.manifest_sha256}
        return value | ({"fallback": self.fallback} if self.fallback is not None else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedPlugin:
    """One locked release with all its variants, and which targets take it. `registry` is None for the lock's own."""

    name: PluginName
    version: Version
    type: PluginType
    variants: tuple[LockedVariant, ...]
    targets: tuple[tuple[str, TargetPin], ...]
    requires: tuple[tuple[PluginName, Range], ...] = ()
    registry: str | None = None

    @classmethod
    def read(cls, reader: Fields) -> "LockedPlugin":
        return cls(
            name=reader.required("name", parse_name),
            version=reader.required("version", Version.parse),
            type=reader.required("type", lambda value: PluginType(fields.one_of("core", "ext")(value))),
            variants=reader.required("variants", fields.many(fields.nested(LockedVariant.read), 64)),
            targets=reader.required("targets", _read_pins),
            requires=reader.required("requires", _read_requires),
            registry=reader.optional("registry", read_registry),
        )

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "name": self.name,
            "version": self.version.text,
            "type": self.type.value,
            "variants": [variant.to_dict() for variant in self.variants],
            "targets": {target: pin.to_dict() for target, pin in self.targets},
            "requires": {name: wanted.text for name, wanted in self.requires},
        }
        return value | ({"registry": self.registry} if self.registry is not None else {})

    def pin(self, target: str) -> TargetPin | None:
        return dict(self.targets).get(target)

    @property
    def manifests(self) -> frozenset[str]:
        return frozenset(variant.manifest_sha256 for variant in self.variants)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectLock:
    """The resolution of a project. Everything is ordered, so that the same resolution has the same bytes anywhere.

    `targets` are digests of the documents' canonical form; `requirements` is what spm.toml said.
    """

    registry: str
    targets: tuple[tuple[str, str], ...]
    requirements: tuple[ProjectRequirement, ...] = ()
    plugins: tuple[LockedPlugin, ...] = ()
    exclude_newer: str | None = None
    pre: frozenset[PluginName] = frozenset()
    accept_fallback: frozenset[PluginName] = frozenset()

    @classmethod
    def answering(
        cls,
        project: Project,
        *,
        registry: str,
        targets: Mapping[str, str],
        plugins: Iterable[LockedPlugin],
        exclude_newer: str | None,
    ) -> "ProjectLock":
        """Return the lock that answers a project: its wishes, and the plugins in their order."""
        return cls(
            registry=registry,
            targets=tuple(sorted(targets.items())),
            requirements=project.requirements,
            plugins=tuple(sorted(plugins, key=lambda plugin: (plugin.name, plugin.version))),
            exclude_newer=exclude_newer,
            pre=project.pre,
            accept_fallback=project.accept_fallback,
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "ProjectLock":
        """Read a spm.lock; its members may stand in any order and spacing.

        Raises: TooBig beyond 32 MiB; NotCanonical where it is not JSON as spm writes it; TypeMismatch listing every
        problem, among them a plugin that another requires and no target has.
        """
        value = _parse(data)
        with fields.document(LOCK_FILE) as problems:
            reader = Fields(value, "", problems)
            reader.required("_type", fields.one_of(LOCK_TYPE))
            for name in ("targets", "requirements"):
                reader.required(name, lambda table: table)
            resolution = reader.table("resolution")
            lock = cls(
                registry=reader.required("registry", read_registry),
                targets=read_table(reader, "targets", problems, read_target_name, _read_digest, MAX_TARGETS),
                requirements=read_requirements(reader, problems),
                plugins=reader.required("plugins", fields.many(fields.nested(LockedPlugin.read), MAX_PLUGINS)),
                exclude_newer=resolution.optional("exclude-newer", fields.moment),
                pre=_names(resolution, "pre"),
                accept_fallback=_names(resolution, "accept-fallback"),
            )
            resolution.close()
            reader.close()
            if not problems:
                problems.extend(_contradictions(lock))
        return lock

    def to_dict(self) -> dict[str, Any]:
        resolution: dict[str, Any] = {} if self.exclude_newer is None else {"exclude-newer": self.exclude_newer}
        resolution |= {"pre": sorted(self.pre)} if self.pre else {}
        resolution |= {"accept-fallback": sorted(self.accept_fallback)} if self.accept_fallback else {}
        value: dict[str, Any] = {
            "_type": LOCK_TYPE,
            "registry": self.registry,
            "targets": dict(self.targets),
            "requirements": {wanted.name: wanted.to_dict() for wanted in self.requirements},
            "plugins": [plugin.to_dict() for plugin in self.plugins],
        }
        return value | ({"resolution": resolution} if resolution else {})

    def to_bytes(self) -> bytes:
        """Return the bytes of the file: members sorted, two spaces a level, LF."""
        return (json.dumps(self.to_dict(), sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()

    def of_target(self, target: str) -> tuple[LockedPlugin, ...]:
        """Return what one target takes, by name."""
        return tuple(plugin for plugin in self.plugins if plugin.pin(target) is not None)

    def versions(self, target: str) -> dict[PluginName, Version]:
        return {plugin.name: plugin.version for plugin in self.of_target(target)}

    def releases(self, target: str) -> dict[PluginName, LockedRelease]:
        """Return what an install for one target may take: of each plugin exactly the variant that was locked."""
        return {
            plugin.name: LockedRelease(
                version=plugin.version,
                manifests=frozenset({pin.manifest_sha256}),
                fallback=pin.fallback,
                registry=plugin.registry,
                recorded=plugin,
            )
            for plugin in self.plugins
            if (pin := plugin.pin(target)) is not None
        }

    def unrequired(self, target: str) -> tuple[LockedPlugin, ...]:
        """Return what one target has although neither spm.toml nor anything that it requires has a use for it."""
        taken = {plugin.name: plugin for plugin in self.of_target(target)}
        needed: set[PluginName] = set()
        waiting = [wanted.name for wanted in self.requirements]
        while waiting:
            if (name := waiting.pop()) not in needed and name in taken:
                needed.add(name)
                waiting.extend(other for other, _ in taken[name].requires)
        return tuple(plugin for name, plugin in taken.items() if name not in needed)

    @property
    def bindings(self) -> dict[PluginName, Bindings]:
        """What spm.toml binds, by plugin."""
        return {wanted.name: wanted.bindings for wanted in self.requirements if wanted.bindings != Bindings()}


def _parse(data: bytes) -> Any:
    if len(data) > MAX_LOCK_BYTES:
        raise TooBig(f"{LOCK_FILE} has {len(data)} bytes, more than the {MAX_LOCK_BYTES} allowed")
    if problem := spoilt(data):
        raise NotCanonical(f"{LOCK_FILE} {problem[0]}", hint=problem[1])

    def refuse_number(text: str) -> NoReturn:
        raise NotCanonical(f"{LOCK_FILE} has the number {text[:40]!r}; only integers of 64 bits are allowed")

    def integer(text: str) -> int:
        return int(text) if len(text) < 20 else refuse_number(text)

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise NotCanonical(f"{LOCK_FILE} has a member twice in one table: {', '.join(found)[:80]}")
        return found

    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=members,
            parse_int=integer,
            parse_float=refuse_number,
            parse_constant=refuse_number,
        )
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise NotCanonical(
            f"{LOCK_FILE} is not JSON: {error}",
            hint="`git checkout spm.lock` brings the last one back; after a merge, take either side and run `spm lock`",
        ) from error


def _read_digest(_name: str, value: Any, _path: str) -> str:
    return fields.sha256(value)


def _read_requires(value: Any) -> tuple[tuple[PluginName, Range], ...]:
    if not isinstance(value, dict) or len(value) > 256:
        raise UsageError("it is not a table of at most 256 `name: range`")
    return tuple(sorted((parse_name(name), Range.parse(wanted)) for name, wanted in value.items()))


def _read_pins(value: Any) -> tuple[tuple[str, TargetPin], ...]:
    if not isinstance(value, dict) or not 0 < len(value) <= MAX_TARGETS:
        raise UsageError(f"it is not a table of 1 to {MAX_TARGETS} targets")
    read = fields.nested(TargetPin.read)
    return tuple(sorted((read_target_name(name), read(pin)) for name, pin in value.items()))


def _names(reader: Fields, member: str) -> frozenset[PluginName]:
    return frozenset(reader.optional(member, fields.many(parse_name)) or ())


def _contradictions(lock: ProjectLock) -> Iterator[str]:
    """Yield what no single member shows."""
    places = [(plugin.name, plugin.version) for plugin in lock.plugins]
    if any(not earlier < later for earlier, later in pairwise(places)):
        yield "`plugins` is not ordered by name and version, each once"
    for plugin in lock.plugins:
        yield from _of_plugin(plugin, {target for target, _ in lock.targets})
    for target, _ in lock.targets:
        yield from _of_target(lock, target)


def _of_plugin(plugin: LockedPlugin, targets: set[str]) -> Iterator[str]:
    what = f"`{plugin.name}` {plugin.version}"
    if len({variant.tag for variant in plugin.variants}) < len(plugin.variants):
        yield f"{what} has two variants of one tag"
    for target, pin in plugin.targets:
        if target not in targets:
            yield f"{what} is for the target `{target}`, which is not in `targets`"
        if pin.manifest_sha256 not in plugin.manifests:
            yield f"{what} for `{target}` has a manifest that is none of its variants"


def _of_target(lock: ProjectLock, target: str) -> Iterator[str]:
    """Yield what is missing or twice for one target, and each version outside of a range that is put on it."""
    taken = lock.of_target(target)
    versions = {plugin.name: plugin.version for plugin in taken}
    if len(versions) < len(taken):
        yield f"a plugin is there in two versions for the target `{target}`"
    wants = [("spm.toml", wanted.name, wanted.range) for wanted in lock.requirements]
    wants += [(f"`{plugin.name}`", name, wanted) for plugin in taken for name, wanted in plugin.requires]
    for who, name, wanted in wants:
        version = versions.get(name)
        if version is None:
            yield f"{who} requires `{name}`, which is not there for the target `{target}`"
        elif not wanted.contains(version, pre=True):
            yield f"{who} requires `{name}` `{wanted}`, but {version} is there for the target `{target}`"

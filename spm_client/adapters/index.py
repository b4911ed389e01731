"""The registry's signed index and its manifests as values. Verifies no author's signature."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from keys.verified import JWS_FILE, MAX_MANIFEST_BYTES, SIGNATURE_FILE_PREFIX, FetchedManifest
from manifests.canonical import canonical_bytes
from manifests.errors import BadResponse, Fork, LimitReached, Mix, NotFound, SpmError
from manifests.index import MAX_SHARD_BYTES, ReleaseEntry, Shard, VariantEntry
from manifests.lockfile import InstalledEntry
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.versions import Version
from spm_client.adapters.source import Source

MAX_SIGNATURE = 1024
MAX_SHARDS = 2000
MAX_INDEX_BYTES = 256 << 20
MAX_INDEX_SECONDS = 600
MAX_TOKEN = 2 * MAX_MANIFEST_BYTES

_MAX_UNSAID = MAX_SHARD_BYTES - 4096
_MAX_UNSAID_RELEASES = 65536
_ALTERED = "the registry's index was altered: tell its administrator, and install nothing of it until then"


class SignedShards(Protocol):
    """The shards that a registry's signed metadata vouches for."""

    def shard(self, name: PluginName) -> bytes | None:
        """Return a plugin's shard, verified; None where the signed index has no such plugin."""
        ...

    def prefetch(self, names: Iterable[PluginName], max_bytes: int) -> None:
        """Fetch what `shard` will ask for, several at once; what is refused of it waits until `shard` asks."""
        ...

    def seen(self, name: PluginName) -> Sequence[bytes]:
        """Return the shards that commands here were given before: what is said no more, then the last one."""
        ...

    def installed(self, name: PluginName) -> InstalledEntry | None:
        """Return what is installed of this plugin from this registry."""
        ...


class RegistryIndex:
    """The shards of one registry, each fetched once. It is a `resolve.Provider`."""

    def __init__(self, source: Source, shards: SignedShards, registry: str) -> None:
        self._source = source
        self._signed = shards
        self._registry = registry
        self._shards: dict[PluginName, Shard] = {}
        self._ahead: set[PluginName] = set()
        self._seen: dict[PluginName, tuple[Shard, ...]] = {}
        self._bytes = 0
        self._deadline = time.monotonic() + MAX_INDEX_SECONDS

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        return self.shard(name).releases

    def prefetch(self, names: Iterable[PluginName]) -> None:
        """Fetch together what will probably be asked next, within the bounds of the whole index. Believes none of it.

        Raises: nothing for what cannot be had: that is told when the plugin is asked for.
        """
        new = [name for name in dict.fromkeys(names) if name not in self._shards and name not in self._ahead]
        new = new[: max(MAX_SHARDS - len(self._ahead | self._shards.keys()), 0)]
        if new and self._bytes < MAX_INDEX_BYTES and time.monotonic() < self._deadline:
            self._ahead.update(new)
            self._signed.prefetch(new, MAX_INDEX_BYTES - self._bytes)

    def shard(self, name: PluginName) -> Shard:
        """Return every release of a plugin.

        Raises: NotFound when the signed index has no such plugin; Mix when the shard is another's; Fork when a release
        that was seen here before is now another.
        """
        if name not in self._shards:
            self._require_within_bounds()
            self._shards[name] = self._fetch(name)
        return self._shards[name]

    def _require_within_bounds(self) -> None:
        """Stop asking where requirements lead from plugin to plugin without end."""
        if len(self._shards) == MAX_SHARDS or self._bytes > MAX_INDEX_BYTES or time.monotonic() > self._deadline:
            raise LimitReached(
                f"the requirements led to {len(self._shards)} plugins of `{self._registry}` with {self._bytes} bytes "
                f"of index, and still to more; the limits are {MAX_SHARDS} plugins, {MAX_INDEX_BYTES} bytes and "
                f"{MAX_INDEX_SECONDS} s",
                reason="limit:index",
                hint="name exact versions of what is asked for, or ask the registry's administrator what needs so much",
            )

    def _fetch(self, name: PluginName) -> Shard:
        data = self._signed.shard(name)
        if data is None:
            raise NotFound(
                f"the registry `{self._registry}` has no plugin `{name}`",
                hint="check how it is spelled, or ask whoever runs the registry",
                name=name,
                registry=self._registry,
            )
        self._bytes += len(data)
        try:
            shard = Shard.from_bytes(data)
        except SpmError as error:
            raise BadResponse(
                f"the index of `{name}` cannot be read: {error.message}",
                hint="the registry has signed what is no index: ask its administrator",
                name=name,
            ) from error
        if (shard.registry, shard.name) != (self._registry, name):
            raise Mix(
                f"the index of `{name}` in `{self._registry}` was asked for, but what was served is of "
                f"`{shard.name}` in `{shard.registry}`",
                hint="check `registry.url` and `registry.id` in loader.conf",
                expected=[self._registry, name],
                found=[shard.registry, shard.name],
            )
        seen = [before for kept in self._signed.seen(name) if kept != data and (before := _as_seen(kept))]
        for before in seen:
            _require_same_releases(before, shard)
        self._seen[name] = (*seen, shard)
        _require_same_manifest(self._signed.installed(name), shard)
        return shard

    def once_yanked(self, name: PluginName, version: Version) -> str | None:
        """Return why a release was yanked when it was seen here before."""
        self.shard(name)
        releases = (before.find(version) for before in self._seen[name])
        return next((release.yanked for release in releases if release and release.yanked), None)

    def fetch_manifest(self, release: ReleaseEntry, variant: VariantEntry) -> FetchedManifest:
        """Return a manifest with its signature files, unverified. A signature that the registry lacks is left out.

        Raises: BadResponse when the registry lacks the manifest that its index lists.
        """
        path = f"/v1/manifests/{variant.manifest_sha256}"
        try:
            data = self._source.document(path, max_bytes=variant.manifest_size)
        except NotFound as error:
            raise contradiction(error) from error
        limits = signature_files(release, variant)
        found = {name: self._signature(f"{path}/{name}", limit) for name, limit in limits.items()}
        return FetchedManifest(data=data, signatures={name: file for name, file in found.items() if file is not None})

    def _signature(self, path: str, limit: int) -> bytes | None:
        try:
            return self._source.document(path, max_bytes=limit)
        except NotFound:
            return None


def signature_files(release: ReleaseEntry, variant: VariantEntry) -> dict[str, int]:
    """Return the names of the signature files that the index lists of a variant, with the bytes that each may have."""
    if release.type is PluginType.EXT:
        return {JWS_FILE: MAX_TOKEN}
    return {f"{SIGNATURE_FILE_PREFIX}{keyid}": MAX_SIGNATURE for keyid in variant.signatures}


def unsaid(now: bytes, seen: Sequence[bytes]) -> bytes | None:
    """Return as a shard what was said of a plugin before and is not said now, if anything: releases gone, and yanks.

    It never outgrows a shard; what would not go in is left out, the newest version first.
    """
    shard = Shard.from_bytes(now)
    found: dict[Version, ReleaseEntry] = {}
    for before in map(_as_seen, seen):
        for old in before.releases if before and before.registry == shard.registry else ():
            if old.yanked or old.version not in found:
                found[old.version] = old
    kept: list[ReleaseEntry] = []
    left = _MAX_UNSAID
    for version in sorted(found):
        new, old = shard.find(version), found[version]
        if new is None or (old.yanked and not new.yanked):
            left -= len(canonical_bytes(old.to_dict())) + 1
            if left < 0 or len(kept) == _MAX_UNSAID_RELEASES:
                break
            kept.append(old)
    return replace(shard, releases=tuple(kept)).to_bytes() if kept else None


def _as_seen(data: bytes) -> Shard | None:
    """Return the shard that was kept; None for one that can no longer be read, since nothing rests on it alone."""
    try:
        return Shard.from_bytes(data)
    except SpmError:
        return None


def _require_same_manifest(entry: InstalledEntry | None, now: Shard) -> None:
    """Accept what is installed as one of the variants that are listed of its version, if that is listed.

    Raises: Fork.
    """
    listed = now.find(entry.version) if entry else None
    if entry is None or listed is None:
        return
    found = [variant.manifest_sha256 for variant in listed.variants]
    if entry.manifest_sha256 not in found:
        raise Fork(
            f"the index of `{now.name}` lists {entry.version} with other manifests (sha256:{', sha256:'.join(found)}) "
            f"than the one that is installed (sha256:{entry.manifest_sha256}); a release never changes",
            hint=_ALTERED,
            name=now.name,
            version=entry.version.text,
            member="manifest_sha256",
        )


def _require_same_releases(before: Shard, now: Shard) -> None:
    """Hold a shard against the one that was seen before: of a release that both have, only `yanked` may differ.

    Raises: Fork naming the release and the first member that differs.
    """
    for old in before.releases if before.registry == now.registry else ():
        new = now.find(old.version)
        if new is None:
            continue
        seen, told = replace(old, yanked=None).to_dict(), replace(new, yanked=None).to_dict()
        if member := next((member for member in sorted({*seen, *told}) if seen.get(member) != told.get(member)), None):
            raise Fork(
                f"the index of `{now.name}` now says another thing of {old.version} than it did: `{member}` was "
                f"{_shown(seen, member)} and is {_shown(told, member)}; a release never changes",
                hint=_ALTERED,
                name=now.name,
                version=old.version.text,
                member=member,
            )


def contradiction(error: NotFound) -> BadResponse:
    """Return the refusal of a registry that lacks what it lists itself."""
    return BadResponse(
        f"the registry lists what it does not have: {error.message}",
        hint="the registry has lost something: ask its administrator",
        **error.context,
    )


def require_agreement(release: ReleaseEntry, manifest: Manifest) -> None:
    """Hold what the index says of a release, which no author signed, against the manifest, which one did.

    `yanked` and `published` are the registry's own words.
    Raises: Mix naming the first member that differs.
    """
    listed = replace(release, yanked=None, published=None).to_dict()
    signed = ReleaseEntry.of(manifest, release.variants).to_dict()
    for member in sorted({*listed, *signed}):
        if listed.get(member) != signed.get(member):
            raise Mix(
                f"the index and the signed manifest of `{manifest.name}` {manifest.version} differ in `{member}`: "
                f"{_shown(listed, member)} and {_shown(signed, member)}",
                hint="the registry's index was altered: ask its administrator",
                member=member,
            )


def _shown(entry: dict[str, Any], member: str) -> str:
    return json.dumps(entry[member], ensure_ascii=False) if member in entry else "nothing"

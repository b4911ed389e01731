"""The registry's index and manifests as values, held to what loader.conf pins. Verifies no author's signature."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from keys.verified import JWS_FILE, MAX_MANIFEST_BYTES, SIGNATURE_FILE_PREFIX, FetchedManifest
from manifests.errors import BadResponse, LimitReached, Mix, NotFound, SpmError
from manifests.index import MAX_SHARD_BYTES, ReleaseEntry, Shard, VariantEntry
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.parts import PluginType
from spm_client.adapters.http import RegistryClient

MAX_SIGNATURE = 1024
MAX_SHARDS = 2000
MAX_INDEX_BYTES = 256 << 20
MAX_INDEX_SECONDS = 600
MAX_TOKEN = 2 * MAX_MANIFEST_BYTES


class RegistryIndex:
    """The shards of one registry, each fetched once. It is a `resolve.Provider`."""

    def __init__(self, client: RegistryClient, registry: str) -> None:
        self._client = client
        self._registry = registry
        self._shards: dict[PluginName, Shard] = {}
        self._bytes = 0
        self._deadline = time.monotonic() + MAX_INDEX_SECONDS

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        return self.shard(name).releases

    def shard(self, name: PluginName) -> Shard:
        """Return every release of a plugin.

        Raises: NotFound when the registry says that it has no such plugin; Mix when the shard is another's.
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
        try:
            data = self._client.document(f"/v1/index/{name}.json", max_bytes=MAX_SHARD_BYTES)
        except NotFound as error:
            raise NotFound(
                f"the registry `{self._registry}` has no plugin `{name}`",
                hint="check how it is spelled, or ask whoever runs the registry",
                name=name,
                registry=self._registry,
            ) from error
        self._bytes += len(data)
        try:
            shard = Shard.from_bytes(data)
        except SpmError as error:
            raise BadResponse(
                f"the index of `{name}` cannot be read: {error.message}",
                hint="this is not an answer of a registry: check `registry.url` in loader.conf and the way there",
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
        return shard

    def fetch_manifest(self, release: ReleaseEntry, variant: VariantEntry) -> FetchedManifest:
        """Return a manifest with its signature files, unverified. A signature that the registry lacks is left out.

        Raises: BadResponse when the registry lacks the manifest that its index lists.
        """
        path = f"/v1/manifests/{variant.manifest_sha256}"
        try:
            data = self._client.document(path, max_bytes=variant.manifest_size)
        except NotFound as error:
            raise contradiction(error) from error
        if release.type is PluginType.EXT:
            names, limit = [JWS_FILE], MAX_TOKEN
        else:
            names, limit = [f"{SIGNATURE_FILE_PREFIX}{keyid}" for keyid in variant.signatures], MAX_SIGNATURE
        found = {name: self._signature(f"{path}/{name}", limit) for name in names}
        return FetchedManifest(data=data, signatures={name: file for name, file in found.items() if file is not None})

    def _signature(self, path: str, limit: int) -> bytes | None:
        try:
            return self._client.document(path, max_bytes=limit)
        except NotFound:
            return None


def contradiction(error: NotFound) -> BadResponse:
    """Return the refusal of a registry that lacks what it lists itself."""
    return BadResponse(
        f"the registry lists what it does not have: {error.message}",
        hint="the registry has lost something: ask its administrator",
        **error.context,
    )


def require_agreement(release: ReleaseEntry, manifest: Manifest) -> None:
    """Hold what the index says of a release, which no author signed, against the manifest, which one did.

    Raises: Mix naming the first member that differs.
    """
    listed = replace(release, yanked=None).to_dict()
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

"""The shards for an install from a bundle: its own, and of other plugins what is installed. Verifies no signature."""

import hashlib
from collections.abc import Collection, Sequence

from manifests.errors import DigestMismatch
from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.lockfile import InstalledEntry
from manifests.manifest import MAX_MANIFEST_BYTES, Manifest
from manifests.names import PluginName
from runtime.generation import current_generation, read_bounded
from spm_client.adapters.index import SignedShards
from spm_client.store.layout import Layout


class BundledShards:
    """`SignedShards` where the bundle speaks of some plugins only: the others stay what they are."""

    def __init__(self, trust: SignedShards, layout: Layout, carried: Collection[str]) -> None:
        self._trust = trust
        self._layout = layout
        self._carried = frozenset(carried)

    def shard(self, name: PluginName) -> bytes | None:
        """Return the bundle's shard; of an installed plugin that it does not carry, a shard of just that release."""
        entry = self._kept(name)
        return self._trust.shard(name) if entry is None else self._of_installed(entry)

    def seen(self, name: PluginName) -> Sequence[bytes]:
        return self._trust.seen(name) if self._kept(name) is None else ()

    def installed(self, name: PluginName) -> InstalledEntry | None:
        return self._trust.installed(name) if self._kept(name) is None else None

    def _kept(self, name: PluginName) -> InstalledEntry | None:
        return None if name in self._carried else current_generation(self._layout.root).find(name)

    def _of_installed(self, entry: InstalledEntry) -> bytes:
        # It decides only whether the rest goes with it: whoever loads it verifies its signature then.
        folder = self._layout.manifest(entry.manifest_sha256)
        data = read_bounded(folder / "manifest.json", MAX_MANIFEST_BYTES)
        if (found := hashlib.sha256(data).hexdigest()) != entry.manifest_sha256:
            raise DigestMismatch(
                f"{folder}/manifest.json has the digest sha256:{found}, but its name says another",
                hint=f"`spm uninstall {entry.name}`, or install it anew where there is a registry",
                found=found,
                expected=entry.manifest_sha256,
            )
        manifest = Manifest.from_bytes(data)
        variant = VariantEntry.of(manifest, sha256=entry.manifest_sha256, size=len(data), keyids=entry.keyids)
        return Shard(
            registry=manifest.registry, name=entry.name, releases=(ReleaseEntry.of(manifest, (variant,)),)
        ).to_bytes()

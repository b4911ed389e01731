"""The shards for an install from a bundle: its own, and of other plugins what is installed. Verifies no signature."""

from collections.abc import Collection, Iterable, Sequence

from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.lockfile import InstalledEntry
from manifests.names import PluginName
from runtime.generation import current_generation
from spm_client.adapters.index import SignedShards
from spm_client.store.layout import Layout
from spm_client.workflows.installed_manifest import installed_manifest


class BundledShards:
    """`SignedShards` where the bundle speaks of some plugins only: the others stay what they are."""

    def __init__(self, trust: SignedShards, layout: Layout, carried: Collection[str], registry: str) -> None:
        self._trust = trust
        self._registry = registry
        self._layout = layout
        self._carried = frozenset(carried)

    def shard(self, name: PluginName) -> bytes | None:
        """Return the bundle's shard; of an installed plugin that it does not carry, a shard of just that release."""
        entry = self._kept(name)
        return self._trust.shard(name) if entry is None else self._of_installed(entry)

    def prefetch(self, names: Iterable[PluginName], max_bytes: int) -> None:
        """Do nothing: a file at hand is no faster in parts at once."""

    def seen(self, name: PluginName) -> Sequence[bytes]:
        return self._trust.seen(name) if self._kept(name) is None else ()

    def installed(self, name: PluginName) -> InstalledEntry | None:
        return self._trust.installed(name) if self._kept(name) is None else None

    def _kept(self, name: PluginName) -> InstalledEntry | None:
        return None if name in self._carried else current_generation(self._layout.root).find(name)

    def _of_installed(self, entry: InstalledEntry) -> bytes:
        manifest = installed_manifest(self._layout, entry)
        size = len(manifest.to_bytes())
        variant = VariantEntry.of(manifest, sha256=entry.manifest_sha256, size=size, keyids=entry.keyids)
        # It may be of another registry than the bundle is; only the resolution of the bundle's plugins reads this.
        release = ReleaseEntry.of(manifest, (variant,))
        return Shard(registry=self._registry, name=entry.name, releases=(release,)).to_bytes()

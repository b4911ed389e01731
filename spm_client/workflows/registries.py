"""Several registries as one index: each name is asked of the one registry that it belongs to. Commits nothing itself.

A registry is opened (connected to, its trust refreshed) when a name of it is first asked for. What it then answers is
the answer: no refusal and no failure of one registry ever leads to a question to another.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from keys.keyring import LoaderConf
from keys.verified import FetchedManifest
from manifests.errors import AmbiguousSource, ConfigMissing, NotFound, SpmError
from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.lockfile import Generation, InstalledEntry
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.parts import FileEntry
from manifests.versions import Version
from runtime.generation import current_generation
from runtime.installed import StoreTrust, TrustedConf, no_longer_trusted
from runtime.registries import Registries, of_registry, read_registries, registry_root
from spm_client.adapters.index import RegistryIndex, SignedShards
from spm_client.adapters.source import Source
from spm_client.progress import Progress
from spm_client.resolve import Requirement
from spm_client.store.layout import Layout
from spm_client.workflows.download import Blobs, fetch_missing
from spm_client.workflows.trust import TrustSession, refreshed

Connect = Callable[[LoaderConf], AbstractContextManager[Source]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRegistry:
    """A registry that a command has begun to ask: where its answers come from, and what vouches for them."""

    source: Source
    trust: TrustSession
    index: RegistryIndex

    @property
    def conf(self) -> TrustedConf:
        return self.trust.conf


def wished_in(requirements: Iterable[Requirement]) -> dict[PluginName, frozenset[str]]:
    """Return by plugin the registries that were named with it."""
    wished: dict[PluginName, frozenset[str]] = {}
    for requirement in requirements:
        if requirement.registry is not None:
            wished[requirement.name] = wished.get(requirement.name, frozenset()) | {requirement.registry}
    return wished


class RegistryIndexes:
    """The releases of all registries that a store knows. It is a `resolve.Provider`; use it as a context manager.

    `with RegistryIndexes(layout, conf, connect, scratch=folder, now=now) as indexes: indexes.releases(name)`.
    """

    def __init__(
        self,
        layout: Layout,
        conf: LoaderConf,
        connect: Connect,
        *,
        scratch: Path,
        now: datetime,
        wished: Mapping[PluginName, frozenset[str]] | None = None,
    ) -> None:
        self._layout = layout
        self._connect = connect
        self._scratch = scratch
        self._now = now
        self._wished = wished or {}
        self._registries: Registries = read_registries(layout.root, conf)
        self._sources = self._registries.sources
        self._opened: dict[str, OpenRegistry] = {}
        self._foreseen: dict[str, list[PluginName]] = {}
        self._stack = ExitStack()
        self._remembered = StoreTrust(layout.root, conf, now)
        self.own = conf.registry_id
        self.stand_on(current_generation(layout.root))

    def __enter__(self) -> "RegistryIndexes":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def stand_on(self, generation: Generation) -> None:
        """Take this as what is installed: a plugin stays with the registry that it came from."""
        self._installed = {entry.name: entry for entry in generation.plugins}
        self._installed_from = {entry.name: entry.registry or generation.registry for entry in generation.plugins}

    def registry_of(self, name: PluginName) -> str:
        """Return the id of the one registry that a name belongs to. Asks none.

        Raises: AmbiguousSource; ConfigMissing.
        """
        return self._sources.registry_of(
            name, wished=self._wished.get(name, frozenset()), installed=self._installed_from.get(name)
        )

    def of(self, name: PluginName) -> OpenRegistry:
        """Return the registry of a name, opened now if it was not.

        Raises: as `registry_of`; the refusals of that registry's trust and transport.
        """
        return self._asked(self.registry_of(name))

    def open_own(self) -> OpenRegistry:
        """Return the store's own registry, opened now if it was not.

        Raises: the refusals of its trust and transport.
        """
        return self._asked(self.own)

    def _asked(self, registry: str) -> OpenRegistry:
        if registry not in self._opened:
            with self.told_of(registry):
                self._opened[registry] = self._open(registry)
            self._opened[registry].index.prefetch(self._foreseen.pop(registry, ()))
        return self._opened[registry]

    def entered(self, name: PluginName) -> str | None:
        """Return how a generation names the registry of a plugin: None for the store's own."""
        registry = self.registry_of(name)
        return None if registry == self.own else registry

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        return self.shard(name).releases

    def prefetch(self, names: Iterable[PluginName]) -> None:
        """Tell each registry what may be asked of it next, once it is open; what is refused waits for the question."""
        for name in names:
            try:
                self._foreseen.setdefault(self.registry_of(name), []).append(name)
            except (AmbiguousSource, ConfigMissing):
                continue
        for registry in self._foreseen.keys() & self._opened.keys():
            self._opened[registry].index.prefetch(self._foreseen.pop(registry))

    def shard(self, name: PluginName) -> Shard:
        """Return every release of a plugin.

        Raises: as `of` and `RegistryIndex.shard`.
        """
        opened, registry = self.of(name), self.registry_of(name)
        try:
            with self.told_of(registry):
                return opened.index.shard(name)
        except NotFound as error:
            if registry == self.own and self._registries.others:
                error.hint += "; or, if it belongs to another registry, add it to the `names` of that one"
            raise

    def once_yanked(self, name: PluginName, version: Version) -> str | None:
        """Return why a release was yanked when it was seen here before."""
        return self.of(name).index.once_yanked(name, version)

    def fetch_manifest(self, name: PluginName, release: ReleaseEntry, variant: VariantEntry) -> FetchedManifest:
        """Return a manifest with its signature files, unverified, from the registry of the name."""
        opened = self.of(name)
        with self.told_of(self.registry_of(name)):
            return opened.index.fetch_manifest(release, variant)

    def fetch_missing(self, blobs: Blobs, scratch: Path, progress: Progress) -> dict[str, Path]:
        """Return where each blob lies after what is missing was fetched, each from the registry of its plugin.

        Raises: as `download.fetch_missing`.
        """
        by_registry: dict[str, dict[str, tuple[Manifest, FileEntry]]] = {}
        for digest, found in blobs.missing.items():
            by_registry.setdefault(self.registry_of(found[0].name), {})[digest] = found
        places = dict(blobs.held)
        for registry, missing in by_registry.items():
            with self.told_of(registry):
                one = Blobs(held={}, missing=missing)
                places |= fetch_missing(one, self._layout, scratch, self._asked(registry).source, progress)
        return places

    def no_longer_trusted(self, entry: InstalledEntry) -> SpmError | None:
        """Return why a plugin that is installed is loaded no more, if it is not, by what its registry says now.

        A registry that was not asked is taken at its last word, as a load does.
        """
        opened = self._opened.get(entry.registry or self.own)
        try:
            conf = opened.conf if opened else self._remembered.of(entry)
        except SpmError as refusal:
            return refusal
        return no_longer_trusted(self._layout.root, entry, conf)

    @contextmanager
    def told_of(self, registry: str) -> Iterator[None]:
        """Have refusals say which registry they are of, where the store knows several."""
        try:
            with of_registry(None if registry == self.own else registry):
                yield
        except SpmError as error:
            if self._registries.others:
                error.context.setdefault("registry", registry)
            raise

    @contextmanager
    def committing(self, scratch: Path) -> Iterator[None]:
        """Keep what was learnt of every registry that was asked, each in its own place, if the block succeeds."""
        with ExitStack() as stack:
            for opened in self._opened.values():
                stack.enter_context(opened.trust.committing(scratch))
            yield

    def _open(self, registry: str) -> OpenRegistry:
        conf = self._registries.conf(registry)
        is_own = registry == self.own
        layout = Layout(registry_root(self._layout.root, None if is_own else registry))
        scratch = self._scratch if is_own else self._scratch / "registries" / registry
        scratch.mkdir(parents=True, exist_ok=True)
        source = self._stack.enter_context(self._connect(conf))
        trust = refreshed(layout, conf, source, scratch=scratch, now=self._now)
        shards: SignedShards = trust if is_own else _ShardsBeside(trust, partial(self._installed_of, registry))
        return OpenRegistry(source=source, trust=trust, index=RegistryIndex(source, shards, registry))

    def _installed_of(self, registry: str, name: PluginName) -> InstalledEntry | None:
        entry = self._installed.get(name)
        return entry if entry is not None and entry.registry == registry else None


class _ShardsBeside:
    """Another registry's signed shards, held against what is installed from it in the store beside which it lies."""

    def __init__(self, trust: TrustSession, installed: Callable[[PluginName], InstalledEntry | None]) -> None:
        self._trust = trust
        self._installed = installed

    def shard(self, name: PluginName) -> bytes | None:
        return self._trust.shard(name)

    def prefetch(self, names: Iterable[PluginName], max_bytes: int) -> None:
        self._trust.prefetch(names, max_bytes)

    def seen(self, name: PluginName) -> Sequence[bytes]:
        return self._trust.seen(name)

    def installed(self, name: PluginName) -> InstalledEntry | None:
        return self._installed(name)

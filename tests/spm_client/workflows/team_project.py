"""A team's project, and the simulated registry that its plugins come from. Makes no claims."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from keys import ext_signature
from keys.keyring import LoaderConf
from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.parts import Requires, Variant
from manifests.project_lock import ProjectLock
from manifests.ranges import Range
from manifests.target import Target, TargetDevice, TorchFacts
from manifests.versions import Version
from spm_client.adapters.project_files import ProjectFolder
from spm_client.adapters.source import Source
from spm_client.progress import Advance
from spm_client.store.layout import Layout
from spm_client.workflows.project import Asker, Relocked
from spm_client.workflows.relock import relock
from tests.e2e.snapshots import snapshot
from tests.fakes.simulated_registry import SimulatedRegistry

CPU = Target(
    os="linux",
    cpu="x86_64",
    python="3.11.2",
    contract="2.0.5",
    devices=(TargetDevice(id="cpu", name="a cpu"),),
    torch=TorchFacts(version="2.13.0"),
)
GPU = Target(
    os="linux",
    cpu="x86_64",
    python="3.11.2",
    contract="2.0.5",
    devices=(TargetDevice(id="cpu", name="a cpu"), TargetDevice(id="cuda:0", name="a gpu", sm="sm_86")),
    torch=TorchFacts(version="2.13.0+cu126", cuda="12.6"),
)
HEAD = '[project]\nname = "speech"\n\n'


def silent(label: str, total: int, /) -> Advance:
    del label, total
    return lambda _: None


@dataclass
class TeamProject:
    """A folder with a spm.toml, a store that trusts a simulated registry, and what both are asked to do."""

    base: Path
    registry: SimulatedRegistry = field(default_factory=SimulatedRegistry)
    others: dict[str, SimulatedRegistry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.trust("store")
        self.folder.mkdir()

    @property
    def folder(self) -> Path:
        return self.base / "project"

    @property
    def root(self) -> Path:
        return self.base / "store"

    def trust(self, store: str) -> Path:
        """Make a store that trusts the registry and remembers nothing."""
        root = self.base / store
        root.mkdir(parents=True)
        (root / "loader.conf").write_text(self.registry.loader_conf())
        (root / "loader.conf").chmod(0o644)
        return root

    def write(self, requirements: str = "", *, head: str = HEAD, more: str = "", **targets: Target) -> None:
        """Write spm.toml and its target documents; the target is `cpu` where none is given."""
        lines = ""
        for name, target in (targets or {"cpu": CPU}).items():
            (self.folder / f"{name}.json").write_text(json.dumps(target.to_dict(), indent=1))
            lines += f'{name} = "{name}.json"\n'
        text = f"{head}[requirements]\n{requirements}\n\n[targets]\n{lines}{more}"
        (self.folder / "spm.toml").write_text(text)

    def open(self) -> ProjectFolder:
        return ProjectFolder.open(self.folder)

    def asker(self, store: str = "store") -> Asker:
        layout = Layout(self.base / store)
        return Asker(
            layout=layout,
            conf=LoaderConf.read(layout.conf),
            connect=self.connect,
            now=datetime.now(UTC),
            progress=silent,
        )

    @contextmanager
    def connect(self, conf: LoaderConf, **_: Any) -> Iterator[Source]:
        yield self.others.get(conf.registry_id, self.registry)

    def lock(self, *freed: str, store: str = "store", **options: Any) -> Relocked:
        names = frozenset(PluginName(name) for name in freed)
        return relock(self.open(), self.asker(store), **{"freed": names, **options})

    @property
    def locked(self) -> ProjectLock:
        return ProjectLock.from_bytes((self.folder / "spm.lock").read_bytes())

    def versions(self, target: str = "cpu") -> dict[str, str]:
        return {name: str(version) for name, version in self.locked.versions(target).items()}

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = snapshot(self.base)
        yield
        assert snapshot(self.base) == before

    def publish(
        self, name: str, version: str = "1.0.0", *, requires: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        """Publish a release with the ranges that are given; `variants=[...]` makes a build for each."""
        found = tuple((PluginName(other), Range.parse(text)) for other, text in sorted((requires or {}).items()))
        variants: list[Variant | None] = more.pop("variants", [None])
        asked = more.pop("torch", None)
        more["requires"] = Requires(plugins=found, torch=Range.parse(asked) if asked else None)
        entries = [self._build(name, version, {**more, "variant": variant}) for variant in variants]
        before = self.registry.shards.get(name) or Shard(registry=self.registry.index.registry, name=PluginName(name))
        release = ReleaseEntry.of(entries[0][0], tuple(entry for _, entry in entries))
        self.registry.list(before.with_release(release))

    def yank(self, name: str, version: str, reason: str) -> None:
        self.change(name, lambda shard: shard.with_yanked(Version.parse(version), reason))

    def change(self, name: str, edit: Callable[[Shard], Shard]) -> None:
        """Sign another shard in the place of a plugin's."""
        self.registry.list(edit(self.registry.shards[name]))

    def _build(self, name: str, version: str, more: dict[str, Any]) -> tuple[Manifest, VariantEntry]:
        registry = self.registry
        files = {f"{name}.py": f'"""{name} {version} {more["variant"]}."""\n'.encode()}
        requires = more.pop("requires")
        manifest = registry._manifest(name, version, files, (), {**more, "requires": requires})
        data = manifest.to_bytes()
        digest = hashlib.sha256(data).hexdigest()
        registry.documents[f"/v1/manifests/{digest}"] = data
        token = ext_signature.sign(registry.key, registry.keyid, data)
        registry.documents[f"/v1/manifests/{digest}/manifest.jws"] = token
        for blob in files.values():
            registry.documents[f"/v1/blobs/{hashlib.sha256(blob).hexdigest()}"] = blob
        return manifest, VariantEntry.of(manifest, sha256=digest, size=len(data), keyids=[registry.keyid])

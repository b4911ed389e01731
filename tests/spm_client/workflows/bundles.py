"""Two machines and a bundle between them: one reaches a simulated registry, the other has its loader.conf only."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from keys.keyring import LoaderConf
from keys.trust_file import trust_file
from keys.trust_state import TrustState, read_trust_state
from manifests.lockfile import Generation
from manifests.parts import FileEntry
from manifests.target import Target
from runtime.installed import open_installed, trusted_conf
from spm_client.progress import Advance
from spm_client.resolve import parse_spec
from spm_client.store.generations import read_current
from spm_client.store.layout import Layout
from spm_client.workflows.bundle_check import CheckedBundle
from spm_client.workflows.bundle_export import export_bundle
from spm_client.workflows.bundle_import import import_bundle, verify_bundle
from spm_client.workflows.consent import Wishes
from spm_client.workflows.install import Installed, install
from spm_client.workflows.trust import held_state, import_file, update
from tests.e2e.snapshots import snapshot
from tests.fakes.simulated_registry import SimulatedRegistry
from tests.keys.trust_builders import make_trust
from tests.spm_client.workflows.sources import HOST, MOMENT

DAY = timedelta(days=1)


def silent(label: str, total: int, /) -> Advance:
    del label, total
    return lambda _: None


def registry(age: timedelta = timedelta()) -> SimulatedRegistry:
    """Return a registry that was signed so long ago, and whose files live as long as a real one's."""
    index = make_trust(now=datetime.now(UTC).replace(microsecond=0) - age)
    index.lifetimes |= {"timestamp": DAY, "snapshot": 7 * DAY, "root": 365 * DAY, "targets": 365 * DAY}
    index.publish_root()
    index.publish_all()
    return SimulatedRegistry(index=index)


def publish_files(made: SimulatedRegistry, name: str, files: dict[str, bytes], version: str = "1.0.0") -> str:
    """Publish a release of these files beside its entry."""
    entries = {f"{name}.py": b"def make(context): ...\n"} | files
    for data in entries.values():
        made.documents[f"/v1/blobs/{hashlib.sha256(data).hexdigest()}"] = data
    listed = (
        FileEntry(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode="r")
        for path, data in sorted(entries.items())
    )
    return made.publish(name, version, files=tuple(listed))


@dataclass
class Machine:
    """A store that trusts a registry; only `export` and `install` reach it."""

    root: Path
    registry: SimulatedRegistry = field(default_factory=registry)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        self.pin()

    def pin(self, more: str = "") -> None:
        """Write loader.conf."""
        (self.root / "loader.conf").write_text(self.registry.loader_conf("http://127.0.0.1:9", more))
        (self.root / "loader.conf").chmod(0o644)

    @property
    def layout(self) -> Layout:
        return Layout(self.root)

    @property
    def conf(self) -> LoaderConf:
        return LoaderConf.read(self.layout.conf)

    @property
    def state(self) -> TrustState | None:
        return read_trust_state(self.root)

    @property
    def generation(self) -> Generation:
        return read_current(self.layout, "team.example")

    @property
    def installed(self) -> dict[str, str]:
        return {entry.name: str(entry.version) for entry in self.generation.plugins}

    def export(
        self,
        output: Path,
        *specs: str,
        target: Target = HOST,
        force: bool = False,
        now: datetime | None = None,
        **more: object,
    ) -> CheckedBundle:
        wishes = Wishes(requirements=tuple(parse_spec(spec) for spec in specs), **more)  # type: ignore[arg-type]
        return export_bundle(
            wishes,
            self.layout,
            self.conf,
            self.registry,
            target,
            output,
            is_replacing=force,
            now=now or datetime.now(UTC),
            progress=silent,
        )

    def verify(self, path: Path, now: datetime | None = None) -> CheckedBundle:
        return verify_bundle(path, self.layout, self.conf, now=now or datetime.now(UTC), progress=silent)

    def take(
        self, path: Path, *specs: str, now: datetime | None = None, target: Target = HOST, **more: object
    ) -> Installed:
        wishes = Wishes(requirements=tuple(parse_spec(spec) for spec in specs), **more)  # type: ignore[arg-type]
        _, installed = import_bundle(
            path,
            wishes,
            self.layout,
            self.conf,
            target,
            now=now or datetime.now(UTC),
            created=MOMENT,
            progress=silent,
        )
        return installed

    def install(self, *specs: str, target: Target = HOST, **more: object) -> Installed:
        wishes = Wishes(requirements=tuple(parse_spec(spec) for spec in specs), **more)  # type: ignore[arg-type]
        now = datetime.now(UTC)
        return install(
            wishes, self.layout, self.conf, self.registry.connect, target, now=now, created=MOMENT, progress=silent
        )

    def install_trust(self) -> None:
        """Refresh trust, as `spm trust update` does."""
        update(self.layout, self.conf, self.registry, now=datetime.now(UTC))

    def import_trust(self, other: "Machine") -> None:
        """Take a trust file of another machine in."""
        import_file(self.layout, self.conf, trust_file(held_state(other.layout, other.conf)), now=datetime.now(UTC))

    def load(self, name: str) -> None:
        """Verify an installed plugin as the runtime does at a load."""
        open_installed(self.root, name, trusted_conf(self.root, self.conf, datetime.now(UTC)))

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = snapshot(self.root)
        yield
        assert snapshot(self.root) == before


@dataclass
class Pair:
    """The machine that exports, the one that has no network, and where the bundle lies."""

    folder: Path
    registry: SimulatedRegistry = field(default_factory=registry)

    def __post_init__(self) -> None:
        self.there = Machine(self.folder / "there", self.registry)
        self.here = Machine(self.folder / "here", self.registry)
        self.bundle = self.folder / "plugins.bundle"

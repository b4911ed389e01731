"""A store with two served registries: its own, `team.example`, and `px.example`, whose names are `px-*`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from keys.keyring import LoaderConf
from spm_client.store.layout import Layout
from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry, fresh_index
from tests.keys.trust_builders import make_trust

PX = "px.example"


def px_registry() -> SimulatedRegistry:
    """Return a registry of another id than the one that tests have elsewhere."""
    lifetimes = {"root": timedelta(days=400), "targets": timedelta(days=400)}
    now = datetime.now(UTC).replace(microsecond=0)
    return SimulatedRegistry(index=make_trust(PX, now=now, lifetimes=lifetimes))


def claiming(loader_conf: str, *names: str) -> str:
    """Return a loader.conf whose registry claims these names."""
    listed = ", ".join(f'"{name}"' for name in names)
    return loader_conf.replace("[registry]\n", f"[registry]\nnames = [{listed}]\n")


def write_conf(path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)


@dataclass
class TwoRegistries:
    """`own` and `px` may publish; `own_served.seen` and `px_served.seen` tell what each was asked."""

    root: Path
    own: SimulatedRegistry
    px: SimulatedRegistry
    own_served: ServedFiles
    px_served: ServedFiles

    @property
    def layout(self) -> Layout:
        return Layout(self.root)

    @property
    def px_layout(self) -> Layout:
        return Layout(self.root / "registries" / PX)

    @property
    def conf(self) -> LoaderConf:
        return LoaderConf.read(self.layout.conf)

    def pin(self, *names: str, more: str = "") -> None:
        """Write the store's own loader.conf, with a claim of these names."""
        text = self.own.loader_conf(self.own_served.url, more)
        write_conf(self.layout.conf, claiming(text, *names) if names else text)

    def pin_px(self, *names: str, more: str = "", url: str = "") -> None:
        """Write the other registry's loader.conf, with a claim of these names."""
        write_conf(self.px_layout.conf, claiming(self.px.loader_conf(url or self.px_served.url, more), *names))

    def asked(self) -> tuple[list[str], list[str]]:
        """Return what the own and the other registry were asked since they were last looked at."""
        found = [path for path, _ in self.own_served.seen], [path for path, _ in self.px_served.seen]
        self.own_served.seen.clear()
        self.px_served.seen.clear()
        return found


@contextmanager
def two_registries(root: Path) -> Iterator[TwoRegistries]:
    """Give both, served on ports of their own, with nothing published."""
    own, px = SimulatedRegistry(index=fresh_index()), px_registry()
    with ServedFiles(own.file) as own_served, ServedFiles(px.file) as px_served:
        made = TwoRegistries(root, own, px, own_served, px_served)
        made.pin()
        made.pin_px("px-*")
        yield made

"""Installs over two served registries, as commands make them. Makes no claims."""

from datetime import UTC, datetime

from manifests.lockfile import Generation
from spm_client.adapters.http import RegistryClient
from spm_client.progress import Advance
from spm_client.resolve import parse_spec
from spm_client.workflows.consent import Wishes
from spm_client.workflows.install import Installed, install
from tests.fakes.two_registries import TwoRegistries
from tests.spm_client.workflows.sources import HOST, MOMENT


def put(two: TwoRegistries, *specs: str, is_dry_run: bool = False) -> Installed:
    wishes = Wishes(requirements=tuple(parse_spec(spec) for spec in specs), is_dry_run=is_dry_run)
    return install(
        wishes,
        two.layout,
        two.conf,
        lambda conf: RegistryClient(conf.registry_url),
        HOST,
        now=datetime.now(UTC),
        created=MOMENT,
        progress=silent,
    )


def silent(label: str, total: int, /) -> Advance:
    del label, total
    return lambda _: None


def registries(generation: Generation) -> dict[str, tuple[str, str | None]]:
    return {entry.name: (str(entry.version), entry.registry) for entry in generation.plugins}

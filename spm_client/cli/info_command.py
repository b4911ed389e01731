"""`spm info`."""

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.errors import UsageError
from manifests.index import ReleaseEntry, Shard
from manifests.lockfile import Generation, InstalledEntry
from manifests.names import PluginName
from manifests.sources import parse_query_of
from manifests.target import Target
from manifests.versions import Version
from runtime.registries import read_registries
from spm_client.cli.info_text import show
from spm_client.cli.session import Session, target_option
from spm_client.resolve.fit import Fits, judge
from spm_client.workflows.about import (
    Choice,
    Judged,
    Signer,
    choose,
    find_release,
    signers_of,
    variants_of,
)
from spm_client.workflows.near import suggesting
from spm_client.workflows.registries import RegistryIndexes


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All that is told of one plugin. `release` is the one described; None where there is none."""

    shard: Shard
    target: Target
    target_option: str
    choice: Choice
    release: ReleaseEntry | None
    variants: tuple[Judged, ...]
    signers: tuple[Signer, ...]
    fits: dict[str, str]
    installed: InstalledEntry | None
    dependants: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        told = {
            **self.shard.to_dict(),
            "fits": self.fits,
            "installed": self.installed.version.text if self.installed else None,
            "requested": self.installed.requested if self.installed else None,
            "dependants": list(self.dependants),
            "choice": self.choice.to_dict(),
            "described": self.release.version.text if self.release else None,
        }
        variants = [one.to_dict() for one in self.variants]
        return told | {"variants": variants, "signers": [signer.to_dict() for signer in self.signers]}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "It judges the plugin alone: `spm install NAME --dry-run` shows the whole plan."
    parser.add_argument("name", metavar="NAME", help="a plugin of the registry; `ID/NAME` asks that registry")
    parser.add_argument("--version", metavar="V", help="describe this release (default: what an install would take)")
    parser.add_argument("--target", metavar="FILE", help="judge the fit for the host that FILE describes")


def run(options: argparse.Namespace, session: Session) -> int:
    told = _told(options, session)
    session.emit(told.to_dict())
    if not session.is_json:
        show(told)
    return 0


def _told(options: argparse.Namespace, session: Session) -> Told:
    registry, name = _named(options.name)
    version = _version(options.version)
    conf, layout = session.conf(), session.layout
    target = session.target(options.target)
    wished = {name: frozenset({registry})} if registry else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        session.client(conf) as client,
        RegistryIndexes(
            layout, conf, session.client, scratch=Path(folder), now=session.now(), wished=wished
        ) as indexes,
        suggesting(client, {name}, registry=conf.registry_id),
    ):
        shard = indexes.shard(name)
        trusted = indexes.of(name).conf.keyring
    pinned = read_registries(layout.root, conf).conf(shard.registry).keyring
    generation = session.generation(conf.registry_id)
    installed = _installed(generation, shard)
    choice = choose(shard, target, installed.version if installed else None)
    release = find_release(shard, version) if version else choice.release or next(reversed(shard.releases), None)
    return Told(
        shard=shard,
        target=target,
        target_option=target_option(options.target),
        choice=choice,
        release=release,
        variants=variants_of(release, target, trusted.revoked_manifests) if release else (),
        signers=signers_of(release, pinned, trusted) if release else (),
        fits={one.version.text: _fit(one, target) for one in shard.releases},
        installed=installed,
        dependants=generation.dependants(name) if installed else (),
    )


def _installed(generation: Generation, shard: Shard) -> InstalledEntry | None:
    """Return the plugin as it is installed, if it is and came from this registry."""
    entry = generation.find(shard.name)
    return entry if entry and (entry.registry or generation.registry) == shard.registry else None


def _named(text: str) -> tuple[str | None, PluginName]:
    try:
        return parse_query_of(text)
    except UsageError as error:
        name, _, version = text.partition("==")
        if version:
            error.hint = f"`spm info {name:.128} --version {version:.64}` describes one release"
        raise


def _version(text: str | None) -> Version | None:
    try:
        return None if text is None else Version.parse(text)
    except UsageError as error:
        raise UsageError(f"`--version`: {error.message}", hint=error.hint) from error


def _fit(release: ReleaseEntry, target: Target) -> str:
    verdict = judge(release, target)
    if isinstance(verdict, Fits):
        tag = verdict.variant.variant.tag if verdict.variant.variant else "any target"
        return f"fits ({tag})"
    return verdict.text

"""`spm info`."""

import argparse
import tempfile
from pathlib import Path

from manifests.index import ReleaseEntry, Shard
from manifests.names import parse_query
from manifests.target import Target
from spm_client.adapters.index import RegistryIndex
from spm_client.cli.session import Session
from spm_client.render import size, table
from spm_client.resolve.fit import Fits, judge
from spm_client.workflows.trust import refreshed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a plugin of the registry")
    parser.add_argument("--target", metavar="FILE", help="judge the fit for the host that FILE describes")


def run(options: argparse.Namespace, session: Session) -> int:
    name = parse_query(options.name)
    conf = session.conf()
    target = session.target(options.target)
    with session.client(conf) as client, tempfile.TemporaryDirectory() as folder:
        trust = refreshed(session.layout, conf, client, scratch=Path(folder), now=session.now())
        shard = RegistryIndex(client, trust, conf.registry_id).shard(name)
    installed = session.generation(conf.registry_id).find(name)
    fits = {release.version.text: _fit(release, target) for release in shard.releases}
    session.emit(
        {
            **shard.to_dict(),
            "fits": fits,
            "installed": str(installed.version) if installed else None,
        }
    )
    if not session.is_json:
        _show(shard, fits, str(installed.version) if installed else "no")
    return 0


def _fit(release: ReleaseEntry, target: Target) -> str:
    verdict = judge(release, target)
    if isinstance(verdict, Fits):
        tag = verdict.variant.variant.tag if verdict.variant.variant else "any target"
        return f"fits ({tag})"
    return verdict.text


def _show(shard: Shard, fits: dict[str, str], installed: str) -> None:
    if not shard.releases:
        print(f"{shard.name} has no release in {shard.registry}")
        return
    newest = shard.releases[-1]
    print(f"{shard.name} ({newest.type.value}): {newest.summary}")
    print(f"registry: {shard.registry}   installed: {installed}\n")
    rows = [_row(release, fits[release.version.text]) for release in reversed(shard.releases)]
    print(table(("VERSION", "SIZE", "DEVICES", "BATCH", "REQUIRES", "ON THIS TARGET"), rows))
    signers = sorted(
        {keyid for release in shard.releases for variant in release.variants for keyid in variant.signatures}
    )
    print("\nsigned by " + ", ".join(f"{keyid[:16]}…" for keyid in signers))


def _row(release: ReleaseEntry, fit: str) -> tuple[str, ...]:
    requires = [f"{name} {wanted}" for name, wanted in release.requires.plugins]
    requires += [f"torch {release.requires.torch}"] if release.requires.torch else []
    return (
        release.version.text,
        size(sum(variant.blobs_size for variant in release.variants)),
        ",".join(map(str, release.device_affinity or ())) or "-",
        release.batch_policy.mode.value if release.batch_policy else "-",
        "; ".join(requires) or "-",
        f"yanked: {release.yanked}" if release.yanked else fit,
    )

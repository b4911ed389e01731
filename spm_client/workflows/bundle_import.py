"""Taking a bundle in, or only looking at it: the same proof, and then the same install as from a registry. Asks nobody.

Who carries a bundle may have written what it asks for: that moves no installed plugin back, and consents to nothing.
"""

from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from keys.keyring import LoaderConf
from manifests.errors import NotFound
from manifests.target import Target
from runtime.guard import require_guarded_store
from spm_client.adapters.bundle import BundleFile
from spm_client.progress import Progress
from spm_client.store.layout import Layout, refusals
from spm_client.store.staging import staging
from spm_client.workflows.bundle_check import CheckedBundle, check_bundle
from spm_client.workflows.consent import Wishes
from spm_client.workflows.install import Installed, install_by
from spm_client.workflows.own_alone import OwnAlone
from spm_client.workflows.registries import OpenRegistry


def verify_bundle(path: Path, layout: Layout, conf: LoaderConf, *, now: datetime, progress: Progress) -> CheckedBundle:
    """Prove a bundle, each blob's digest too, and change nothing.

    Raises: as `check_bundle`; DigestMismatch.
    """
    conf.require_root()
    require_guarded_store(layout.root)
    with BundleFile(path) as bundle, TemporaryDirectory() as folder:
        checked = check_bundle(bundle, layout, conf, scratch=Path(folder), now=now)
        advance = progress("Verifying", sum(blob.extent.size for blob in checked.blobs.values()))
        for sha256, blob in checked.blobs.items():
            for chunk in checked.source.blob(sha256, size=blob.extent.size):
                advance(len(chunk))
    return checked


def import_bundle(
    path: Path,
    wishes: Wishes,
    layout: Layout,
    conf: LoaderConf,
    target: Target,
    *,
    now: datetime,
    created: str,
    progress: Progress,
) -> tuple[CheckedBundle, Installed]:
    """Install from a bundle what is wished for; without requirements, what was asked for when it was exported.

    Raises: as `check_bundle` and `install`; NotFound for a wish that the bundle does not carry.
    """
    conf.require_root()
    require_guarded_store(layout.root)
    with BundleFile(path) as bundle, refusals(layout.root), staging(layout) as scratch:
        checked = check_bundle(bundle, layout, conf, scratch=scratch, now=now)
        opened = OpenRegistry(source=checked.source, trust=checked.trust, index=checked.index)
        indexes = OwnAlone(
            layout,
            conf,
            lambda _: nullcontext(checked.source),
            scratch=scratch,
            now=now,
            opened=opened,
            carried=bundle.header.plugins,
        )
        installed = install_by(
            indexes,
            _held_to(wishes, checked),
            layout,
            conf,
            target,
            scratch=scratch,
            created=created,
            progress=progress,
        )
    return checked, installed


def _held_to(wishes: Wishes, checked: CheckedBundle) -> Wishes:
    names = [one.name for one in checked.carried]
    if strange := sorted(wishes.names - set(names)):
        raise NotFound(
            f"the bundle `{checked.path}` does not carry `{strange[0]}`: it carries "
            + ", ".join(f"`{name}`" for name in names),
            hint="export a bundle with it, or leave it out",
            plugin=strange[0],
        )
    return wishes if wishes.requirements else replace(wishes, requirements=checked.asked, is_carried=True)

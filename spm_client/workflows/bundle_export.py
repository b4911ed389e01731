"""Export: resolve for a host that has nothing, verify all of it, write it as one file. Changes nothing in the store.

1. Make the file beside its place, so that a full or forbidden disk is found out first.
2. Refresh trust in a scratch folder; resolve; verify each manifest by its author's signature.
3. Write header, index, manifests and signatures, then the blobs, digests checked as they come.
4. Prove what was written as an import will; then rename it into its place.
"""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from keys.keyring import LoaderConf
from keys.verified import VerifiedManifest
from manifests.errors import NotFound
from manifests.lockfile import Generation
from manifests.parts import FileEntry
from manifests.target import Target
from spm_client.adapters.bundle import CHUNK, BundleFile
from spm_client.adapters.index import contradiction
from spm_client.adapters.source import Source
from spm_client.bundle_format import BundledRelease, BundleHeader, Part, SignatureFile, spec_text
from spm_client.output_file import disk, written
from spm_client.progress import Progress
from spm_client.resolve import resolve
from spm_client.store.blobs import checked, holds
from spm_client.store.layout import Layout
from spm_client.workflows.bundle_check import CheckedBundle, check_bundle
from spm_client.workflows.consent import Wishes, require_used
from spm_client.workflows.fetch_manifests import fetch_verified
from spm_client.workflows.own_alone import OwnAlone
from spm_client.workflows.patience import within
from spm_client.workflows.registries import wished_in
from spm_client.workflows.trust import TrustSession


@dataclass(frozen=True, slots=True)
class _Contents:
    header: BundleHeader
    parts: dict[str, bytes]
    releases: tuple[VerifiedManifest, ...]

    @property
    def files(self) -> dict[str, tuple[VerifiedManifest, FileEntry]]:
        """Return each blob once, in the order of the file, with the first file that it is."""
        found: dict[str, tuple[VerifiedManifest, FileEntry]] = {}
        for verified in self.releases:
            for entry in verified.manifest.files:
                found.setdefault(entry.sha256, (verified, entry))
        return found


def export_bundle(
    wishes: Wishes,
    layout: Layout,
    conf: LoaderConf,
    source: Source,
    target: Target,
    output: Path,
    *,
    is_replacing: bool,
    now: datetime,
    progress: Progress,
) -> CheckedBundle:
    """Write what is wished for and all that it requires to a file, for the target, and return what is in it.

    Raises: any refusal of trust, resolution, signature, content or transport; UsageError for a file that is there;
    LimitReached where the disk is full. The file is then as it was.
    """
    conf.require_root()
    with written(output, is_replacing=is_replacing) as (file, temporary), TemporaryDirectory() as folder:
        contents = _resolved(wishes, layout, conf, source, target, Path(folder), now)
        with disk(output):
            file.write(contents.header.to_bytes())
            for part in contents.header.parts:
                file.write(contents.parts[part.path])
            for verified in contents.releases:
                file.write(verified.data + b"".join(data for _, data in sorted(verified.signatures.items())))
        _write_blobs(contents, layout, source, file, output, progress)
        with disk(output):
            file.flush()
            os.fsync(file.fileno())
        with BundleFile(temporary) as bundle, TemporaryDirectory() as again:
            proven = check_bundle(bundle, layout, conf, scratch=Path(again), now=now)
    return proven


def _resolved(
    wishes: Wishes, layout: Layout, conf: LoaderConf, source: Source, target: Target, scratch: Path, now: datetime
) -> _Contents:
    wished = wished_in(wishes.requirements)
    indexes = OwnAlone(layout, conf, lambda _: nullcontext(source), scratch=scratch, now=now, wished=wished)
    indexes.stand_on(Generation(number=0, registry=conf.registry_id, created=""))
    own = indexes.open_own()
    resolution = resolve(
        indexes,
        wishes.requirements,
        target,
        accept_fallback=wishes.accept_fallback,
        pre=wishes.pre,
        is_late=within(),
    )
    require_used(wishes, resolution)
    releases = [fetch_verified(own.index, own.conf, pin.name, pin.release, pin.variant) for pin in resolution.pins]
    return _composed(wishes, own.trust, sorted(releases, key=lambda verified: verified.sha256))


def _composed(wishes: Wishes, trust: TrustSession, releases: list[VerifiedManifest]) -> _Contents:
    parts = trust.proof()
    listed = [Part(path=path, size=len(data)) for path, data in parts.items()]
    header = BundleHeader(
        registry=trust.conf.registry_id,
        asked=tuple(sorted({spec_text(wish) for wish in wishes.requirements})),
        parts=tuple(sorted(listed, key=lambda part: part.order)),
        releases=tuple(
            BundledRelease(
                manifest_sha256=verified.sha256,
                size=len(verified.data),
                signatures=tuple(
                    SignatureFile(name=name, size=len(data)) for name, data in sorted(verified.signatures.items())
                ),
            )
            for verified in releases
        ),
    )
    return _Contents(header, parts, tuple(releases))


def _write_blobs(
    contents: _Contents, layout: Layout, source: Source, file: BinaryIO, output: Path, progress: Progress
) -> None:
    files = contents.files
    advance = progress("Exporting", sum(entry.size for _, entry in files.values()))
    for verified, entry in files.values():
        what = f"`{verified.manifest.name}` {verified.manifest.version}"
        try:
            for chunk in checked(_chunks(layout, source, entry), entry, what=what, so="nothing was written"):
                with disk(output):
                    file.write(chunk)
                advance(len(chunk))
        except NotFound as error:
            raise contradiction(error) from error


def _chunks(layout: Layout, source: Source, entry: FileEntry) -> Iterator[bytes]:
    """Yield a blob from the store where it has it, else from the registry."""
    if not holds(layout, entry):
        yield from source.blob(entry.sha256, size=entry.size)
        return
    with layout.blob(entry.sha256).open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk

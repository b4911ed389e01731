"""Blobs into a scratch folder: in parallel, digests checked as they come. Changes nothing in the store."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from manifests.errors import NotFound, SpmError
from manifests.manifest import Manifest
from manifests.parts import FileEntry
from spm_client.adapters.index import contradiction
from spm_client.adapters.source import Source
from spm_client.progress import Advance, Progress
from spm_client.store.blobs import holds, receive
from spm_client.store.layout import Layout

PARALLEL = 8


class Stopped(Exception):
    """Another download failed, so this one was given up."""


def download(
    manifests: Iterable[Manifest], layout: Layout, scratch: Path, source: Source, progress: Progress
) -> dict[str, Path]:
    """Return where each blob of the manifests lies: in the store if it has it, else fetched into scratch.

    Raises: the first refusal in the order of the manifests; no download goes on after it.
    """
    wanted: dict[str, tuple[Manifest, FileEntry]] = {}
    for manifest in manifests:
        for entry in manifest.files:
            wanted.setdefault(entry.sha256, (manifest, entry))
    places = {digest: layout.blob(digest) for digest, (_, entry) in wanted.items() if holds(layout, entry)}
    missing = {digest: found for digest, found in wanted.items() if digest not in places}
    if missing:
        advance = progress("Downloading", sum(entry.size for _, entry in missing.values()))
        places |= _fetch_all(missing, scratch, source, advance)
    return places


def _fetch_all(
    missing: dict[str, tuple[Manifest, FileEntry]], scratch: Path, source: Source, advance: Advance
) -> dict[str, Path]:
    stop = Event()

    def fetch(manifest: Manifest, entry: FileEntry) -> Path:
        if stop.is_set():
            raise Stopped
        path = scratch / entry.sha256
        what = f"`{manifest.name}` {manifest.version}"
        try:
            receive(source.blob(entry.sha256, size=entry.size), entry, path, what=what, advance=advance)
        except NotFound as error:
            stop.set()
            raise contradiction(error) from error
        except BaseException:
            stop.set()
            raise
        return path

    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        tasks = {digest: pool.submit(fetch, *found) for digest, found in missing.items()}
    errors = [error for task in tasks.values() if (error := task.exception()) and not isinstance(error, Stopped)]
    for error in sorted(errors, key=lambda error: not isinstance(error, SpmError)):
        raise error
    return {digest: task.result() for digest, task in tasks.items()}

"""Blobs into the store's disk: in parallel, digests checked as they come. Takes nothing into the store.

What had come of big blobs when the network failed, or somebody stopped the command, stays for the next (`partial.py`).
"""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread

from manifests.errors import NotFound, SpmError
from manifests.manifest import Manifest
from manifests.parts import FileEntry
from spm_client.adapters.at_once import begin
from spm_client.adapters.index import contradiction
from spm_client.adapters.source import Source
from spm_client.progress import Progress
from spm_client.store import partial
from spm_client.store.blobs import holds
from spm_client.store.layout import Layout
from spm_client.store.partial import Partials
from spm_client.workflows.fetch_blob import Fetching, Stopped

PARALLEL = 8
GRACE_SECONDS = 1.0
"""How long a command that ends waits for downloads that wait for the network; they write nothing any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blobs:
    """What some manifests need: where the store has it, and for what it lacks the first file that it is."""

    held: Mapping[str, Path]
    missing: Mapping[str, tuple[Manifest, FileEntry]]

    @property
    def size(self) -> int:
        """Return how many bytes are missing."""
        return sum(entry.size for _, entry in self.missing.values())


def find_blobs(manifests: Iterable[Manifest], layout: Layout) -> Blobs:
    """Tell which blobs the store holds, each hashed now, and which it lacks."""
    wanted: dict[str, tuple[Manifest, FileEntry]] = {}
    for manifest in manifests:
        for entry in manifest.files:
            wanted.setdefault(entry.sha256, (manifest, entry))
    held = {digest: layout.blob(digest) for digest, (_, entry) in wanted.items() if holds(layout, entry)}
    return Blobs(held=held, missing={digest: found for digest, found in wanted.items() if digest not in held})


def fetch_missing(blobs: Blobs, layout: Layout, scratch: Path, source: Source, progress: Progress) -> dict[str, Path]:
    """Return where each blob lies, in the order of the manifests, after fetching what is missing.

    `scratch` lies in the command's own folder. Whoever gets the places moves them into the store by `adopt`.
    Raises: the refusal that came first, of several at once the first in the order of the manifests; no download goes
    on after it.
    """
    if not blobs.missing:
        return dict(blobs.held)
    partials = Partials(layout, scratch)
    fetching = Fetching(
        source=source,
        partials=partials,
        scratch=scratch,
        advance=progress("Downloading", blobs.size),
        stop=Event(),
    )
    try:
        return {**blobs.held, **_Crew(fetching, blobs.missing).run()}
    except BaseException as error:
        partial.settle(layout, partials.owner, error)
        partials.leave()
        raise


class _Crew:
    """Threads that fetch one blob after another until none is left or one is refused.

    They are daemons: a command that is stopped does not wait for a network that is silent.
    """

    def __init__(self, fetching: Fetching, missing: Mapping[str, tuple[Manifest, FileEntry]]) -> None:
        self._fetching = fetching
        self._missing = missing
        self._left = deque(missing.values())
        self._places: dict[str, Path] = {}
        self._refusals: dict[str, SpmError | OSError] = {}
        self._ended: SimpleQueue[None] = SimpleQueue()

    def run(self) -> dict[str, Path]:
        threads: list[Thread] = []
        try:
            for thread in begin(min(PARALLEL, len(self._missing)), self._work, name="download"):
                threads.append(thread)  # one by one: who is stopped here waits for those that are at work
            for _ in threads:
                self._ended.get()
                if self._fetching.stop.is_set():
                    break
        finally:
            self._fetching.stop.set()
            ends = time.monotonic() + GRACE_SECONDS
            for thread in threads:
                thread.join(max(ends - time.monotonic(), 0.0))
        return self._found()

    def _work(self) -> None:
        try:
            while (found := self._next()) and not self._fetching.stop.is_set():
                self._fetch(*found)
        except BaseException:
            self._fetching.stop.set()
            raise
        finally:
            self._ended.put(None)

    def _next(self) -> tuple[Manifest, FileEntry] | None:
        try:
            return self._left.popleft()
        except IndexError:
            return None

    def _fetch(self, manifest: Manifest, entry: FileEntry) -> None:
        try:
            self._places[entry.sha256] = self._fetching.fetch(entry, what=f"`{manifest.name}` {manifest.version}")
        except Stopped:
            return
        except (SpmError, OSError) as error:
            self._refusals[entry.sha256] = error
            self._fetching.stop.set()

    def _found(self) -> dict[str, Path]:
        refusals = [self._refusals[digest] for digest in self._missing if digest in self._refusals]
        for error in sorted(refusals, key=lambda error: not isinstance(error, SpmError)):
            if isinstance(error, NotFound):
                raise contradiction(error) from error
            raise error
        return {digest: self._places[digest] for digest in self._missing}

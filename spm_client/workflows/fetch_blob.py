"""One blob into a file: gone on with where it was cut, by an earlier command or just now. Commits nothing.

1. What has come of it before is hashed, and only the rest is asked for; nothing is asked for where it is all there.
2. A transfer that is cut is taken up again where it ended, after a pause: at most `MAX_CUTS` times a blob, at most
   `MAX_IN_VAIN` times in a row without a byte more, and only while what came in this command kept the minimum rate.
   Only a cut is: that there is no connection at the start, and whatever a registry says, is told at once.
3. At its end it is held to size and digest. What came in several pieces and is wrong is thrown away and fetched anew,
   once.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from manifests.errors import ContentError, RegistryUnreachable
from manifests.parts import FileEntry
from spm_client.adapters import wire
from spm_client.adapters.source import ConnectionFailed, Source, TransferCut, TransferStalled
from spm_client.progress import Advance
from spm_client.store.incoming import Incoming
from spm_client.store.partial import WORTH_KEEPING, Partials

MAX_CUTS = 8
MAX_IN_VAIN = 3
FIRST_PAUSE = 0.25
"""Seconds before a cut transfer is taken up again; twice as long after each time that brought nothing."""


class Stopped(Exception):
    """Another download failed, so this one was given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """What the downloads of a command share. `stop`, once set, ends each before it writes another byte."""

    source: Source
    partials: Partials
    scratch: Path
    advance: Advance
    stop: Event

    def fetch(self, entry: FileEntry, *, what: str) -> Path:
        """Return where the blob lies, whole.

        Raises: SizeMismatch, DigestMismatch, and nothing of it is left then; what the source raises; Stopped.
        """
        path = self.scratch / entry.sha256
        if entry.size >= WORTH_KEEPING:
            path = self.partials.claim(entry.sha256, entry.size)
        with Incoming(path, entry, what=what) as file:
            _Transfer(self, entry, file).run()
        return path


class _Transfer:
    def __init__(self, fetching: Fetching, entry: FileEntry, file: Incoming) -> None:
        self._fetching = fetching
        self._entry = entry
        self._file = file
        self._is_pieced = file.size > 0
        self._began = time.monotonic()
        self._came = self._cuts = self._in_vain = 0

    def run(self) -> None:
        held = self._file.size
        self._fetching.advance(held)
        try:
            self._fill()
            self._file.require_whole()
        except ContentError:
            if not self._is_pieced:
                raise
            # No weaker rule: the same digest decides, over bytes that came in one piece or were cut just now. A part
            # from before may have been damaged on this disk, for which no registry is to blame.
            self._fetching.advance(-held - self._came)
            self._file.begin_anew()
            self._came = 0
            self._fill()
            self._file.require_whole()

    def _fill(self) -> None:
        """Append what is missing; also where it ends early, or does not end in time."""
        while not self._file.is_whole:
            before = self._came
            try:
                self._append()
                return
            except (TransferCut, TransferStalled, ConnectionFailed) as error:
                if not self._file.is_whole:
                    self._take_up_again(error, is_in_vain=self._came == before)

    def _append(self) -> None:
        digest, size = self._entry.sha256, self._entry.size
        for chunk in self._fetching.source.blob(digest, size=size, offset=self._file.size):
            self._require_going_on()
            self._file.write(chunk)
            self._came += len(chunk)
            self._fetching.advance(len(chunk))

    def _take_up_again(self, error: RegistryUnreachable, *, is_in_vain: bool) -> None:
        """Wait before the next try, or raise what ended the last where there is none."""
        is_none_at_all = isinstance(error, ConnectionFailed) and not self._cuts
        self._cuts += 1
        self._in_vain = self._in_vain + 1 if is_in_vain else 0
        is_slow = time.monotonic() - self._began > wire.READ_SECONDS + self._came / wire.MINIMUM_RATE
        if is_none_at_all or is_slow or self._cuts > MAX_CUTS or self._in_vain > MAX_IN_VAIN:
            raise error
        self._is_pieced = self._file.size > 0
        self._fetching.stop.wait(FIRST_PAUSE * 2**self._in_vain)
        self._require_going_on()

    def _require_going_on(self) -> None:
        if self._fetching.stop.is_set():
            raise Stopped

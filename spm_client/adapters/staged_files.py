"""Files of the user's that change together: all is on disk beside them before the first is renamed. Knows no content.

What can fail for want of room or rights fails while nothing has changed; a file keeps its mode, a link stays a link.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from spm_client.output_file import disk
from spm_client.store.layout import sync_folder

_MODE = 0o666  # of a new file; the umask takes from it


class StagedFiles:
    """New content that waits beside its files. Made by `staged`; `put` lets it take their place."""

    def __init__(self, waiting: Mapping[Path, Path], before: Mapping[Path, Path | None]) -> None:
        self._waiting = waiting
        self._before = before

    def put(self) -> None:
        """Rename each into its place; if one of them fails, those before it are put back.

        Raises: UsageError or LimitReached naming the file.
        """
        done: list[Path] = []
        try:
            for path, temporary in self._waiting.items():
                with disk(path):
                    os.replace(temporary, path)
                done.append(path)
        except BaseException:
            for path in reversed(done):
                self._put_back(path)
            raise
        for folder in {path.parent for path in done}:
            with suppress(OSError):  # they are in place; whether they outlive a power cut is the disk's affair
                sync_folder(folder)

    def _put_back(self, path: Path) -> None:
        before = self._before[path]
        with suppress(OSError):  # the first failure is what is told
            if before is None:
                path.unlink()
            else:
                os.replace(before, path)


@contextmanager
def staged(new: Mapping[Path, bytes], before: Mapping[Path, bytes | None]) -> Iterator[StagedFiles]:
    """Write new content beside its files, and what they held `before` where several change; all of it is synced.

    They are renamed in the order of `new`. Nothing is left beside them at the end of the block.
    Raises: UsageError or LimitReached naming the file that cannot be written.
    """
    with ExitStack() as stack:
        waiting = {path.resolve(): stack.enter_context(_beside(path.resolve(), data)) for path, data in new.items()}
        held: dict[Path, Path | None] = {}
        for path in list(new) if len(new) > 1 else []:
            data = before[path]
            held[path.resolve()] = None if data is None else stack.enter_context(_beside(path.resolve(), data))
        yield StagedFiles(waiting, held)


@contextmanager
def _beside(path: Path, data: bytes) -> Iterator[Path]:
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}-{os.urandom(4).hex()}.part")
    try:
        with disk(path):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
            with open(descriptor, "wb") as file:
                _keep_mode(path, descriptor)
                file.write(data)
                file.flush()
                os.fsync(descriptor)
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _keep_mode(path: Path, descriptor: int) -> None:
    with suppress(FileNotFoundError):
        os.fchmod(descriptor, stat.S_IMODE(path.stat().st_mode))

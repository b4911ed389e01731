"""A file of the user's that a command writes: whole or not at all, over no other unasked. Knows no content."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from manifests.errors import LimitReached, SpmError, UsageError
from spm_client.store.layout import sync_folder

_MODE = 0o666  # as a program's output has it; the umask takes from it


@contextmanager
def written(output: Path, *, is_replacing: bool) -> Iterator[tuple[BinaryIO, Path]]:
    """Give a file beside `output` that takes its place at the end, or is gone after an error.

    Raises: UsageError for a file that is there and not to be replaced, or cannot be written; LimitReached.
    """
    _require_free(output, is_replacing=is_replacing)
    temporary = output.with_name(f".{output.name[:200]}.{os.getpid()}-{os.urandom(4).hex()}.part")
    with disk(output):
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
    try:
        with _closed_at_the_end(open(descriptor, "wb"), output) as file:
            yield file, temporary
        _require_free(output, is_replacing=is_replacing)
        with disk(output):
            os.replace(temporary, output)
            sync_folder(output.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


@contextmanager
def _closed_at_the_end(file: BinaryIO, output: Path) -> Iterator[BinaryIO]:
    """Close a file, which writes what is left: where that fails too, it must not hide what failed before."""
    try:
        yield file
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
    with disk(output):
        file.close()


def _require_free(output: Path, *, is_replacing: bool) -> None:
    if os.path.lexists(output) and not (is_replacing and output.is_file()):
        kind = "is there already" if output.is_file() else "is no file that could be replaced"
        raise UsageError(
            f"`{output}` {kind}", hint="name another file" + (", or `--force` replaces it" if output.is_file() else "")
        )


@contextmanager
def disk(output: Path) -> Iterator[None]:
    """Turn what the disk says of the output into refusals."""
    try:
        yield
    except OSError as error:
        raise _refusal(error, output) from error


def _refusal(error: OSError, output: Path) -> SpmError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return LimitReached(
            f"the disk under `{output.parent}` is full; `{output.name}` was not written",
            reason="limit:disk",
            hint="free some space there and run the command again",
            path=str(output),
        )
    if error.errno == errno.EFBIG:
        return LimitReached(
            f"the disk under `{output.parent}` holds no file as big as `{output.name}` would be",
            reason="limit:file-size",
            hint="write to a disk with another file system, as FAT ends at 4 GiB",
            path=str(output),
        )
    return UsageError(f"`{output}` cannot be written: {os.strerror(error.errno or 0)}", path=str(output))

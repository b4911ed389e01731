"""One bounded read of a file, with the status of the very file that was read. Judges neither."""

import os
import stat
from pathlib import Path


def read_once(path: Path, max_bytes: int) -> tuple[bytes, os.stat_result]:
    """Return at most one byte more than `max_bytes`, so that a caller sees excess; a pipe or device is never read.

    Raises: OSError.
    """
    with open(path, "rb", opener=_open_without_waiting) as file:
        status = os.fstat(file.fileno())
        data = file.read(max_bytes + 1) if stat.S_ISREG(status.st_mode) else b""
    return data, status


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)

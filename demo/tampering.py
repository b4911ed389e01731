"""What somebody with the registry's disk could do, and undoing it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def flip_a_byte(path: Path) -> Iterator[None]:
    """Change one bit in the middle of a file for a while."""
    sound, mode = path.read_bytes(), path.stat().st_mode
    middle = len(sound) // 2
    path.chmod(0o600)
    path.write_bytes(sound[:middle] + bytes([sound[middle] ^ 1]) + sound[middle + 1 :])
    try:
        yield
    finally:
        path.write_bytes(sound)
        path.chmod(mode)

"""Which generation of the store is current, and reading the store's small files. Verifies nothing, changes nothing."""

import errno
import os
from pathlib import Path

from manifests.errors import FileSetMismatch, LinkRefused, TooBig, TypeMismatch, Undecided
from manifests.lockfile import MAX_GENERATION_BYTES, Generation

_MAX_CURRENT_BYTES = 32
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def current_generation(root: Path) -> Generation:
    """Return what is installed now; a store without `current` holds nothing.

    Raises: TypeMismatch when `current` is not a number; FileSetMismatch when it names a generation that is not there.
    """
    if not os.path.lexists(root / "current"):
        return Generation(number=0, registry="none", created="never")
    number = read_bounded(root / "current", _MAX_CURRENT_BYTES).decode("ascii", "replace").removesuffix("\n")
    if len(number) != 6 or not number.isdecimal():
        raise TypeMismatch(f"{root / 'current'} says {number!r}, not the six digits of a generation", path="current")
    return Generation.from_bytes(read_bounded(root / "generations" / f"{number}.json", MAX_GENERATION_BYTES))


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a plain file of the store.

    Raises: FileSetMismatch when it is not there; LinkRefused; TooBig; Undecided when it cannot be read.
    """
    try:
        descriptor = os.open(path, _OPEN)
    except FileNotFoundError:
        raise FileSetMismatch(f"{path} is not there", paths=[str(path)]) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LinkRefused(f"{path} is a symbolic link, the store has none", path=str(path)) from error
        raise Undecided(f"{path} cannot be read: {error.strerror}", reason="unknown:content", path=str(path)) from error
    with open(descriptor, "rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise TooBig(f"{path} has more than the {max_bytes} bytes allowed", path=str(path))
    return data

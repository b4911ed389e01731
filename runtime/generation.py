"""Which generation of the store is current, and reading the store's small files. Verifies nothing, changes nothing."""

import errno
import os
import stat
from pathlib import Path

from manifests.errors import FileSetMismatch, LinkRefused, TooBig, TypeMismatch, Undecided
from manifests.lockfile import MAX_GENERATION_BYTES, Generation

_MAX_CURRENT_BYTES = 32
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def current_generation(root: Path) -> Generation:
    """Return what is installed now; a store without `current` holds nothing.

    Raises: TypeMismatch when `current` is not a number; FileSetMismatch when it names a generation that is not there.
    """
    number = current_number(root)
    while number is not None:
        try:
            return read_generation(root, number)
        except FileSetMismatch:
            # Commands may have committed and freed what was current a moment ago.
            before, number = number, current_number(root)
            if number == before:
                raise
    return Generation(number=0, registry="none", created="never")


def current_number(root: Path) -> int | None:
    """Return which generation is current; None in a store without `current`.

    Raises: TypeMismatch when `current` is not a number.
    """
    if not os.path.lexists(root / "current"):
        return None
    number = read_bounded(root / "current", _MAX_CURRENT_BYTES).decode("ascii", "replace").removesuffix("\n")
    if len(number) != 6 or not number.isdecimal():
        raise TypeMismatch(f"{root / 'current'} says {number!r}, not the six digits of a generation", path="current")
    return int(number)


def read_generation(root: Path, number: int) -> Generation:
    """Return a generation of the store.

    Raises: FileSetMismatch when it is not there; TypeMismatch when it is of another number; what
    `Generation.from_bytes` raises.
    """
    path = root / "generations" / f"{number:06d}.json"
    generation = Generation.from_bytes(read_bounded(path, MAX_GENERATION_BYTES))
    if generation.number != number:
        raise TypeMismatch(f"{path} is of generation {generation.number}, not of {number}", path=str(path))
    return generation


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Return the bytes of a plain file of the store.

    Raises: FileSetMismatch when it is not there; LinkRefused; TypeMismatch for what is no file; TooBig; Undecided when
    it cannot be read.
    """
    try:
        descriptor = os.open(path, _OPEN)
    except FileNotFoundError:
        raise FileSetMismatch(f"{path} is not there", paths=[str(path)]) from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LinkRefused(f"{path} is a symbolic link, the store has none", path=str(path)) from error
        raise Undecided(f"{path} cannot be read: {error.strerror}", reason="unknown:content", path=str(path)) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise TypeMismatch(f"{path} is no plain file", path=str(path))
    with open(descriptor, "rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise TooBig(f"{path} has more than the {max_bytes} bytes allowed", path=str(path))
    return data


def listed(folder: Path) -> list[str]:
    """Return the names in a folder of the store, sorted; none where the name of the folder itself is not there.

    Raises: LinkRefused for a link, wherever it leads; TypeMismatch for what is no folder; OSError.
    """
    try:
        mode = os.lstat(folder).st_mode
        if stat.S_ISLNK(mode):
            raise LinkRefused(f"{folder} is a symbolic link, the store has none", path=str(folder))
        if not stat.S_ISDIR(mode):
            raise TypeMismatch(f"{folder} is no folder", path=str(folder))
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []

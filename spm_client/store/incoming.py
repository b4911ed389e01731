"""A file that is being fetched: hashed as it comes, gone on with where it was cut. Fetches nothing.

What is there when it is opened is hashed once, and the digest goes on over what is appended.
"""

import errno
import hashlib
import os
from pathlib import Path

from manifests.errors import DigestMismatch, SizeMismatch
from manifests.parts import FileEntry
from spm_client.store.layout import make_folder
from spm_client.store.partial import is_own

CHUNK = 1 << 20
_ROUNDS = 64


class Measured:
    """Bytes as they come, held to a signed entry; `so` ends the message of a refusal."""

    def __init__(self, entry: FileEntry, *, what: str, so: str = "nothing was installed") -> None:
        self.entry = entry
        self.size = 0
        self._what = what
        self._so = so
        self._digest = hashlib.sha256()

    def take(self, chunk: bytes) -> None:
        """Count and hash what has come.

        Raises: SizeMismatch, at the first byte too many.
        """
        self.size += len(chunk)
        if self.size > self.entry.size:
            raise self._wrong_size(f"more than {self.entry.size}")
        self._digest.update(chunk)

    def require_whole(self) -> None:
        """Say whether it was the file that was signed.

        Raises: SizeMismatch; DigestMismatch.
        """
        if self.size != self.entry.size:
            raise self._wrong_size(str(self.size))
        if (found := self._digest.hexdigest()) != self.entry.sha256:
            raise DigestMismatch(
                f"`{self.entry.path}` of {self._what} has the digest sha256:{found}, "
                f"but the signed manifest says sha256:{self.entry.sha256}; {self._so}",
                hint="what the registry serves is not what the author signed: ask its administrator",
                path=self.entry.path,
                expected=self.entry.sha256,
                actual=found,
            )

    def begin_anew(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()

    def _wrong_size(self, actual: str) -> SizeMismatch:
        return SizeMismatch(
            f"`{self.entry.path}` of {self._what} came with {actual} bytes, "
            f"but the signed manifest says {self.entry.size}; {self._so}",
            hint="the transfer was cut or altered: run the command again, then ask the registry's administrator",
            path=self.entry.path,
            expected=self.entry.size,
        )


class Incoming:
    """The file at `path` while it comes; after SizeMismatch or DigestMismatch it is gone.

    Usage: `with Incoming(path, entry, what="`x` 1.0.0") as file: file.write(chunk); file.require_whole()`.
    """

    def __init__(self, path: Path, entry: FileEntry, *, what: str) -> None:
        self.path = path
        self._measured = Measured(entry, what=what)
        self._descriptor = _open(path)
        try:
            while chunk := os.read(self._descriptor, CHUNK):
                self._measured.take(chunk)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> "Incoming":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._descriptor)
        if kind is not None and issubclass(kind, SizeMismatch | DigestMismatch):
            self.path.unlink(missing_ok=True)

    @property
    def size(self) -> int:
        return self._measured.size

    @property
    def is_whole(self) -> bool:
        return self.size == self._measured.entry.size

    def write(self, chunk: bytes) -> None:
        """Append what has come.

        Raises: SizeMismatch, at the first byte too many.
        """
        self._measured.take(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def require_whole(self) -> None:
        """Say whether it is the file that was signed.

        Raises: SizeMismatch; DigestMismatch.
        """
        self._measured.require_whole()

    def begin_anew(self) -> None:
        """Throw away what has come."""
        self._measured.begin_anew()
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.ftruncate(self._descriptor, 0)


def _open(path: Path) -> int:
    """Open a file that may be there, without following a link; one that has another name elsewhere is left to that."""
    for _ in range(_ROUNDS):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # another command has just removed the empty folder
            make_folder(path.parent, mode=0o700)
            continue
        if is_own(os.fstat(descriptor)):
            return descriptor
        os.close(descriptor)
        path.unlink(missing_ok=True)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

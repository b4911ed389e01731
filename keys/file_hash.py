"""SHA-256 of open files at about the cost of hashing alone. Opens no file and judges none.

Small files are read into one buffer; big ones are hashed where the kernel holds them, without a copy. Touching a mapped
page that is no longer there would end the process by SIGBUS. So each piece is first asked for (`MADV_POPULATE_READ`),
which fails with an error instead; in the millisecond until it is hashed only who may write to the file could cut it.
"""

import errno
import hashlib
import mmap
import os
from functools import cache

_CHUNK = 1 << 20
_PIECE = 4 << 20
_MAPPED_FROM = 2 << 20
_MADV_POPULATE_READ = 22  # Linux 5.14; Python has no name for it


class FileHasher:
    """A buffer for many files: `digest, size = FileHasher().sha256(descriptor, expected_size)`.

    `maps_big_files` is False where the kernel cannot be asked for pages.
    """

    def __init__(self, *, maps_big_files: bool | None = None) -> None:
        self._maps_big_files = _can_populate() if maps_big_files is None else maps_big_files
        # Pages of its own: the kernel copies to an address off 32 bytes, as a bytearray's may be, at half the speed.
        self._buffer = memoryview(mmap.mmap(-1, _CHUNK))

    def sha256(self, descriptor: int, expected_size: int) -> tuple[str, int]:
        """Return the digest of an unread file, and its size; where that is not as expected, the digest says nothing.

        Raises: OSError.
        """
        if self._maps_big_files and expected_size >= _MAPPED_FROM:
            return _mapped(descriptor, expected_size)
        return self._read(descriptor, expected_size)

    def _read(self, descriptor: int, expected_size: int) -> tuple[str, int]:
        digest, size = hashlib.sha256(), 0
        while count := os.readv(descriptor, [self._buffer]):
            size += count
            # A file that grows while it is read must not keep us reading.
            if size > expected_size:
                break
            digest.update(self._buffer[:count])
        return digest.hexdigest(), size


def _mapped(descriptor: int, expected_size: int) -> tuple[str, int]:
    digest = hashlib.sha256()
    if (size := os.fstat(descriptor).st_size) != expected_size:
        return "", size
    with mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ) as pages, memoryview(pages) as view:
        for start in range(0, size, _PIECE):
            piece = min(_PIECE, size - start)
            try:
                pages.madvise(_MADV_POPULATE_READ, start, piece)
            except OSError as error:
                if (now := os.fstat(descriptor).st_size) != size:
                    return "", now
                raise OSError(errno.EIO, os.strerror(errno.EIO)) from error
            digest.update(view[start : start + piece])
    return digest.hexdigest(), os.fstat(descriptor).st_size


@cache
def _can_populate() -> bool:
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        try:
            page.madvise(_MADV_POPULATE_READ)
        except OSError:
            return False
    return True

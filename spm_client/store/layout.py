"""Where everything lies under a root, and putting a file in place at once. Holds no content."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import LimitReached, LinkRefused, PolicyDenied, SpmError, TypeMismatch
from manifests.names import PluginName


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one store."""

    root: Path

    @property
    def conf(self) -> Path:
        return self.root / "loader.conf"

    @property
    def generations(self) -> Path:
        return self.root / "generations"

    @property
    def current(self) -> Path:
        return self.root / "current"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def trust(self) -> Path:
        return self.root / "trust"

    @property
    def trust_cache(self) -> Path:
        return self.trust / "cache"

    def trust_state(self, number: int) -> Path:
        return self.trust / f"{number:06d}.json"

    def generation(self, number: int) -> Path:
        return self.generations / f"{number:06d}.json"

    @property
    def blobs(self) -> Path:
        return self.root / "blobs" / "sha256"

    def blob(self, sha256: str) -> Path:
        return self.blobs / sha256[:2] / sha256

    @property
    def trees(self) -> Path:
        return self.root / "plugins"

    def tree(self, name: PluginName, release: str) -> Path:
        return self.trees / name / release

    @property
    def manifests(self) -> Path:
        return self.root / "manifests"

    def manifest(self, sha256: str) -> Path:
        return self.manifests / sha256

    @property
    def receipts(self) -> Path:
        return self.root / "receipts"

    @property
    def host_key(self) -> Path:
        return self.root / "host.key"

    @property
    def host_public_key(self) -> Path:
        return self.root / "host.pub"

    def receipt(self, manifest_sha256: str) -> Path:
        return self.receipts / f"{manifest_sha256}.json"


def make_folder(path: Path, *, mode: int = 0o755) -> None:
    """Create a folder of the store and its parents, which no umask opens to others.

    Raises: LinkRefused for a link that leads nowhere; TypeMismatch for what is no folder; OSError.
    """
    if path.is_dir():
        return
    make_folder(path.parent)
    try:
        path.mkdir(mode=mode, exist_ok=True)
    except FileExistsError:
        if path.is_symlink() and not path.exists():
            raise LinkRefused(
                f"{path} is a symbolic link that leads nowhere, and spm has a folder there",
                hint=f"`rm {path}`, after a look at what put it there",
                path=str(path),
            ) from None
        if os.path.lexists(path) and not path.is_dir():
            raise TypeMismatch(
                f"{path} is no folder, and spm has one there",
                hint="move it elsewhere, and run the command again",
                path=str(path),
            ) from None
        raise  # another command has just removed it


def write_file(path: Path, data: bytes, *, scratch: Path, mode: int = 0o644) -> None:
    """Put a whole file in place or leave what was there: written in `scratch`, fsync'd, renamed."""
    os.replace(write_scratch(data, scratch=scratch, mode=mode), path)
    sync_folder(path.parent)


def write_scratch(data: bytes, *, scratch: Path, mode: int = 0o644) -> Path:
    """Write an fsync'd file of its own in `scratch`, which lies on the store's disk."""
    path = scratch / os.urandom(16).hex()
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return path


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def refusals(root: Path) -> Iterator[None]:
    """Turn what the disk says into refusals of spm."""
    try:
        yield
    except OSError as error:
        raise _refusal(error, root) from error


def _refusal(error: OSError, root: Path) -> SpmError:
    place = error.filename or str(root)
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return LimitReached(
            f"the disk under `{root}` is full; nothing was changed",
            reason="limit:disk",
            hint="free some space there and run the command again",
            path=str(place),
        )
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return LimitReached(
            f"no more files can be opened while working in `{root}`; nothing was changed",
            reason="limit:descriptors",
            hint="raise the limit, as in `ulimit -n 4096`",
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return PolicyDenied(
            f"the store `{root}` cannot be written: {os.strerror(error.errno)} at `{place}`",
            reason="not-writable",
            hint="run as the store's owner, or name another store with `--root`",
            path=str(place),
        )
    if error.errno == errno.EXDEV:
        return LimitReached(
            f"`{place}` lies on another disk than `{root / 'tmp'}`, and spm moves folders into place at once, which "
            "needs one disk; nothing was changed",
            reason="limit:disks",
            hint="let all of the store lie on one disk; only its folder `blobs` may be on another",
            path=str(place),
        )
    place = error.filename2 or place  # of a move, where it was to go
    return LimitReached(
        f"the store `{root}` failed: {error.strerror or error} at `{place}`", reason="limit:io", path=str(place)
    )

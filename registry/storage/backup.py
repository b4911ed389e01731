"""A whole second copy of a registry, made while it serves. Restores nothing: the copy is served as it is."""

import os
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import FileSetMismatch, SizeMismatch, UsageError
from registry.storage.blobs import Blobs, sync_folder
from registry.storage.database import Database
from registry.storage.site import Site, make_private_file, remove_parts, write_public_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """What a copy holds. Linked blobs are second names of the very same files."""

    serial: int
    releases: int
    blobs: int
    linked: int
    blob_bytes: int


def back_up(site: Site, folder: Path) -> Backup:
    """Copy a registry as it is at one moment into a new folder, which goes away again if that fails.

    Raises:
        UsageError: the folder holds something already; nothing was changed.
        ContentError: a published blob is missing or has changed.
        LimitReached: there is no room for the copy.
    """
    _make_folder(folder)
    try:
        return _copy(site, folder)
    except BaseException:
        remove_parts(folder)
        raise


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise UsageError(
            f"{folder} is not empty; nothing was written",
            hint="name a folder that does not exist yet, such as one for each day",
        )


def _copy(site: Site, folder: Path) -> Backup:
    # 1. The database first: the blobs that it names are there, since a blob comes before its row and never goes.
    database = folder / "registry.db"
    make_private_file(database, b"")
    site.database.copy_to(database)
    copy = Database.at(database)
    with copy.reading() as records:
        serial, releases, sizes = records.serial(), records.count_releases(), dict(records.blob_sizes())
    copy.close()
    _sync_file(database)
    # 2. The blobs of published releases; uploads that are still open are sent again.
    linked = _keep_blobs(site.blobs, folder, sizes)
    (folder / "uploads").mkdir(mode=0o700)
    write_public_file(folder / "loader.conf", site.loader_conf.read_text(encoding="utf-8"))
    # 3. After the database: the online key that it needs is still there, since the file keeps the one before.
    make_private_file(folder / "online.key", site.online_key.read_bytes())
    # 4. The secret last: without it a copy that was cut short cannot be served.
    make_private_file(folder / "secret", site.secret)
    sync_folder(folder)
    sync_folder(folder.absolute().parent)
    return Backup(serial=serial, releases=releases, blobs=len(sizes), linked=linked, blob_bytes=sum(sizes.values()))


def _keep_blobs(blobs: Blobs, folder: Path, sizes: dict[str, int]) -> int:
    (folder / "blobs").mkdir(mode=0o700)
    kept, linked = Blobs(folder / "blobs"), 0
    for sha256, size in sizes.items():
        _require_size(blobs, sha256, size)
        linked += kept.keep(blobs.path(sha256), sha256)
    kept.settle(frozenset(sizes))
    sync_folder(folder / "blobs")
    return linked


def _require_size(blobs: Blobs, sha256: str, size: int) -> None:
    held = blobs.size(sha256)
    if held is None:
        raise FileSetMismatch(
            f"{blobs.path(sha256)} is missing, and a published release has it",
            hint="put it back from an older backup",
            sha256=sha256,
        )
    if held != size:
        raise SizeMismatch(
            f"{blobs.path(sha256)} has {held} bytes, and a published release has it with {size}",
            hint="put it back from an older backup",
            expected=size,
            got=held,
        )


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

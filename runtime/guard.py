"""Who else could change what is installed: owners and modes of a store's folders and files. Reads no content.

A plugin is verified first and started afterwards. In between nobody may be able to exchange its files, so whatever
only root and the user who runs spm could write is accepted, and nothing else.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from manifests.errors import ConfigPermissions, LinkRefused
from manifests.lockfile import InstalledEntry


def require_guarded(root: Path, entry: InstalledEntry) -> None:
    """Hold the way to a plugin, its tree and its manifest against owners and modes. What is not there is passed over.

    Raises: ConfigPermissions naming what others may change; LinkRefused for a symbolic link on the way.
    """
    require_guarded_store(root)
    plugins = root / "plugins" / entry.name
    tree = plugins / entry.release
    receipt = root / "receipts" / f"{entry.manifest_sha256}.json"
    for path in (plugins, tree, root / "manifests" / entry.manifest_sha256, receipt):
        _require(path)
    # A link within the tree is for the tree's own verification to refuse.
    for inner, status in _below(tree):
        if not stat.S_ISLNK(status.st_mode):
            _judge(inner, status)


def require_guarded_store(root: Path) -> None:
    """Hold a store's own folders against owners and modes; the store itself may be named by a link.

    Raises: as `require_guarded`.
    """
    _require(root, may_be_link=True)
    for name in ("current", "generations", "plugins", "manifests", "receipts", "host.pub"):
        _require(root / name)
    _require_private(root / "host.key")
    require_guarded_trust(root)


def require_guarded_registry(root: Path, registry: str) -> None:
    """Hold the way to another registry's loader.conf and trust against owners and modes.

    Raises: as `require_guarded`.
    """
    _require(root / "registries")
    _require(root / "registries" / registry)


def require_guarded_trust(root: Path) -> None:
    """Hold what a store remembers of its registry against owners and modes: with it, revocations would be forgotten.

    Raises: as `require_guarded`.
    """
    trust = root / "trust"
    _require(trust)
    for inner, status in _below(trust):
        _judge(inner, status)


def _below(folder: Path | str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return  # not there, or not to be read: then its own verification says so
    for entry in entries:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        # Text: a tree may hold thousands of files, and making a Path takes longer than asking the disk.
        yield entry.path, status
        if stat.S_ISDIR(status.st_mode):
            yield from _below(entry.path)


def _require_private(path: Path) -> None:
    _require(path)
    try:
        mode = stat.S_IMODE(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if mode & 0o077:
        raise ConfigPermissions(
            f"{path} has the mode {mode:04o}: others than its owner may use the key that receipts are signed with",
            hint=f"`chmod 600 {path}`; if others had access, remove it with `host.pub` and run `spm verify`",
            path=str(path),
            mode=f"{mode:04o}",
        )


def _require(path: Path, *, may_be_link: bool = False) -> None:
    with suppress(FileNotFoundError):
        _judge(path, path.stat(follow_symlinks=may_be_link))


def _judge(path: Path | str, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise LinkRefused(f"{path} is a symbolic link, the store has none", path=str(path))
    mode = stat.S_IMODE(status.st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigPermissions(
            f"{path} has the mode {mode:04o}: its group or everyone may change what is installed",
            hint=f"`chmod go-w {path}`, after a look at what is in it",
            path=str(path),
            mode=f"{mode:04o}",
            owner=status.st_uid,
        )
    if status.st_uid not in {0, os.geteuid()}:
        raise ConfigPermissions(
            f"{path} belongs to the user {status.st_uid} (mode {mode:04o}): only root and the user who runs spm "
            f"({os.geteuid()}) may change what is installed",
            hint=f"`sudo chown root {path}`, after a look at what is in it",
            path=str(path),
            mode=f"{mode:04o}",
            owner=status.st_uid,
        )

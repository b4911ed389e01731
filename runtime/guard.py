"""Who else could change what is installed: owners and modes of a store's folders and files. Reads no content.

A plugin is verified first and started afterwards. In between nobody may be able to exchange its files, so whatever
only root and the user who runs spm could write is accepted, and nothing else.
"""

import os
import stat
from collections.abc import Iterator
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
    for path in (plugins, tree, root / "manifests" / entry.manifest_sha256):
        _require(path)
    # A link within the tree is for the tree's own verification to refuse.
    for path in _below(tree):
        if not path.is_symlink():
            _require(path)


def require_guarded_store(root: Path) -> None:
    """Hold a store's own folders against owners and modes; the store itself may be named by a link.

    Raises: as `require_guarded`.
    """
    _require(root, may_be_link=True)
    for name in ("current", "generations", "plugins", "manifests"):
        _require(root / name)


def _below(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder):
        yield from (Path(at, name) for name in (*folders, *files))


def _require(path: Path, *, may_be_link: bool = False) -> None:
    try:
        status = path.stat() if may_be_link else path.lstat()
    except FileNotFoundError:
        return
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

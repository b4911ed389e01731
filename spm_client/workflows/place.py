"""Putting verified plugins in their place, all or none: an undo for each step until the commit. Decides nothing."""

import ctypes
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from keys.verified import VerifiedManifest, verify_tree
from manifests.errors import SpmError
from manifests.lockfile import InstalledEntry
from spm_client.store.blobs import adopt, lay_out
from spm_client.store.layout import Layout, make_folder
from spm_client.store.staging import is_shared, remove_tree


def is_sound(layout: Layout, verified: VerifiedManifest) -> bool:
    """Tell whether the store holds this release whole. A damaged tree counts as absent, so it is laid out anew."""
    manifest = verified.manifest
    tree = layout.tree(manifest.name, manifest.release)
    if not tree.is_dir() or not (layout.manifest(verified.sha256) / "manifest.json").is_file():
        return False
    try:
        verify_tree(verified, tree)
    except SpmError:
        return False
    return True


class Placement:
    """Blobs, manifests and trees moved into place; left again unless `keep` is called.

    Usage: `with Placement(layout, scratch) as placement: placement.put(...); placement.keep()`.
    """

    def __init__(self, layout: Layout, scratch: Path) -> None:
        self._layout = layout
        self._scratch = scratch
        self._undo = ExitStack()

    def __enter__(self) -> "Placement":
        return self

    def __exit__(self, *_: object) -> None:
        # Another command may by now rely on what was put here; sound trees that nothing names are freed later.
        if is_shared(self._layout, self._scratch):
            self.keep()
        self._undo.close()

    def keep(self) -> None:
        self._undo.pop_all()

    def put(self, verified: VerifiedManifest, blob_of: dict[str, Path]) -> None:
        """Lay one release out in scratch, check it there, and move it in."""
        manifest = verified.manifest
        staged = self._scratch / f"{manifest.name}-{verified.sha256}"
        lay_out(manifest.files, blob_of, staged)
        verify_tree(verified, staged)
        for entry in manifest.files:
            self._adopt(entry.sha256, blob_of)
        self._move(self._manifest_folder(verified), self._layout.manifest(verified.sha256))
        self._move(staged, self._layout.tree(manifest.name, manifest.release))

    def settle(self) -> None:
        """Have the disk hold everything before the commit names it: one syncfs(2) instead of an fsync a file."""
        descriptor = os.open(self._layout.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self._layout.root))
        finally:
            os.close(descriptor)

    def _adopt(self, sha256: str, blob_of: dict[str, Path]) -> None:
        place = self._layout.blob(sha256)
        if blob_of[sha256] == place:
            return
        self._make_parents(place)
        was_there = place.exists()
        adopt(self._layout, sha256, blob_of[sha256])
        blob_of[sha256] = place
        if not was_there:
            self._undo.callback(place.unlink, missing_ok=True)

    def _manifest_folder(self, verified: VerifiedManifest) -> Path:
        folder = self._scratch / f"manifest-{verified.sha256}"
        folder.mkdir()
        for name, data in {"manifest.json": verified.data, **verified.signatures}.items():
            (folder / name).write_bytes(data)
        return folder

    def _move(self, source: Path, place: Path) -> None:
        """Rename a folder into place; what lies there, damaged, is put aside and comes back on undo."""
        self._make_parents(place)
        if os.path.lexists(place):
            aside = self._scratch / f"aside-{source.name}"
            os.rename(place, aside)
            self._undo.callback(os.rename, aside, place)
        os.rename(source, place)
        self._undo.callback(_discard(place))

    def _make_parents(self, place: Path) -> None:
        missing = []
        for folder in place.parents:
            if folder.is_dir() or folder == self._layout.root:
                break
            missing.append(folder)
        make_folder(place.parent)
        for folder in reversed(missing):
            self._undo.callback(_remove_if_empty, folder)


def remove_trees(gone: tuple[InstalledEntry, ...], layout: Layout, scratch: Path) -> None:
    """Remove releases that no generation names; their paths are made of checked names, never of a plugin's own data."""
    if is_shared(layout, scratch):
        return
    for entry in gone:
        for folder in (layout.tree(entry.name, entry.release), layout.manifest(entry.manifest_sha256)):
            if folder.is_dir():
                aside = scratch / f"{entry.manifest_sha256}-{folder.parent.name}"
                folder.rename(aside)
                remove_tree(aside)
        _remove_if_empty(layout.tree(entry.name, entry.release).parent)


def _discard(place: Path) -> Callable[[], None]:
    return lambda: remove_tree(place)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return

"""Putting verified plugins in their place, all or none: an undo for each step until the commit. Decides nothing."""

import ctypes
import errno
import os
from contextlib import ExitStack
from pathlib import Path

from keys.verified import VerifiedManifest, verify_tree
from manifests.errors import SpmError
from manifests.lockfile import InstalledEntry
from runtime.generation import current_generation, read_bounded
from spm_client.store.blobs import adopt, lay_out
from spm_client.store.generations import newest_number
from spm_client.store.layout import Layout, make_folder
from spm_client.store.receipts import StampClock, write_receipt
from spm_client.store.staging import is_shared, remove_tree

_ROUNDS = 64


def is_sound(layout: Layout, verified: VerifiedManifest) -> bool:
    """Tell whether the store holds this release whole. A damaged tree counts as absent, so it is laid out anew."""
    manifest = verified.manifest
    tree = layout.tree(manifest.name, manifest.release)
    if not _has_manifest(layout.manifest(verified.sha256), verified):
        return False
    try:
        verify_tree(verified, tree)
    except SpmError:
        return False
    return True


def _has_manifest(folder: Path, verified: VerifiedManifest) -> bool:
    files = _manifest_files(verified)
    try:
        return set(os.listdir(folder)) == set(files) and all(
            read_bounded(folder / name, len(data)) == data for name, data in files.items()
        )
    except (FileNotFoundError, NotADirectoryError, SpmError):
        return False


def _manifest_files(verified: VerifiedManifest) -> dict[str, bytes]:
    return {"manifest.json": verified.data, **verified.signatures}


class Placement:
    """Blobs, manifests and trees moved into place; left again unless `keep` is called.

    Usage: `with Placement(layout, scratch) as placement: placement.put(...); placement.keep()`.
    """

    def __init__(self, layout: Layout, scratch: Path) -> None:
        self._layout = layout
        self._scratch = scratch
        self._number = newest_number(layout)
        self._undo = ExitStack()

    def __enter__(self) -> "Placement":
        return self

    def __exit__(self, *_: object) -> None:
        # Another command may by now rely on what was put here; sound trees that nothing names are freed later.
        if _may_be_needed(self._layout, self._scratch, self._number):
            self.keep()
        self._undo.close()

    def keep(self) -> None:
        self._undo.pop_all()

    def put(self, verified: VerifiedManifest, blob_of: dict[str, Path]) -> None:
        """Lay one release out in scratch, check it there, and move it in, unless another command just has."""
        if is_sound(self._layout, verified):
            return
        manifest = verified.manifest
        staged = self._scratch / f"{manifest.name}-{verified.sha256}"
        lay_out(manifest.files, blob_of, staged)
        verify_tree(verified, staged)
        for entry in manifest.files:
            self._adopt(entry.sha256, blob_of)
        self._move(self._manifest_folder(verified), self._layout.manifest(verified.sha256))
        self._move(staged, self._layout.tree(manifest.name, manifest.release))

    def vouch(self, verified: VerifiedManifest) -> None:
        """Hash a release in its place and write its receipt: when it was staged, its stamps were still to change."""
        tree = self._layout.tree(verified.manifest.name, verified.manifest.release)
        with StampClock(self._scratch) as clock:
            plugin = verify_tree(verified, tree, is_settled=clock.is_settled)
        if not plugin.stamps:
            return
        receipt = self._layout.receipt(verified.sha256)
        self._make_parents(receipt)
        for path in (self._layout.host_key, self._layout.host_public_key, receipt):
            if not os.path.lexists(path):
                self._undo.callback(path.unlink, missing_ok=True)
        write_receipt(self._layout, plugin, self._scratch)

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
        folder.mkdir(mode=0o755)
        for name, data in _manifest_files(verified).items():
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o644)  # whatever the umask
        return folder

    def _move(self, source: Path, place: Path) -> None:
        """Rename a folder into place; what lies there, damaged, is put aside and comes back on undo."""
        self._make_parents(place)
        for _ in range(_ROUNDS):
            self._put_aside(place)
            try:
                os.rename(source, place)
            except OSError as error:
                # Another command has just put its own there.
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
                continue
            self._undo.callback(_take_away, [place], self._layout, self._scratch, self._number)
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))

    def _put_aside(self, place: Path) -> None:
        aside = self._scratch / f"aside-{os.urandom(8).hex()}"
        try:
            os.rename(place, aside)
        except FileNotFoundError:
            return
        self._undo.callback(_put_back, aside, place)

    def _make_parents(self, place: Path) -> None:
        missing = []
        for folder in place.parents:
            if folder.is_dir() or folder == self._layout.root:
                break
            missing.append(folder)
        for folder in reversed(missing):
            self._undo.callback(_remove_if_empty, folder)
        make_folder(place.parent)


def remove_trees(gone: tuple[InstalledEntry, ...], layout: Layout, scratch: Path) -> None:
    """Remove releases that no generation names; their paths are made of checked names, never of a plugin's own data."""
    standing = current_generation(layout.root)
    if is_shared(layout, scratch):
        return
    unnamed = [
        entry for entry in gone if entry.manifest_sha256 not in {one.manifest_sha256 for one in standing.plugins}
    ]
    places = [(layout.tree(entry.name, entry.release), layout.manifest(entry.manifest_sha256)) for entry in unnamed]
    _take_away([place for pair in places for place in pair], layout, scratch, standing.number)
    for tree, manifest in places:
        _remove_if_empty(tree.parent)
        if not manifest.exists():
            layout.receipt(manifest.name).unlink(missing_ok=True)


def _take_away(places: list[Path], layout: Layout, scratch: Path, number: int) -> None:
    """Remove folders, or leave them where another command may have seen them.

    A command shows itself by its scratch folder before it looks at anything, and what it did by a generation newer
    than `number`. So where neither is there after the renames, nobody has seen what is gone.
    """
    moved = [(place, scratch / f"gone-{os.urandom(8).hex()}") for place in places if place.is_dir()]
    for place, aside in moved:
        place.rename(aside)
    is_needed = _may_be_needed(layout, scratch, number)
    for place, aside in moved:
        if is_needed:
            _put_back(aside, place)
        remove_tree(aside)


def _may_be_needed(layout: Layout, scratch: Path, number: int) -> bool:
    """Tell whether another command is at work, or was and has committed since generation `number`."""
    # In this order: a command that ends between the two looks has committed before the second.
    return is_shared(layout, scratch) or newest_number(layout) != number


def _put_back(aside: Path, place: Path) -> None:
    if not os.path.lexists(place):
        aside.rename(place)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return

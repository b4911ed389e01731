"""Putting verified plugins in their place, all or none: an undo for each step until the commit. Decides nothing."""

import ctypes
import errno
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from keys.verified import VerifiedManifest, verify_tree
from manifests.errors import SpmError
from runtime.generation import read_bounded
from runtime.in_use import Running, excluded, seized
from spm_client.store.blobs import adopt, lay_out
from spm_client.store.generations import newest_number
from spm_client.store.layout import Layout, make_folder
from spm_client.store.receipts import StampClock, write_receipt
from spm_client.workflows.history import manifests_of
from spm_client.workflows.take_away import may_be_needed, put_back, remove_if_empty, remove_trees, take_away

__all__ = ["Placement", "is_sound", "remove_trees"]

_ROUNDS = 64
_IN_THE_WAY = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}


def is_sound(layout: Layout, verified: VerifiedManifest) -> bool:
    """Tell whether the store holds this release whole. A damaged tree counts as absent, so it is laid out anew."""
    return _has_manifest(layout, verified) and _has_tree(layout, verified)


def _has_manifest(layout: Layout, verified: VerifiedManifest) -> bool:
    folder, files = layout.manifest(verified.sha256), _manifest_files(verified)
    try:
        return set(os.listdir(folder)) == set(files) and all(
            read_bounded(folder / name, len(data)) == data for name, data in files.items()
        )
    except (FileNotFoundError, NotADirectoryError, SpmError):
        return False


def _has_tree(layout: Layout, verified: VerifiedManifest) -> bool:
    try:
        verify_tree(verified, layout.tree(verified.manifest.name, verified.manifest.release))
    except SpmError:
        return False
    return True


def _manifest_files(verified: VerifiedManifest) -> dict[str, bytes]:
    return {"manifest.json": verified.data, **verified.signatures}


class Placement:
    """Blobs, manifests and trees moved into place; left again unless `keep` is called.

    Usage: `with Placement(layout, scratch) as placement: placement.put(...); placement.keep()`.
    `is_known_idle` says that no host runs what is damaged and replaced, for disks that cannot tell.
    """

    def __init__(self, layout: Layout, scratch: Path, *, is_known_idle: bool = False) -> None:
        self._layout = layout
        self._scratch = scratch
        self._is_known_idle = is_known_idle
        self._number = newest_number(layout)
        self._folders: set[Path] = set()
        self._undo = ExitStack()

    def __enter__(self) -> "Placement":
        return self

    def __exit__(self, *_: object) -> None:
        # Another command may by now rely on what was put here; sound trees that nothing names are freed later.
        if may_be_needed(self._layout, self._scratch, self._number):
            self.keep()
        self._undo.close()

    def keep(self) -> None:
        self._undo.pop_all()

    def put(self, verified: VerifiedManifest, blob_of: dict[str, Path]) -> None:
        """Lay one release out in scratch, check it there, and move it in, unless another command just has.

        Raises: InUse where a host runs what lies there damaged; Undecided where the disk cannot tell.
        """
        manifest = verified.manifest
        staged = self._scratch / f"{manifest.name}-{verified.sha256}"
        lay_out(manifest.files, blob_of, staged)
        verify_tree(verified, staged)
        for entry in manifest.files:
            self._adopt(entry.sha256, blob_of)
        for source, place, is_there in (
            (self._manifest_folder(verified), self._layout.manifest(verified.sha256), _has_manifest),
            (staged, self._layout.tree(manifest.name, manifest.release), _has_tree),
        ):
            self._move(source, place, verified, is_there)

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
        """Have the disks hold everything before the commit names it: one syncfs(2) each instead of an fsync a file."""
        disks: dict[int, int] = {}
        with ExitStack() as opened:
            for folder in (self._layout.root, self._layout.blobs):
                if folder.is_dir():
                    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                    opened.callback(os.close, descriptor)
                    disks[os.fstat(descriptor).st_dev] = descriptor
            for descriptor in disks.values():
                if ctypes.CDLL(None, use_errno=True).syncfs(descriptor):
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(self._layout.root))

    def _adopt(self, sha256: str, blob_of: dict[str, Path]) -> None:
        place, source = self._layout.blob(sha256), blob_of[sha256]
        if source == place:
            return
        was_there = place.exists()
        self._with_parents(place, lambda: adopt(self._layout, sha256, source))
        blob_of[sha256] = place
        if not was_there:
            self._undo.callback(_move_back, place, source)

    def _manifest_folder(self, verified: VerifiedManifest) -> Path:
        folder = self._scratch / f"manifest-{verified.sha256}"
        folder.mkdir(mode=0o755)
        for name, data in _manifest_files(verified).items():
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o644)  # whatever the umask
        return folder

    def _move(
        self,
        source: Path,
        place: Path,
        verified: VerifiedManifest,
        is_there: Callable[[Layout, VerifiedManifest], bool],
    ) -> None:
        """Rename a folder into place, unless it is there already; what lies there, damaged, comes back on undo."""
        for _ in range(_ROUNDS):
            if os.path.lexists(place):
                if is_there(self._layout, verified):
                    return
                self._put_aside(place, verified)
            try:
                self._with_parents(place, lambda: os.rename(source, place))
            except OSError as error:
                # Another command has just put its own there.
                if error.errno not in _IN_THE_WAY or not os.path.lexists(place):
                    raise
                continue
            self._undo.callback(self._leave, place, verified.sha256)
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))

    def _put_aside(self, place: Path, verified: VerifiedManifest) -> None:
        aside = self._scratch / f"aside-{os.urandom(8).hex()}"
        name = f"`{verified.manifest.name}` {verified.manifest.release}"
        shown = dict.fromkeys({verified.sha256, *manifests_of(self._layout, verified.manifest)}, name)
        with excluded(self._layout.root, shown, is_known_idle=self._is_known_idle):
            try:
                os.rename(place, aside)
            except FileNotFoundError:
                return
        self._undo.callback(put_back, aside, place)

    def _leave(self, place: Path, sha256: str) -> None:
        """Take away what was put here, unless a host or a command has it by now."""
        with seized(self._layout.root, sha256) as host:
            if not isinstance(host, Running):
                take_away([place], self._layout, self._scratch, self._number)

    def _with_parents(self, place: Path, act: Callable[[], None]) -> None:
        """Act once the folders above a place are there; again where another command has just removed an empty one."""
        for _ in range(_ROUNDS):
            self._make_parents(place)
            try:
                return act()
            except FileNotFoundError:
                if place.parent.is_dir():
                    raise
                self._folders.clear()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place.parent))

    def _make_parents(self, place: Path) -> None:
        if place.parent in self._folders:
            return
        missing = []
        for folder in place.parents:
            if folder.is_dir() or folder == self._layout.root:
                break
            missing.append(folder)
        for folder in reversed(missing):
            self._undo.callback(remove_if_empty, folder)
        make_folder(place.parent)
        self._folders.add(place.parent)


def _move_back(place: Path, source: Path) -> None:
    """Give a blob back to whoever fetched it: what is fetched may be worth keeping though it was not installed."""
    try:
        os.replace(place, source)
    except OSError:
        place.unlink(missing_ok=True)

"""A command's own scratch folder in the store, gone when the command is, whatever ends it. Commits nothing."""

import errno
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spm_client.store.layout import Layout, make_folder
from spm_client.store.partial import settle

_ROUNDS = 64


@contextmanager
def staging(layout: Layout) -> Iterator[Path]:
    """Give a fresh folder on the store's own disk; remove it at the end, and what killed commands have left."""
    folder = _own_folder(layout)
    try:
        sweep(layout, folder)
        yield folder
    except BaseException as error:
        settle(layout, folder.name, error)
        raise
    finally:
        # What cannot be removed, as a file that somebody made immutable, undoes no command: it is swept another time.
        with suppress(OSError):
            remove_tree(folder)
        _leave(layout)


def sweep(layout: Layout, scratch: Path) -> None:
    """Remove the scratch folders of commands that are no more; `scratch` is this command's own."""
    for folder in layout.tmp.iterdir():
        if folder.is_dir() and not folder.is_symlink() and _is_left(folder.name):
            claimed = scratch / folder.name
            with suppress(FileNotFoundError):  # another command has claimed it first
                folder.rename(claimed)
                try:
                    remove_tree(claimed)
                except OSError:
                    claimed.rename(folder)


def _own_folder(layout: Layout) -> Path:
    folder = layout.tmp / f"{_place()}.{os.getpid()}-{_started(os.getpid())}.{os.urandom(4).hex()}"
    try:
        for _ in range(_ROUNDS):
            with suppress(FileNotFoundError, FileExistsError):  # another command has just removed the empty `tmp`
                make_folder(layout.tmp)
                folder.mkdir(mode=0o700)
                return folder
    except BaseException:
        _leave(layout)
        raise
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(folder))


def _leave(layout: Layout) -> None:
    with suppress(OSError):  # another command may be at work in it
        layout.tmp.rmdir()


def is_shared(layout: Layout, scratch: Path) -> bool:
    """Tell whether another command is at work in the store; `scratch` lies in this command's own folder."""
    return bool(at_work(layout, scratch))


def at_work(layout: Layout, scratch: Path) -> list[Path]:
    """Return the scratch folders of other commands; `scratch` lies in this command's own one."""
    own = scratch.relative_to(layout.tmp).parts[0]
    return sorted(layout.tmp / name for name in os.listdir(layout.tmp) if name != own and not _is_left(name))


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours, read-only parts included. Links are removed, never followed.

    By path, with one descriptor at a time: it must also work where no more can be opened.
    """
    if not folder.is_dir() or folder.is_symlink():
        return
    os.chmod(folder, 0o700)
    # Each folder before it is walked: one that cannot be read would be passed over.
    for path, folders, _ in os.walk(folder):
        for inner in folders:
            if not os.path.islink(os.path.join(path, inner)):
                os.chmod(os.path.join(path, inner), 0o700)
    for path, folders, files in os.walk(folder, topdown=False):
        links = [name for name in folders if os.path.islink(os.path.join(path, name))]
        for name in (*files, *links):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)


def _place() -> str:
    """Name where process ids mean what they mean here: this host, and in it this pid namespace of a container."""
    host = socket.gethostname().replace(".", "-")
    try:
        return f"{host}-{os.stat('/proc/self/ns/pid').st_ino}"
    except FileNotFoundError:
        return host


def _is_left(name: str) -> bool:
    """Tell whether a scratch folder's process is no more. A process id alone is used again after some time."""
    owner = re.fullmatch(rf"{re.escape(_place())}\.([0-9]{{1,10}})-([0-9]{{1,20}})\.[0-9a-f]{{8}}", name)
    return owner is not None and _started(int(owner[1])) != owner[2]


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since boot (proc(5), stat field 22); empty where it is no more."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]

"""A command's own scratch folder in the store, gone when the command is, whatever ends it. Commits nothing."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spm_client.store.layout import Layout


@contextmanager
def staging(layout: Layout) -> Iterator[Path]:
    """Give a fresh folder on the store's own disk; remove it at the end, and what killed commands have left."""
    sweep(layout)
    layout.tmp.mkdir(parents=True, exist_ok=True)
    folder = layout.tmp / f"{_owner()}.{os.urandom(4).hex()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        remove_tree(folder)
        with suppress(OSError):  # another command may be at work in it
            layout.tmp.rmdir()


def sweep(layout: Layout) -> None:
    """Remove the scratch folders of commands that are no more."""
    if not layout.tmp.is_dir():
        return
    for folder in layout.tmp.iterdir():
        host, _, owner = folder.name.partition(".")
        if host == _host() and not _is_alive(owner):
            remove_tree(folder)


def is_shared(layout: Layout, scratch: Path) -> bool:
    """Tell whether another command is at work in the store; `scratch` lies in this command's own folder."""
    own = scratch.relative_to(layout.tmp).parts[0]
    return any(folder.name != own for folder in layout.tmp.iterdir())


def remove_tree(folder: Path) -> None:
    """Remove a folder of ours, read-only parts included. Links are removed, never followed."""
    if not folder.is_dir() or folder.is_symlink():
        return
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder)


def _host() -> str:
    return socket.gethostname().replace(".", "-")


def _owner() -> str:
    """Name this process for good: a process id alone is used again after some time."""
    return f"{_host()}.{os.getpid()}-{_started(os.getpid())}"


def _is_alive(owner: str) -> bool:
    pid, _, started = owner.partition(".")[0].partition("-")
    return pid.isdecimal() and _started(int(pid)) == started


def _started(pid: int) -> str:
    """Return when a process started, in clock ticks since boot (proc(5), stat field 22); empty where it is no more."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]

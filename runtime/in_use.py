"""The mark that a host runs a plugin: a shared flock(2) on its manifest, gone with the process. Removes nothing.

A host marks a plugin before it verifies it. Who wants to take a tree away asks for the exclusive lock, and has it only
where no host has marked the plugin; while it is held no host begins. Commands hold it for an instant, hosts for as long
as their instance lives, so that whoever finds another command there waits. On a disk without such locks a host runs
unmarked, and whoever asks learns that it cannot be told.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import InUse, LimitReached, Undecided

_PATIENCE_SECONDS = 1.0
"""How long to wait for a lock whose holder /proc/locks does not show: a host in another container, or a command."""
_COMMAND_PATIENCE_SECONDS = 30.0
"""How long to wait for a command that is seen to hold it; on an idle machine it does so for less than a millisecond."""
_HOST_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.005
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP}
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class Idle:
    """No host runs it, and none begins to for now."""


@dataclass(frozen=True, slots=True)
class Running:
    """Hosts run it: their process ids, none where they cannot be seen from here."""

    processes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Untold:
    """The disk has no file locks: what it said."""

    why: str


Standing = Idle | Running | Untold


def mark(root: Path, manifests: Iterable[str], marks: ExitStack) -> None:
    """Mark plugins, by the digests of their manifests, as run by this process until `marks` is closed.

    Raises: LimitReached when another command holds one for seconds, or no more files can be opened; Undecided.
    """
    for sha256 in manifests:
        path = _path(root, sha256)
        try:
            while not _is_marked(path, marks):
                pass  # the file has just been replaced: mark the new one
        except OSError as error:
            if error.errno in {errno.EMFILE, errno.ENFILE}:
                raise _no_descriptors(path) from error
            # Its verification says what is amiss.


@contextmanager
def seized(root: Path, sha256: str) -> Iterator[Standing]:
    """Keep hosts from beginning to run a plugin meanwhile, and tell whether one does; none runs a lost manifest."""
    path = _path(root, sha256)
    try:
        descriptor = os.open(path, _OPEN)
    except (FileNotFoundError, NotADirectoryError):
        yield Idle()
        return
    try:
        yield _seize(descriptor)
    finally:
        _release(descriptor)


@contextmanager
def excluded(root: Path, shown: Mapping[str, str], *, is_known_idle: bool = False) -> Iterator[None]:
    """Keep hosts from running plugins meanwhile. `shown` has a plugin's name for people by its manifest's digest.

    Raises: InUse where a host runs one; Undecided where the disk cannot tell, unless it `is_known_idle`.
    """
    run: dict[str, tuple[int, ...]] = {}
    with ExitStack() as stack:
        # In one order, so that two commands never wait for each other.
        for sha256 in sorted(shown):
            match stack.enter_context(seized(root, sha256)):
                case Running(processes):
                    run[shown[sha256]] = processes
                case Untold(why) if not is_known_idle:
                    raise _untold(root, shown[sha256], why)
        if run:
            raise _in_use(run)
        yield


def described(processes: tuple[int, ...]) -> str:
    """Return hosts in words."""
    if not processes:
        return "a host that cannot be seen from here, as in another container or on another machine"
    noun = "process" if len(processes) == 1 else "processes"
    return f"{noun} {', '.join(f'{process}{_command(process)}' for process in processes)}"


def _path(root: Path, sha256: str) -> Path:
    return root / "manifests" / sha256 / "manifest.json"


def _is_marked(path: Path, marks: ExitStack) -> bool:
    """Lock the file, and tell whether it still is the one that the path names."""
    descriptor = os.open(path, _OPEN)
    # Unlocked, not only closed: a process that was forked off meanwhile has a copy of the descriptor.
    marks.callback(_release, descriptor)
    _share(descriptor, path)
    return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))


def _share(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + _HOST_PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise _held(path) from None
            time.sleep(_PAUSE_SECONDS)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise Undecided(f"{path} cannot be locked: {error.strerror}", reason="unknown:in-use") from error
            return
        else:
            return


def _seize(descriptor: int) -> Standing:
    began = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hosts = _holders(descriptor, "READ")
            patience = _COMMAND_PATIENCE_SECONDS if _holders(descriptor, "WRITE") else _PATIENCE_SECONDS
            if hosts or time.monotonic() > began + patience:
                return Running(hosts)
            time.sleep(_PAUSE_SECONDS)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return Untold(error.strerror or str(error))
        else:
            return Idle()


def _release(descriptor: int) -> None:
    with suppress(OSError):  # on a disk without locks
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _holders(descriptor: int, how: str) -> tuple[int, ...]:
    """Return who has a file locked (proc(5), /proc/locks): READ as hosts do, WRITE as commands; as far as visible."""
    status = os.fstat(descriptor)
    place = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return ()
    locks = [line.split() for line in lines]
    return tuple(sorted({int(lock[4]) for lock in locks if [*lock[1:4:2], *lock[5:6]] == ["FLOCK", how, place]}))


def _command(process: int) -> str:
    try:
        return f" ({Path(f'/proc/{process}/comm').read_text(encoding='utf-8', errors='replace').strip()})"
    except OSError:
        return ""


def _in_use(run: Mapping[str, tuple[int, ...]]) -> InUse:
    plugins = sorted(run)
    processes = tuple(sorted({process for found in run.values() for process in found}))
    subject = f"{', '.join(plugins)} {'is' if len(plugins) == 1 else 'are'}"
    return InUse(
        f"{subject} run by {described(processes)}; nothing was changed",
        hint="end that host, or close what it has loaded, and run the command again",
        plugins=plugins,
        processes=list(processes),
    )


def _untold(root: Path, shown: str, why: str) -> Undecided:
    return Undecided(
        f"whether a host runs {shown} cannot be told: the disk under `{root}` has no file locks ({why}); "
        "nothing was changed",
        reason="unknown:in-use",
        hint="if you know that none runs it, run the command again with `--not-running`",
    )


def _held(path: Path) -> LimitReached:
    return LimitReached(
        f"{path} was held by another command for {_HOST_PATIENCE_SECONDS:.0f} seconds",
        reason="limit:races",
        hint="load it again; if it stays so, look for an `spm` that was stopped",
    )


def _no_descriptors(path: Path) -> LimitReached:
    return LimitReached(
        f"no more files can be opened to mark {path} as run",
        reason="limit:descriptors",
        hint="raise the limit, as in `ulimit -n 4096`",
    )

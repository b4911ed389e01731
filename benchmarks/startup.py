"""How long the commands take to start, beside a bare interpreter: `python benchmarks/startup.py`. Judges nothing else.

Each round runs every command once, so that a busy moment of the machine falls on all of them alike. Prints the median
of the rounds, its ratio to the bare interpreter's, and the noise: from the lower to the upper quartile.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from manifests.devices import parse_affinity
from manifests.lockfile import Bindings, Generation, InstalledEntry
from manifests.names import PluginName
from manifests.plugin_type import PluginType
from manifests.versions import Version

PLUGINS = 50
BARS_MS = {"spm --version": 60.0, "spm list": 80.0}
BARE = "bare interpreter"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60, help="runs of each command (default: 60)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_store(root)
        commands = commands_on(root)
        for command in commands.values():
            run(command)  # The first run writes compiled modules; it is not counted.
        samples = measure(commands, rounds)
    print(table(samples))
    return 1 if over_the_bar(samples) else 0


def commands_on(root: Path) -> dict[str, list[str]]:
    spm = str(Path(sys.executable).parent / "spm")
    return {
        BARE: [sys.executable, "-c", "pass"],
        "import argparse": [sys.executable, "-c", "import argparse"],
        "spm --version": [spm, "--version"],
        "spm list": [spm, "--root", str(root), "list"],
    }


def write_store(root: Path) -> None:
    """Write a store whose current generation has fifty plugins, each bound to a device."""
    plugins = tuple(
        InstalledEntry(
            name=PluginName(f"plugin-{place:02}"),
            version=Version.parse(f"1.{place}.0"),
            release=f"1.{place}.0+linux-x86_64-torch2.13.0",
            manifest_sha256=f"{place:064x}",
            type=PluginType.EXT,
            keyids=("ab" * 32,),
            requested=place % 2 == 0,
            requires=(PluginName(f"plugin-{place - 1:02}"),) if place % 2 else (),
            bindings=Bindings(affinity=parse_affinity(["cpu"])),
        )
        for place in range(PLUGINS)
    )
    made = Generation(number=1, registry="team.example", created="2026-01-31T12:00:00Z", plugins=plugins)
    (root / "generations").mkdir()
    (root / "generations" / "000001.json").write_bytes(made.to_bytes())
    (root / "current").write_text("000001\n")


def measure(commands: Mapping[str, list[str]], rounds: int) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            samples[name].append(run(command))
    return samples


def run(command: list[str]) -> float:
    """Run a command and return its milliseconds from start to exit."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1000


def table(samples: Mapping[str, list[float]]) -> str:
    bare = statistics.median(samples[BARE])
    rows = [f"{'COMMAND':<18}{'MEDIAN ms':>10}{'RATIO':>8}{'NOISE ms':>16}{'BAR ms':>8}"]
    for name, values in samples.items():
        low, median, high = statistics.quantiles(values, n=4)
        bar = f"{BARS_MS[name]:.0f}" if name in BARS_MS else "-"
        rows.append(f"{name:<18}{median:>10.1f}{median / bare:>8.2f}{f'{low:.1f} to {high:.1f}':>16}{bar:>8}")
    rounds = len(samples[BARE])
    return "\n".join(
        [*rows, f"{rounds} rounds, {PLUGINS} plugins, Python {sys.version.split()[0]}, {os.cpu_count()} cpus"]
    )


def over_the_bar(samples: Mapping[str, list[float]]) -> list[str]:
    return [name for name, bar in BARS_MS.items() if statistics.median(samples[name]) > bar]


if __name__ == "__main__":
    sys.exit(main())

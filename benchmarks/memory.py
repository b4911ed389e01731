"""Peak memory of the everyday commands, beside uv's and pip's: `python -m benchmarks.memory --peers DIR`. No times.

What an install takes is in the tables of `benchmarks.install`. Each of these commands is one process, and a bare
interpreter is what all that is written in Python begins with.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.machine import Words, bare_samples, clean_environment, cost, noise
from benchmarks.peers import Peers, add_option, peers_of
from benchmarks.startup import BARE, PLUGINS, write_store

SPM = str(Path(sys.executable).parent / "spm")
COLUMN = 20
Row = list[float] | str
"""The peaks of a command; or why there are none."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each command (default: 5)")
    options = parser.parse_args()
    peers, before = peers_of(options.peers), bare_samples()
    with tempfile.TemporaryDirectory() as folder:
        write_store(Path(folder))
        rows: dict[str, Row] = {name: measure(words, options.rounds) for name, words in own(Path(folder)).items()}
    for name, (distribution, words) in others(peers).items():
        absence = peers.absence(distribution)
        rows[name] = f"absent: {absence}" if absence else measure(words, options.rounds)
    print(table(rows))
    print(f"{options.rounds} rounds, {PLUGINS} plugins in spm's store\n{noise(before)}")
    return 0


def own(root: Path) -> dict[str, Words]:
    return {
        BARE: [sys.executable, "-c", "pass"],
        "spm --version": [SPM, "--version"],
        "spm list": [SPM, "--root", root, "list"],
        "spm list --json": [SPM, "--root", root, "list", "--json"],
    }


def others(peers: Peers) -> dict[str, tuple[str, Words]]:
    """Return what the peers have for the same, each with the distribution that it is of."""
    uv, pip = peers.command("uv"), [peers.python, "-m", "pip", "--disable-pip-version-check"]
    return {
        "uv --version": ("uv", [uv, "--version"]),
        "uv pip list": ("uv", [uv, "pip", "list", "--python", peers.python]),
        "pip --version": ("pip", [*pip, "--version"]),
        "pip list": ("pip", [*pip, "list"]),
        "kernels --help": ("kernels", [peers.command("kernels"), "--help"]),
    }


def measure(words: Words, rounds: int) -> list[float]:
    """Return the peaks of several runs; the first writes compiled modules, and is not one of them."""
    environment = clean_environment()
    return [cost(words, environment).peak_mib for _ in range(rounds + 1)][1:]


def table(rows: Mapping[str, Row]) -> str:
    lines = [f"{'COMMAND':<{COLUMN}}{'PEAK MiB':>10}{'x bare':>8}{'NOISE MiB':>18}"]
    middles = {name: statistics.median(found) for name, found in rows.items() if not isinstance(found, str)}
    for name, found in rows.items():
        if isinstance(found, str):
            lines.append(f"{name:<{COLUMN}}{found}")
            continue
        ratio, spread = middles[name] / middles[BARE], f"{min(found):.1f} to {max(found):.1f}"
        lines.append(f"{name:<{COLUMN}}{middles[name]:>10.1f}{ratio:>8.2f}{spread:>18}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

"""Installing 50 plugins of 20 files, beside the same bytes as wheels: `python -m benchmarks.install --peers DIR`.

The plugins come from a real registry with real signatures by the real command, the wheels from a plain index, all over
loopback. COLD: nothing is there yet. WARM: everything was installed once, is in the cache (for spm: in its store), and
is installed again after it was removed. Each run of spm reads the signed index anew and hashes every byte; a warm uv
takes the answers that its cache holds for ten minutes, and hashes nothing; with `--refresh` it asks the index anew.
Rounds take turns; times are medians. PEAK is resident memory; each of these commands is one process.
"""

import argparse
import hashlib
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import wheels
from benchmarks.machine import CommandFailed, Cost, Words, bare_samples, clean_environment, cost, noise
from benchmarks.peers import Peers, add_option, peers_of
from tests.e2e.commands import SPM, Client
from tests.e2e.sources import write_source
from tests.e2e.team import Team, founded

PLUGINS, FILES, SIZE = 50, 20, 64 << 10
SPM_ROW, UV_ROW, ANEW_ROW, PIP_ROW = "spm install", "uv pip install", "  --refresh", "pip install"
KERNELS = "not comparable: it loads from the Hugging Face Hub alone, and has no registry that could be served here"
Contents = Mapping[str, Mapping[str, bytes]]
Costs = dict[str, list[Cost]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """One row: `command` installs everything under `place`; `empty` makes it cold, `remove` makes it warm again."""

    name: str
    command: Words
    place: Path
    environment: Mapping[str, str]
    empty: Callable[[], None]
    remove: Callable[[], None]
    absence: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.install", description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each (default: 5)")
    parser.add_argument("--plugins", type=int, default=PLUGINS, help=f"how many plugins (default: {PLUGINS})")
    options = parser.parse_args()
    before = bare_samples()
    with tempfile.TemporaryDirectory() as folder:
        contents = make_contents(options.plugins)
        with installers(Path(folder), contents, peers_of(options.peers)) as rows:
            cold, warm = measure(rows, options.rounds, size_of(contents))
    print(f"{len(contents)} plugins of {FILES} files, {size_of(contents) / (1 << 20):.0f} MiB; {options.rounds} rounds")
    print(table("COLD", rows, cold), table("WARM", rows, warm), sep="\n\n", end="\n\n")
    print(f"{'kernels':<16}{KERNELS}")
    print(f"SHA-256 of the same bytes, in memory: {hash_ms(contents):.0f} ms")
    print(noise(before))
    return 0


def make_contents(plugins: int) -> Contents:
    """Return every plugin's files, the same bytes each time."""
    source = random.Random(7)
    return {
        f"plugin{place:02}": {f"data/file{number:02}.bin": source.randbytes(SIZE) for number in range(FILES - 1)}
        | {f"plugin{place:02}.py": b"# " + b"x" * (SIZE - 3) + b"\n"}
        for place in range(plugins)
    }


@contextmanager
def installers(folder: Path, contents: Contents, peers: Peers) -> Iterator[list[Installer]]:
    """Serve the plugins and the wheels, and give what installs them."""
    wheels.write_index(folder / "wheels", contents)
    with founded(folder / "team") as team, wheels.serving(folder / "wheels") as index:
        publish(team, folder / "sources", contents)
        yield [
            of_spm(team, folder / "spm", list(contents)),
            of_peer(UV_ROW, uv_words(peers), folder / "uv", index, list(contents), peers.absence("uv")),
            of_peer(
                ANEW_ROW, uv_words(peers, "--refresh"), folder / "anew", index, list(contents), peers.absence("uv")
            ),
            of_peer(PIP_ROW, pip_words(peers), folder / "pip", index, list(contents), peers.absence("pip")),
        ]


def publish(team: Team, folder: Path, contents: Contents) -> None:
    team.publish(*(write_source(folder, name, "1.0.0", files=dict(files)) for name, files in contents.items()))


def of_spm(team: Team, home: Path, names: Sequence[str]) -> Installer:
    client = Client(home)

    def empty() -> None:
        shutil.rmtree(home, ignore_errors=True)
        team.client(home)

    def remove() -> None:
        cost([SPM, "uninstall", *names], client.environment)

    return Installer(
        name=SPM_ROW,
        command=[SPM, "install", *names],
        place=client.store / "plugins",
        environment=client.environment,
        empty=empty,
        remove=remove,
    )


def of_peer(row: str, words: Words, home: Path, index: str, names: Sequence[str], absence: str) -> Installer:
    """Return uv or pip, into a prefix of its own, with a cache of its own."""
    prefix, cache = home / "prefix", home / "cache"
    return Installer(
        name=row,
        command=[*words, "--prefix", prefix, "--index-url", index, "--cache-dir", cache, "--quiet", *names],
        place=prefix,
        environment=clean_environment(HOME=str(home)),
        empty=lambda: shutil.rmtree(home, ignore_errors=True),
        remove=lambda: shutil.rmtree(prefix, ignore_errors=True),
        absence=absence,
    )


def uv_words(peers: Peers, *more: str) -> Words:
    return [peers.command("uv"), "pip", "install", "--python", peers.python, "--no-config", *more]


def pip_words(peers: Peers) -> Words:
    """Return pip's words; it compiles nothing, as the others do not."""
    return [peers.python, "-m", "pip", "--isolated", "install", "--no-compile", "--disable-pip-version-check"]


def measure(rows: Sequence[Installer], rounds: int, size: int) -> tuple[Costs, Costs]:
    """Return what each installer took cold, and what it took warm; an absent one is in neither."""
    present = [row for row in rows if not row.absence]
    cold: Costs = {row.name: [] for row in present}
    warm: Costs = {row.name: [] for row in present}
    for _ in range(rounds):
        for row in present:
            row.empty()
            cold[row.name].append(run(row, size))
            row.remove()
            warm[row.name].append(run(row, size))
    return cold, warm


def run(row: Installer, size: int) -> Cost:
    """Install once, and see that every byte is there now and was not before.

    Raises: CommandFailed where it is not so.
    """
    if present := bytes_under(row.place):
        raise CommandFailed(f"{row.name}: {present} bytes are there before it runs")
    taken = cost(row.command, row.environment)
    if (present := bytes_under(row.place)) < size:
        raise CommandFailed(f"{row.name}: only {present} of {size} bytes are there")
    return taken


def bytes_under(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


def size_of(contents: Contents) -> int:
    return sum(len(data) for files in contents.values() for data in files.values())


def table(title: str, rows: Sequence[Installer], costs: Costs) -> str:
    lines = [f"{title:<16}{'MEDIAN ms':>10}{'x uv':>7}{'x pip':>7}{'NOISE ms':>18}{'CPU ms':>9}{'PEAK MiB':>10}"]
    for row in rows:
        if row.absence:
            lines.append(f"{row.name:<16}absent: {row.absence}")
            continue
        times = [taken.ms for taken in costs[row.name]]
        spread = f"{min(times):.0f} to {max(times):.0f}"
        ratios = "".join(f"{ratio(costs, row.name, other):>7}" for other in (UV_ROW, PIP_ROW))
        cpu = statistics.median(taken.cpu_ms for taken in costs[row.name])
        peak = statistics.median(taken.peak_mib for taken in costs[row.name])
        lines.append(f"{row.name:<16}{statistics.median(times):>10.0f}{ratios}{spread:>18}{cpu:>9.0f}{peak:>10.0f}")
    return "\n".join(lines)


def ratio(costs: Costs, name: str, other: str) -> str:
    if other not in costs:
        return "-"
    mine, others = (statistics.median(taken.ms for taken in costs[row]) for row in (name, other))
    return f"{mine / others:.2f}"


def hash_ms(contents: Contents) -> float:
    started = time.perf_counter()
    for files in contents.values():
        for data in files.values():
            hashlib.sha256(data).digest()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandFailed as error:
        sys.exit(str(error))

"""The alternatives that spm is held against, in an environment outside the repository. Measures nothing.

`python -m benchmarks.peers DIR` makes it. Each is pinned; one that cannot be installed is left out, and its rows in
the tables say that it is absent, and why.
"""

import argparse
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
PINNED: Mapping[str, str] = {
    "nab-resolver": "0.0.23",
    "resolvelib": "1.2.1",
    "py-rattler": "0.28.0",
    "uv": "0.13.9",
    "pip": "26.3",
    "kernels": "0.17.2",
}
VERSION = "import importlib.metadata as found, sys; print(found.version(sys.argv[1]))"


@dataclass(frozen=True, slots=True)
class Peers:
    """A folder with the peers' environment, or none where no folder was given."""

    folder: Path | None

    @property
    def python(self) -> str:
        return self.command("python")

    def command(self, name: str) -> str:
        return str((self.folder or Path()) / "bin" / name)

    def absence(self, distribution: str) -> str:
        """Return why a peer is absent; nothing where it is there, as pinned."""
        if self.folder is None:
            return "no --peers was given"
        if not Path(self.python).exists():
            return f"{self.folder} is no environment"
        words = [self.python, "-c", VERSION, distribution]
        found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
        if not found:
            return "it is not installed"
        pinned = PINNED[distribution]
        return "" if found == pinned else f"{found} is installed, {pinned} is pinned"


def add_option(parser: argparse.ArgumentParser) -> None:
    text = "the peers' environment, made by `python -m benchmarks.peers DIR`; without it all peers are absent"
    parser.add_argument("--peers", type=Path, metavar="DIR", help=text)


def peers_of(folder: Path | None) -> Peers:
    return Peers(folder and folder.absolute())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to make it, outside the repository")
    folder = parser.parse_args().folder.resolve()
    if folder == REPOSITORY or REPOSITORY in folder.parents:
        parser.error(f"{folder} is in the repository")
    return make(Peers(folder), folder)


def make(peers: Peers, folder: Path) -> int:
    """Make the environment and say what is there; 1 where one is absent."""
    venv.EnvBuilder(with_pip=True, symlinks=True).create(folder)
    for distribution, version in PINNED.items():
        words = [peers.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*words, f"{distribution}=={version}"], check=False)
    absences = {distribution: peers.absence(distribution) for distribution in PINNED}
    for distribution, absence in absences.items():
        print(f"{distribution:<16}{f'absent: {absence}' if absence else PINNED[distribution]}")
    return 1 if any(absences.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

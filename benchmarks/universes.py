"""What the solvers are asked: a real graph read from a file, and universes made from a seed. Solves nothing."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.solvers.problem import Packages

GRAPH = Path("../shared/vectors/resolver/pubgrub_graph_0.json")
PLUGINS, RELEASES, REQUIREMENTS, REACH = 2000, 20, 3, 60
POISONED: Mapping[str, float] = {"easy": 0.0, "hidden5": 0.05, "hidden15": 0.15, "hidden30": 0.3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Universe:
    """Plugins with all their releases, and the roots to solve in it: a name and a range each."""

    name: str
    packages: Packages
    roots: tuple[tuple[str, str], ...]

    def problem(self, seconds: float) -> str:
        """Return it as a solver's process reads it; `seconds` is the most for one root."""
        return json.dumps({"packages": self.packages, "roots": self.roots, "seconds": seconds})


def read_graph(path: Path) -> Universe:
    """Read a graph of which each release is a root."""
    packages: Packages = json.loads(path.read_bytes())
    roots = tuple((name, f"=={version}") for name in sorted(packages) for version in packages[name])
    return Universe(name=path.stem, packages=packages, roots=roots)


def make_universe(name: str, *, seed: int = 0) -> Universe:
    """Return 2,000 plugins of 20 releases with 3 requirements each, on some of the 60 plugins that follow.

    One release of each plugin, drawn in secret, is in the hidden resolution: every range is a lower bound that it
    meets. Of the other releases the poisoned share has, in one requirement, a single release that is not the secret
    one; the solver learns that by conflict only.
    """
    source = random.Random(seed)
    secret = [source.randint(1, RELEASES) for _ in range(PLUGINS)]
    packages = {f"p{place}": dict(_releases(source, secret, place, POISONED[name])) for place in range(PLUGINS)}
    return Universe(name=name, packages=packages, roots=(("p0", "*"),))


def _releases(
    source: random.Random, secret: list[int], place: int, poisoned: float
) -> Iterator[tuple[str, dict[str, str]]]:
    following = range(place + 1, min(PLUGINS, place + REACH))
    others = source.sample(following, min(REQUIREMENTS, len(following)))
    for number in range(1, RELEASES + 1):
        requires = {f"p{other}": f">={source.randint(1, secret[other])}.0.0" for other in others}
        if others and number != secret[place] and source.random() < poisoned:
            other = source.choice(others)
            wrong = source.choice([value for value in range(1, RELEASES + 1) if value != secret[other]])
            requires[f"p{other}"] = f">={wrong}.0.0,<{wrong + 1}.0.0"
        yield f"{number}.0.0", requires

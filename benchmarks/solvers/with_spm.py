"""spm's own solver on a problem of `solvers.problem`. Every range is parsed once, as for each other solver.

What it makes of the releases of a plugin, such as which are in a range, it makes when it first needs it: in the time.
"""

from collections.abc import Sequence

from benchmarks.solvers.problem import Packages, Pins, Solve, Unsolved, answer_all
from manifests.errors import SpmError
from manifests.index import ReleaseEntry
from manifests.names import PluginName
from spm_client.resolve import NoSolution
from spm_client.resolve.universe import Universe


class ParsedUniverse(Universe):
    """A universe whose releases are all parsed before the first root."""

    def __init__(self, packages: Packages) -> None:
        super().__init__(
            {
                name: {version: {"requires": requires} for version, requires in releases.items()}
                for name, releases in packages.items()
            }
        )
        self._parsed = {name: super(ParsedUniverse, self).releases(PluginName(name)) for name in packages}

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        return self._parsed.get(name, ())


def prepare(packages: Packages) -> Solve:
    universe = ParsedUniverse(packages)

    def solve(name: str, wanted: str) -> Pins | None:
        try:
            return universe.solve({name: wanted})
        except NoSolution:
            return None
        except SpmError as error:
            raise Unsolved(f"{type(error).__name__}: {error}") from error

    return solve


if __name__ == "__main__":
    answer_all(prepare)

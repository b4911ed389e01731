"""nab-resolver, a PubGrub in pure Python, on a problem of `solvers.problem`. Words: an order, and `no-report`.

Every range is parsed once, and a version is a number. It words a refutation as it finds it; `no-report` leaves that
out, to compare the search alone.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import nab_resolver.conflict as nab_conflict  # type: ignore[import-not-found]
from nab_resolver.errors import ResolutionError, ResolutionTerminatedError  # type: ignore[import-not-found]
from nab_resolver.ranges import Range  # type: ignore[import-not-found]
from nab_resolver.resolver import BaseProvider, Resolver  # type: ignore[import-not-found]

from benchmarks.solvers.problem import (
    ENDLESS,
    Packages,
    Pins,
    Solve,
    Unsolved,
    answer_all,
    bounds_of,
    newest_first,
    number_of,
)

Counts = Mapping[str, int]
ORDERS: Mapping[str, Callable[[str, Counts, Counts], int]] = {
    "by-conflicts": lambda name, conflicts, culprits: -conflicts.get(name, 0) - culprits.get(name, 0),
    "as-found": lambda name, conflicts, culprits: 0,
}
"""Which package it decides next: that of most conflicts, as its own users do; or the first by name."""


class Provider(BaseProvider):  # type: ignore[misc]
    """A parsed universe, newest version first."""

    def __init__(self, packages: Packages, order: str) -> None:
        self._order = ORDERS[order]
        self._versions = newest_first(packages)
        self._requires = {
            (name, number_of(version)): {other: range_of(wanted) for other, wanted in requires.items()}
            for name, releases in packages.items()
            for version, requires in releases.items()
        }

    def choose_version(self, package: str, version_range: Any) -> int | None:
        return next((version for version in self._versions.get(package, ()) if version in version_range), None)

    def has_satisfying_version(self, package: str, version_range: Any) -> bool:
        return self.choose_version(package, version_range) is not None

    def get_dependencies(self, package: str, version: int) -> Mapping[str, Any]:
        return self._requires[package, version]

    def prioritize(self, package: str, version_range: Any, conflicts: Counts, culprits: Counts | None = None) -> int:
        return self._order(package, conflicts, culprits or {})

    def widen_decision(self, package: str, version: int) -> None:
        return None


def range_of(wanted: str) -> Any:
    low, high = bounds_of(wanted)
    found = Range.full() if low == 0 else Range.at_least(low)
    return found if high == ENDLESS else found & ~Range.at_least(high)


def prepare(packages: Packages, order: str) -> Solve:
    provider = Provider(packages, order)

    def solve(name: str, wanted: str) -> Pins | None:
        try:
            pins = Resolver(provider).resolve({name: range_of(wanted)})
        except ResolutionTerminatedError as error:
            raise Unsolved(f"{type(error).__name__}: {error}") from error
        except ResolutionError:
            return None
        return {pinned: f"{version}.0.0" for pinned, version in pins.items()}

    return solve


if __name__ == "__main__":
    if "no-report" in sys.argv:
        nab_conflict.format_error = lambda *parts, **more: ""
    answer_all(lambda packages: prepare(packages, sys.argv[1]))

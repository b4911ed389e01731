"""resolvelib, the backtracking resolver of pip, on a problem of `solvers.problem`. Every range is parsed once."""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from resolvelib import (  # type: ignore[import-not-found]
    AbstractProvider,
    BaseReporter,
    ResolutionImpossible,
    ResolutionTooDeep,
    Resolver,
)

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

ROUNDS = 1_000_000


class Wish(NamedTuple):
    name: str
    low: int
    high: int


class Candidate(NamedTuple):
    name: str
    version: int


class Provider(AbstractProvider):  # type: ignore[misc]
    """A parsed universe, newest version first. Prefers, as pip does, what has just conflicted; then fewest choices."""

    def __init__(self, packages: Packages) -> None:
        self._versions = newest_first(packages)
        self._requires = {
            Candidate(name, number_of(version)): [Wish(other, *bounds_of(wanted)) for other, wanted in requires.items()]
            for name, releases in packages.items()
            for version, requires in releases.items()
        }

    def identify(self, requirement_or_candidate: Wish | Candidate) -> str:
        return requirement_or_candidate.name

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[str],
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> Iterable[str]:
        causes = {cause.requirement.name for cause in backtrack_causes}
        causes |= {cause.parent.name for cause in backtrack_causes if cause.parent is not None}
        names = list(identifiers)
        return [name for name in names if name in causes] or names

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> tuple[int, str]:
        return sum(1 for _ in candidates[identifier]), identifier

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Wish]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> list[Candidate]:
        wishes = list(requirements[identifier])
        low = max((wish.low for wish in wishes), default=0)
        high = min((wish.high for wish in wishes), default=ENDLESS)
        out = {candidate.version for candidate in incompatibilities[identifier]}
        versions = self._versions.get(identifier, ())
        return [Candidate(identifier, version) for version in versions if low <= version < high and version not in out]

    def is_satisfied_by(self, requirement: Wish, candidate: Candidate) -> bool:
        return requirement.low <= candidate.version < requirement.high

    def get_dependencies(self, candidate: Candidate) -> list[Wish]:
        return self._requires[candidate]


def prepare(packages: Packages) -> Solve:
    provider = Provider(packages)
    return functools.partial(solve, provider)


def solve(provider: Provider, name: str, wanted: str) -> Pins | None:
    try:
        result = Resolver(provider, BaseReporter()).resolve([Wish(name, *bounds_of(wanted))], max_rounds=ROUNDS)
    except ResolutionImpossible:
        return None
    except (ResolutionTooDeep, RecursionError) as error:
        raise Unsolved(f"{type(error).__name__}: {error}") from error
    return {pinned: f"{candidate.version}.0.0" for pinned, candidate in result.mapping.items()}


if __name__ == "__main__":
    answer_all(prepare)

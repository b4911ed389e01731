"""The smallest part of a problem that already cannot be resolved. Words it nowhere."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve.catalogue import Candidates, Catalogue, positions
from spm_client.resolve.requirement import Requirement
from spm_client.resolve.search import Budget, Edge, LimitSpent, search


@dataclass(frozen=True, slots=True)
class Want:
    """A range that is put on a plugin, and by whom: a source, or releases of another plugin.

    It is firm where no choice of the requirer's release escapes it.
    """

    range: Range
    by: str
    versions: tuple[str, ...] = ()
    is_ceiling: bool = False
    is_firm: bool = True


@dataclass(frozen=True, slots=True)
class Core:
    """Requirements, ceilings and plugin-to-plugin edges that together have no resolution; none can be spared."""

    requirements: tuple[Requirement, ...]
    ceilings: tuple[Requirement, ...]
    edges: frozenset[Edge]

    @property
    def names(self) -> tuple[PluginName, ...]:
        """Return the plugins involved, those asked for first, then what they require."""
        names = list(dict.fromkeys(requirement.name for requirement in self.requirements))
        for name in names:
            names.extend(sorted(other for first, other in self.edges if first == name and other not in names))
        return tuple(names)

    def edges_of(self, name: PluginName) -> frozenset[PluginName]:
        return frozenset(other for first, other in self.edges if first == name)


def find_core(
    catalogue: Catalogue, requirements: Sequence[Requirement], ceilings: Sequence[Requirement], budget: Budget
) -> Core:
    """Return a core of a problem that has no resolution, as small as the searches within the budget can make it."""
    shrinker = _Shrinker(catalogue, requirements, ceilings, budget)
    # Out of steps: what was dropped so far was proven superfluous, so the rest is true, only longer.
    with suppress(LimitSpent):
        shrinker.shrink()
    return shrinker.core()


class _Shrinker:
    def __init__(
        self,
        catalogue: Catalogue,
        requirements: Sequence[Requirement],
        ceilings: Sequence[Requirement],
        budget: Budget,
    ) -> None:
        self._catalogue = catalogue
        self._budget = budget
        self._requirements = tuple(requirements)
        self._ceilings = tuple(ceilings)
        self._dropped: frozenset[Edge] = frozenset()

    def core(self) -> Core:
        return Core(self._requirements, self._ceilings, self._edges() - self._dropped)

    def shrink(self) -> None:
        for requirement in reversed(self._requirements):
            rest = tuple(other for other in self._requirements if other is not requirement)
            if self._still_fails(rest, self._ceilings, self._dropped):
                self._requirements = rest
        for ceiling in reversed(self._ceilings):
            rest = tuple(other for other in self._ceilings if other is not ceiling)
            if self._still_fails(self._requirements, rest, self._dropped):
                self._ceilings = rest
        for name in sorted({first for first, _ in self._edges()}, reverse=True):
            self._drop({edge for edge in self._edges() if edge[0] == name})
        tried: frozenset[Edge] = frozenset()
        # A search may read further plugins, and so bring edges that were not there to try.
        while fresh := self._edges() - self._dropped - tried:
            for edge in sorted(fresh, reverse=True):
                self._drop({edge})
            tried |= fresh

    def _drop(self, edges: Collection[Edge]) -> None:
        if self._still_fails(self._requirements, self._ceilings, self._dropped | frozenset(edges)):
            self._dropped |= frozenset(edges)

    def _still_fails(
        self, requirements: Sequence[Requirement], ceilings: Sequence[Requirement], dropped: Collection[Edge]
    ) -> bool:
        return search(self._catalogue, requirements, ceilings, self._budget, dropped=dropped) is None

    def _edges(self) -> frozenset[Edge]:
        """Return the edges that can be reached from the requirements over plugins read so far."""
        edges: set[Edge] = set()
        names = list(dict.fromkeys(requirement.name for requirement in self._requirements))
        for name in names:
            if (candidates := self._catalogue.known.get(name)) is not None:
                found = {other for release in candidates.releases for other, _ in release.requires.plugins}
                edges |= {(name, other) for other in found if (name, other) not in self._dropped}
                names.extend(sorted(found - set(names)))
        return frozenset(edges)


def wants_on(catalogue: Catalogue, core: Core, name: PluginName) -> tuple[Want, ...]:
    """Return every range that the core puts on a plugin."""
    wants = [Want(wish.range, wish.source) for wish in core.requirements if wish.name == name]
    wants += [Want(wish.range, wish.source, is_ceiling=True) for wish in core.ceilings if wish.name == name]
    for other in core.names:
        if name in core.edges_of(other):
            wants += _wants_of(catalogue[other], _possible(catalogue, core, other), name)
    return tuple(wants)


def _possible(catalogue: Catalogue, core: Core, name: PluginName) -> int:
    """Return the releases that the target and the core's own requirements leave."""
    candidates = catalogue[name]
    bits = candidates.usable
    for wish in (*core.requirements, *core.ceilings):
        if wish.name == name:
            bits &= candidates.in_range(wish.range)
    return bits


def _wants_of(candidates: Candidates, possible: int, name: PluginName) -> list[Want]:
    by_range: dict[str, tuple[Range, list[str]]] = {}
    for position in positions(possible):
        release = candidates.releases[position]
        for other, wanted in release.requires.plugins:
            if other == name:
                by_range.setdefault(wanted.text, (wanted, []))[1].append(str(release.version))
    return [
        Want(wanted, candidates.name, tuple(versions), is_firm=len(versions) == possible.bit_count())
        for wanted, versions in by_range.values()
    ]

"""A core seen plugin by plugin: who wants which range of it, and why each of its releases is out. Words no refusal."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from manifests.fit import Misfit
from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve.catalogue import Candidates, Catalogue, positions
from spm_client.resolve.core import Core
from spm_client.resolve.words import listed


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

    @property
    def verb(self) -> str:
        return "held" if self.is_ceiling else "wanted"

    def who(self, *, short: bool = False) -> str:
        if not self.versions:
            return self.by
        return f"`{self.by}`" if short else f"`{self.by}` {listed(self.versions)}"


@dataclass(frozen=True, slots=True)
class Complaint:
    """Why one release is out. `is_range` marks one that fits, but that some releases of requirers exclude."""

    version: str
    text: str
    misfit: Misfit | None = None
    is_range: bool = False


class Conflict:
    """Usage: `conflict.names`, `conflict.wants["mel"]`, `conflict.complaints["mel"]`; each is worked out once."""

    def __init__(self, catalogue: Catalogue, core: Core) -> None:
        self.catalogue = catalogue
        self.core = core

    @cached_property
    def edges(self) -> Mapping[PluginName, frozenset[PluginName]]:
        found: dict[PluginName, set[PluginName]] = {}
        for name, other in self.core.edges:
            found.setdefault(name, set()).add(other)
        return {name: frozenset(others) for name, others in found.items()}

    @cached_property
    def names(self) -> tuple[PluginName, ...]:
        """The plugins involved, those asked for first, then what they require."""
        names = dict.fromkeys(requirement.name for requirement in self.core.requirements)
        todo = deque(names)
        while todo:
            for other in sorted(self.edges.get(todo.popleft(), ())):
                if other not in names:
                    names[other] = None
                    todo.append(other)
        return tuple(names)

    @cached_property
    def wants(self) -> Mapping[PluginName, tuple[Want, ...]]:
        """Every range that the core puts on a plugin."""
        found: dict[PluginName, list[Want]] = {name: [] for name in self.names}
        for wish in self.core.requirements:
            found[wish.name].append(Want(wish.range, wish.source))
        for wish in self.core.ceilings:
            found.setdefault(wish.name, []).append(Want(wish.range, wish.source, is_ceiling=True))
        for name in self.names:
            for other in sorted(self.edges.get(name, ())):
                found[other] += _wants_of(self.catalogue[name], self._possible(name), other)
        return {name: tuple(wants) for name, wants in found.items()}

    @cached_property
    def complaints(self) -> Mapping[PluginName, tuple[Complaint, ...]]:
        """Of each plugin, for each release, newest first, why it cannot be taken."""
        return {name: (*self._hidden(name), *self._complaints(name)) for name in self.names}

    def _possible(self, name: PluginName) -> int:
        """Return the releases that the target and the core's own requirements leave."""
        candidates = self.catalogue[name]
        bits = candidates.usable
        for wish in (*self.core.requirements, *self.core.ceilings):
            if wish.name == name:
                bits &= candidates.in_range(wish.range)
        return bits

    def _hidden(self, name: PluginName) -> list[Complaint]:
        newer = sorted(self.catalogue.hidden.get(name, ()), key=lambda one: one.version, reverse=True)
        return [Complaint(str(one.version), "came after `--exclude-newer`", is_range=True) for one in newer]

    def _complaints(self, name: PluginName) -> list[Complaint]:
        candidates = self.catalogue[name]
        return [self._complaint(candidates, place) for place in range(len(candidates.releases))]

    def _complaint(self, candidates: Candidates, position: int) -> Complaint:
        release, verdict = candidates.releases[position], candidates.verdicts[position]
        version, wants = str(release.version), self.wants[candidates.name]
        out = [want for want in wants if not candidates.in_range(want.range) >> position & 1]
        firm = [want for want in out if want.is_firm]
        if firm or (out and len(out) == len(wants)):
            return Complaint(version, _outside(candidates, position, firm or out))
        if release.yanked is not None and not candidates.offered >> position & 1:
            return Complaint(version, f"yanked ({release.yanked})")
        if isinstance(verdict, Misfit):
            return Complaint(version, verdict.text, misfit=verdict)
        if out:
            return Complaint(version, _outside(candidates, position, out), is_range=True)
        others = self.edges.get(candidates.name, frozenset())
        told = [f"`{other}` `{wanted}`" for other, wanted in release.requires.plugins if other in others]
        return Complaint(version, f"requires {' and '.join(told)}" if told else "would do by itself")


def _wants_of(candidates: Candidates, possible: int, name: PluginName) -> list[Want]:
    by_range: dict[Range, list[str]] = {}
    for position in positions(possible):
        release = candidates.releases[position]
        for other, wanted in release.requires.plugins:
            if other == name:
                by_range.setdefault(wanted, []).append(str(release.version))
    return [
        Want(wanted, candidates.name, tuple(versions), is_firm=len(versions) == possible.bit_count())
        for wanted, versions in by_range.items()
    ]


def _outside(candidates: Candidates, position: int, out: Sequence[Want]) -> str:
    version = candidates.releases[position].version
    told = [want for want in out if not want.range.contains(version, pre=True)]
    if not told:
        return f"a pre-release, which only `--pre {candidates.name}` lets in"
    if asked := [want for want in told if not want.versions]:
        told = asked
    return "outside " + " and ".join(f"`{want.range}` ({want.verb} by {want.who(short=want.is_firm)})" for want in told)

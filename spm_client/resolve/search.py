"""A complete search for a resolution: backtracking with conflict-directed backjumping. Explains nothing.

1. Take the open plugin with the fewest candidates (at most one first, then those asked for by name).
2. Try its candidates in order of preference. One is put aside when a plugin chosen before is outside the range that it
   wants, or when it leaves an open plugin without candidates; the plugins that caused this are the *blame*.
3. When all are put aside, jump back to the latest plugin in the blame: what lies between cannot help.
4. When nothing is open, ask the objection. It may blame too; blame without a plugin means that there is no resolution.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from manifests.errors import Undecided
from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve.catalogue import Catalogue
from spm_client.resolve.requirement import Requirement

Chosen = Mapping[PluginName, int]
"""Plugin to the position of its release in `Candidates.releases`."""
Edge = tuple[PluginName, PluginName]
"""A plugin, and one that releases of it require."""
Blame = frozenset[PluginName]
Objection = Callable[[Chosen], Blame | None]


def no_objection(_chosen: Chosen) -> None:
    return None


class LimitSpent(Undecided):
    """A search ended at its step limit, without an answer."""

    default_reason = "unknown:resolution"


class Budget:
    """Steps that a search may take before it ends without an answer."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._spent = 0

    def spend(self) -> None:
        """Count one candidate tried.

        Raises: LimitSpent at the limit.
        """
        self._spent += 1
        if self._spent > self._limit:
            raise LimitSpent(
                f"no resolution was found or ruled out within {self._limit} steps",
                hint="narrow the requirements, for example by an exact version of the plugin that has most releases",
                steps=self._limit,
            )


@dataclass(slots=True)
class _Frame:
    """One plugin being decided: candidates still to try, who is to blame so far, and how to undo the current one."""

    name: PluginName
    candidates: Iterator[int]
    blame: set[PluginName]
    narrowed: list[tuple[PluginName, int | None]] = field(default_factory=list)


class _Search:
    def __init__(
        self,
        catalogue: Catalogue,
        requirements: Collection[Requirement],
        ceilings: Collection[Requirement],
        budget: Budget,
        dropped: Collection[Edge],
    ) -> None:
        self._catalogue = catalogue
        self._ceilings = ceilings
        self._budget = budget
        self._dropped = dropped
        self._asked = frozenset(requirement.name for requirement in requirements)
        self._chosen: dict[PluginName, int] = {}
        self._open: dict[PluginName, int] = {}
        self._wanted_by: dict[PluginName, list[PluginName]] = {}
        for requirement in requirements:
            self._narrow(requirement.name, requirement.range)

    def run(self, objection: Objection) -> dict[PluginName, int] | None:
        frames: list[_Frame] = []
        blame: Blame | None = None
        while True:
            if blame is not None:
                if (frame := self._jump_back(frames, blame)) is None:
                    return None
            elif (name := self._most_constrained()) is not None:
                frame = self._enter(frames, name)
            elif (blame := objection(self._chosen)) is None:
                return dict(self._chosen)
            else:
                continue
            blame = self._advance(frames, frame)

    def _enter(self, frames: list[_Frame], name: PluginName) -> _Frame:
        candidates = self._catalogue[name].preferred(self._open[name])
        frames.append(_Frame(name, candidates, set(self._wanted_by.get(name, ()))))
        return frames[-1]

    def _jump_back(self, frames: list[_Frame], blame: Blame) -> _Frame | None:
        while frames:
            self._undo(frames[-1])
            if frames[-1].name in blame:
                frames[-1].blame |= blame - {frames[-1].name}
                return frames[-1]
            frames.pop()
        return None

    def _advance(self, frames: list[_Frame], frame: _Frame) -> Blame | None:
        """Choose the next candidate that agrees with what is chosen; without one, leave the frame and return blame."""
        for position in frame.candidates:
            self._budget.spend()
            blame = self._try(frame, position)
            if blame is None:
                return None
            frame.blame |= blame
        frames.pop()
        return frozenset(frame.blame)

    def _try(self, frame: _Frame, position: int) -> Blame | None:
        wants = self._wants(frame.name, position)
        for name, wanted in wants:
            place = position if name == frame.name else self._chosen.get(name)
            if place is not None and not self._catalogue[name].in_range(wanted) >> place & 1:
                return frozenset({name} - {frame.name})
        self._chosen[frame.name] = position
        for name, wanted in wants:
            if name in self._chosen:
                continue
            frame.narrowed.append((name, self._open.get(name)))
            self._narrow(name, wanted)
            self._wanted_by.setdefault(name, []).append(frame.name)
            if not self._open[name]:
                blame = frozenset(self._wanted_by[name]) - {frame.name}
                self._undo(frame)
                return blame
        return None

    def _undo(self, frame: _Frame) -> None:
        self._chosen.pop(frame.name, None)
        while frame.narrowed:
            name, bits = frame.narrowed.pop()
            self._wanted_by[name].pop()
            if bits is None:
                del self._open[name]
            else:
                self._open[name] = bits

    def _wants(self, name: PluginName, position: int) -> Iterable[tuple[PluginName, Range]]:
        wants = self._catalogue.release(name, position).requires.plugins
        if not self._dropped:
            return wants
        return [(other, wanted) for other, wanted in wants if (name, other) not in self._dropped]

    def _narrow(self, name: PluginName, wanted: Range) -> None:
        bits = self._open.get(name)
        candidates = self._catalogue[name]
        if bits is None:
            bits = candidates.usable
            for ceiling in self._ceilings:
                if ceiling.name == name:
                    bits &= candidates.in_range(ceiling.range)
        self._open[name] = bits & candidates.in_range(wanted)

    def _most_constrained(self) -> PluginName | None:
        return min(
            (name for name in self._open if name not in self._chosen),
            key=lambda name: (self._open[name].bit_count() > 1, name not in self._asked, self._width(name), name),
            default=None,
        )

    def _width(self, name: PluginName) -> int:
        return self._open[name].bit_count()


def search(
    catalogue: Catalogue,
    requirements: Collection[Requirement],
    ceilings: Collection[Requirement],
    budget: Budget,
    *,
    objection: Objection = no_objection,
    dropped: Collection[Edge] = (),
) -> dict[PluginName, int] | None:
    """Return the first resolution without objection, or None where there is none.

    `ceilings` bound plugins without asking for them; `dropped` requirements are ignored, to explain a failure.
    Raises: LimitSpent when the budget is.
    """
    return _Search(catalogue, requirements, ceilings, budget, dropped).run(objection)

"""PubGrub: decisions, unit propagation and conflict-driven learning over incompatibilities. Words nothing for people.

As pub's doc/solver.md has it, with two changes for speed: sets of releases are integers, and an incompatibility watches
two of its terms, since it can say nothing new before one of them holds (Moskewicz et al., "Chaff", 2001).

1. Propagate: where all terms of an incompatibility but one hold, that one cannot.
2. Where all hold, there is a conflict. Resolve it with the causes of its latest assignments, until what is left would
   have said something at an earlier level: learn that, and go back there. Without terms it proves that nothing helps.
3. Else decide: take the plugin that the agenda says, and of its choices left the locked release or the newest.
"""

from collections.abc import Collection, Mapping

from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve.agenda import Agenda
from spm_client.resolve.budget import Budget
from spm_client.resolve.catalogue import Candidates, Catalogue
from spm_client.resolve.incompatibility import (
    ABSENT,
    Cause,
    Derived,
    Fact,
    Held,
    Incompatibility,
    Requires,
    Unusable,
    Wished,
    resolvent,
)
from spm_client.resolve.partial_solution import PartialSolution
from spm_client.resolve.requirement import Requirement

Chosen = Mapping[PluginName, int]
"""Plugin to the position of its release in `Candidates.releases`."""
Edge = tuple[PluginName, PluginName]
"""A plugin, and one that releases of it require."""
Watcher = tuple[int, Incompatibility]
"""The complement of the watched term's mask, and the incompatibility."""


class Solver:
    """One problem being solved. `solve` may be called again after `forbid`: what was learnt is kept.

    With `edges`, requirements between other plugins than these are left out, to find out which ones a failure needs.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        requirements: Collection[Requirement],
        ceilings: Collection[Requirement],
        budget: Budget,
        *,
        edges: Collection[Edge] | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._ceilings = ceilings
        self._edges = edges
        self.budget = budget
        self._solution = PartialSolution()
        self._agenda = Agenda(self._solution, frozenset(wish.name for wish in requirements))
        self._names: list[PluginName] = []
        self._numbers: dict[PluginName, int] = {}
        self._candidates: list[Candidates | None] = []
        self._watchers: list[list[Watcher]] = []
        self._alone: list[list[Incompatibility]] = []
        self._required: set[tuple[PluginName, PluginName, str]] = set()
        self._optional: set[int] = set()
        self._changed: list[int] = []
        self._conflict: Incompatibility | None = None
        self.proof: Cause | None = None
        """Why there is no resolution, once `solve` has returned None."""
        for wish in requirements:
            self._wish(wish)

    def solve(self) -> dict[PluginName, int] | None:
        """Return a resolution as positions of releases, or None where there is none.

        Raises: LimitSpent when the budget is.
        """
        while self.proof is None:
            conflict = self._propagate()
            if conflict is not None:
                self.budget.spend()
                self._learn(conflict)
            elif (plugin := self._agenda.next()) is not None:
                self.budget.spend()
                self._decide(plugin)
            elif (plugin := self._unsaid()) is not None:
                self.budget.spend()
                self._settle(plugin, ABSENT)
            else:
                return self._chosen()
        return None

    def forbid(self, terms: Mapping[PluginName, int], cause: Fact) -> None:
        """Add an incompatibility from outside. A plugin that it names is not read for that."""
        numbered = {self._number(name): mask for name, mask in terms.items()}
        self._optional |= numbered.keys()
        self._add(numbered, cause)

    def _chosen(self) -> dict[PluginName, int]:
        taken = zip(self._names, self._solution.left, strict=True)
        return {name: left.bit_length() - 2 for name, left in taken if not left & ABSENT}

    def _propagate(self) -> Incompatibility | None:
        conflict, self._conflict = self._conflict, None
        while conflict is None and self._changed:
            conflict = self._visit(self._changed.pop())
        if conflict is not None:
            self._changed.clear()
        return conflict

    def _visit(self, plugin: int) -> Incompatibility | None:
        """Look at what watches a plugin that was narrowed: go and watch another term, derive, or return a conflict."""
        left, kept, watchers = self._solution.left, [], self._watchers[plugin]
        for place, watcher in enumerate(watchers):
            if left[plugin] & watcher[0]:
                kept.append(watcher)
                continue
            incompatibility = watcher[1]
            other = self._other(incompatibility, plugin)
            mask = incompatibility.masks[0]
            if not left[other] & mask:
                kept.append(watcher)
            elif not self._watch_another(incompatibility):
                kept.append(watcher)
                if not left[other] & ~mask:
                    self._watchers[plugin] = kept + watchers[place + 1 :]
                    return incompatibility
                self._narrow(other, ~mask, incompatibility)
        self._watchers[plugin] = kept
        return None

    @staticmethod
    def _other(incompatibility: Incompatibility, plugin: int) -> int:
        """Put the watched term of the plugin second, and return the plugin of the first."""
        plugins, masks = incompatibility.plugins, incompatibility.masks
        if plugins[0] == plugin:
            plugins[0], plugins[1] = plugins[1], plugins[0]
            masks[0], masks[1] = masks[1], masks[0]
        return plugins[0]

    def _watch_another(self, incompatibility: Incompatibility) -> bool:
        """Watch a term that does not hold in place of the second, if there is one."""
        plugins, masks, left = incompatibility.plugins, incompatibility.masks, self._solution.left
        for place in range(2, len(plugins)):
            if left[plugins[place]] & ~masks[place]:
                plugins[1], plugins[place] = plugins[place], plugins[1]
                masks[1], masks[place] = masks[place], masks[1]
                self._watchers[plugins[1]].append((~masks[1], incompatibility))
                return True
        return False

    def _narrow(self, plugin: int, mask: int, cause: Incompatibility) -> None:
        left = self._solution.left[plugin]
        if left & mask != left:
            self._solution.derive(plugin, left & mask, cause)
            self._changed.append(plugin)
            self._agenda.offer(plugin)

    def _add(self, terms: dict[int, int], cause: Cause) -> None:
        """Take in an incompatibility, and draw from it what follows now."""
        incompatibility = Incompatibility(terms, cause)
        plugins, masks, left = incompatibility.plugins, incompatibility.masks, self._solution.left
        if len(plugins) > 1:
            self._watch(incompatibility)
        elif plugins:
            self._alone[plugins[0]].append(incompatibility)
        if len(plugins) < 2 or not left[plugins[1]] & ~masks[1]:
            self._rule_out_first(incompatibility)

    def _rule_out_first(self, incompatibility: Incompatibility) -> None:
        """Draw what follows from an incompatibility of which all terms but the first hold."""
        plugins, masks = incompatibility.plugins, incompatibility.masks
        if not plugins or not self._solution.left[plugins[0]] & ~masks[0]:
            self._conflict = self._conflict or incompatibility
        else:
            self._narrow(plugins[0], ~masks[0], incompatibility)

    def _watch(self, incompatibility: Incompatibility) -> None:
        """Watch two terms that do not hold, or else those that came to hold last and so will cease to first."""
        plugins, masks, left = incompatibility.plugins, incompatibility.masks, self._solution.left
        if len(plugins) > 2 or not left[plugins[0]] & ~masks[0]:
            order = sorted(range(len(plugins)), key=lambda place: -self._holds_since(plugins[place], masks[place]))
            plugins[:], masks[:] = [plugins[place] for place in order], [masks[place] for place in order]
        self._watchers[plugins[0]].append((~masks[0], incompatibility))
        self._watchers[plugins[1]].append((~masks[1], incompatibility))

    def _holds_since(self, plugin: int, mask: int) -> float:
        if self._solution.left[plugin] & ~mask:
            return float("inf")
        return self._solution.satisfied_at(plugin, mask)

    def _learn(self, conflict: Incompatibility) -> None:
        """Resolve a conflict: learn why, and go back to where that would have said something else."""
        solution, cause = self._solution, conflict.cause
        terms = dict(zip(conflict.plugins, conflict.masks, strict=True))
        while terms:
            latest, second = self._latest_two(terms)
            if solution.level_of(latest) > solution.level_of(second):
                break
            narrowed, why = solution.derivation(latest)
            self._agenda.count_conflict(narrowed)
            terms = resolvent(terms, dict(zip(why.plugins, why.masks, strict=True)), narrowed)
            cause = Derived(cause, why, self._names[narrowed])
        else:
            self.proof = cause
            return
        for plugin in terms:
            self._agenda.count_conflict(plugin)
        self._go_back(solution.level_of(second))
        for plugin in terms:
            self._agenda.offer(plugin)
        self._add(terms, cause)

    def _latest_two(self, terms: dict[int, int]) -> tuple[int, int]:
        """Return the indices of the last two assignments at which a term of a conflict came to hold; -1 for none."""
        latest = second = -1
        for plugin, mask in terms.items():
            index = self._solution.satisfied_at(plugin, mask)
            if index > latest:
                latest, second = index, latest
            elif index > second:
                second = index
        return latest, second

    def _go_back(self, level: int) -> None:
        self._changed.clear()
        undone = self._solution.backtrack(level)
        for plugin in sorted(undone):
            self._agenda.reopen(plugin)
            # What holds by itself was perhaps first drawn at a level that is undone.
            for incompatibility in self._alone[plugin]:
                self._rule_out_first(incompatibility)

    def _decide(self, plugin: int) -> None:
        """Take the best choice left, once what it requires has been taken in and has not ruled it out."""
        name, candidates = self._names[plugin], self._candidates[plugin]
        if candidates is None:
            self._loaded(name)
            self._agenda.offer(plugin)
            return
        position = candidates.preferred(self._solution.left[plugin] >> 1)
        wants = candidates.releases[position].requires.plugins
        self._catalogue.prefetch(other for other, _ in wants)
        for other, wanted in wants:
            if self._edges is None or (name, other) in self._edges:
                self._require(candidates, plugin, other, wanted)
        choice = 2 << position
        if self._conflict is None and self._solution.left[plugin] & choice:
            self._settle(plugin, choice)
        else:
            self._agenda.offer(plugin)

    def _settle(self, plugin: int, choice: int) -> None:
        self._agenda.settle(plugin)
        self._solution.decide(plugin, choice)
        self._changed.append(plugin)

    def _unsaid(self) -> int | None:
        """Return a plugin that nothing requires, but of which something from outside must know that it is not taken."""
        left = self._solution.left
        return next(
            (plugin for plugin in sorted(self._optional) if left[plugin] & ABSENT and left[plugin] != ABSENT), None
        )

    def _wish(self, wish: Requirement) -> None:
        number, inside = self._loaded(wish.name), self._in_range(wish.name, wish.range)
        self._add({number: ~inside} if inside else {}, Wished(wish))

    def _require(self, candidates: Candidates, plugin: int, other: PluginName, wanted: Range) -> None:
        """Say once for all releases of a plugin that require the same that it cannot be otherwise."""
        key = (candidates.name, other, wanted.text)
        if key in self._required:
            return
        self._required.add(key)
        requirers, number = candidates.requirers[other][wanted] << 1, self._loaded(other)
        inside = self._in_range(other, wanted)
        cause = Requires(candidates.name, other, wanted)
        if number == plugin:
            self._add({plugin: requirers & ~inside}, cause)
        elif inside:
            self._add({plugin: requirers, number: ~inside}, cause)
        else:
            self._add({plugin: requirers}, cause)

    def _in_range(self, name: PluginName, wanted: Range) -> int:
        return self._catalogue[name].in_range(wanted) << 1

    def _number(self, name: PluginName) -> int:
        """Return the number of a plugin, of which nothing may have been read yet."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = self._solution.add_plugin()
            self._names.append(name)
            self._candidates.append(None)
            self._watchers.append([])
            self._alone.append([])
            self._agenda.add_plugin(name)
        return number

    def _loaded(self, name: PluginName) -> int:
        """Return the number of a plugin of which the releases are known, and what rules some of them out."""
        number = self._numbers.get(name)
        if number is None or self._candidates[number] is None:
            candidates = self._catalogue[name]
            number = self._number(name)
            self._candidates[number] = candidates
            self._agenda.may_bound(number, candidates.requirers)
            self._add({number: ~(candidates.usable << 1 | ABSENT)}, Unusable(name))
            for ceiling in self._ceilings:
                if ceiling.name == name:
                    self._add({number: ~(self._in_range(name, ceiling.range) | ABSENT)}, Held(ceiling))
        return number

"""From requirements and a target to a resolution without silent fallback. Pure: the provider alone may do I/O.

1. Requirements that no release can meet are refused before anything else is read.
2. The first resolution found is the answer if nothing in it is a fallback.
3. If something is, that is forbidden and the search goes on; then accepted fallbacks are let in.
4. Where neither is found, the fewest fallbacks found are refused, each newer release with the fact that excluded it.
   The searches of 3 and 4 have a step limit of their own: at it, refusing what was found first is still right.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import MappingProxyType

from manifests.errors import NotFound, Undecided
from manifests.fit import Unknown
from manifests.index import ReleaseEntry, VariantEntry
from manifests.names import PluginName
from manifests.target import Target
from manifests.versions import Version
from spm_client.resolve.budget import Budget, LimitSpent, never
from spm_client.resolve.catalogue import Catalogue, positions
from spm_client.resolve.explain import EXPLAIN_STEPS, failure, version_not_found
from spm_client.resolve.fallback import FallbackRule
from spm_client.resolve.fit import Fits, judge_for
from spm_client.resolve.incompatibility import NoFallback
from spm_client.resolve.provider import Provider
from spm_client.resolve.refusal import FallbackTeller
from spm_client.resolve.requirement import Requirement
from spm_client.resolve.requirers import Requirers, Terms
from spm_client.resolve.solver import Chosen, Solver
from spm_client.resolve.words import listed

MAX_STEPS = 200_000
BETTER_STEPS = 4_000
NOTHING: frozenset[PluginName] = frozenset()
_PROBE = "`spm target probe` on that host writes a target with what can be known of it"
_HINTS = {"published": "leave `--exclude-newer` away, or ask for a release by its version"}
UNLOCKED: Mapping[PluginName, Version] = MappingProxyType({})
UNHELD: Mapping[PluginName, frozenset[str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One release taken, by one variant. `fallback` is the sentence to record where a lesser thing was accepted."""

    name: PluginName
    version: Version
    release: ReleaseEntry
    variant: VariantEntry
    fallback: str | None
    requested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A pin for every plugin that the requirements need, ordered by name."""

    pins: tuple[Pin, ...]


def resolve(
    provider: Provider,
    requirements: Iterable[Requirement],
    target: Target,
    *,
    pins: Iterable[Requirement] = (),
    accept_fallback: Collection[PluginName] = NOTHING,
    pre: Collection[PluginName] = NOTHING,
    locked: Mapping[PluginName, Version] = UNLOCKED,
    held_builds: Mapping[PluginName, frozenset[str]] = UNHELD,
    exclude_newer: datetime | None = None,
    force_arch: str | None = None,
    max_steps: int = MAX_STEPS,
    is_late: Callable[[], bool] = never,
) -> Resolution:
    """Return the newest releases that meet the requirements on the target, the same ones for the same input.

    `pins` bound a plugin without asking for it. `locked` releases are kept where they still do, yanked or old;
    by a build that is less specific than could be only where it is one of the `held_builds` (digests of manifests).
    Releases published after `exclude_newer` are left out. With `force_arch` (`sm_86`), only device code for just
    that is taken. `is_late` ends the search when the caller's time is over.
    Raises: NotFound, Unsatisfiable, FallbackRefused, IncompatibleTarget; Undecided where a fact is missing that would
    decide, after `max_steps`, or when it is late; and whatever the provider raises.
    """
    wishes, ceilings = _ordered(requirements), _ordered(pins)
    catalogue = Catalogue(
        provider=provider,
        judge=judge_for(target, exclude_newer=exclude_newer, force_arch=force_arch),
        wishes=(*wishes, *ceilings),
        pre=frozenset(pre),
        locked=locked,
        held_builds=held_builds,
        is_offered=partial(_is_offered, exclude_newer),
    )
    return Problem(catalogue, wishes, ceilings, frozenset(accept_fallback), Budget(max_steps, is_late)).solve()


def _ordered(wishes: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(wishes, key=lambda wish: (wish.name, wish.range.text, wish.source)))


class Problem:
    """One question to the solver, and the rule of fallbacks over its answers."""

    def __init__(
        self,
        catalogue: Catalogue,
        requirements: tuple[Requirement, ...],
        ceilings: tuple[Requirement, ...],
        accepted: frozenset[PluginName],
        budget: Budget,
        *,
        better_steps: int = BETTER_STEPS,
    ) -> None:
        self._catalogue = catalogue
        self._requirements = requirements
        self._ceilings = ceilings
        self._accepted = accepted
        self._budget = budget
        self._better_budget = Budget(better_steps, budget.is_late)
        self._is_undecided = False
        self._requirers = Requirers(catalogue)
        self._rule = FallbackRule(catalogue, self._requirers)

    def solve(self) -> Resolution:
        """Return the resolution, or refuse as `resolve` says."""
        return self._resolution(self.choose())

    def choose(self) -> Chosen:
        """Return the positions of the releases to take, or refuse as `resolve` says."""
        self._refuse_what_is_not_there()
        solver = self._solver(self._budget)
        first = solver.solve()
        if first is None:
            assert solver.proof is not None, "a search without an answer has a proof"
            raise self._missing() or failure(self._catalogue, solver.proof, self._explaining())
        chosen = self._without_forbidden(solver, first)
        self._refuse_unknown(chosen)
        if refusal := self._passed_over_for_missing(chosen):
            raise refusal
        if forbidden := tuple(self._rule.forbidden(chosen, self._accepted)):
            raise self._missing() or self._teller(chosen).refusal(forbidden)
        return chosen

    def _explaining(self) -> Budget:
        return Budget(EXPLAIN_STEPS, self._budget.is_late)

    def _solver(self, budget: Budget) -> Solver:
        return Solver(self._catalogue, self._requirements, self._ceilings, budget)

    def _refuse_what_is_not_there(self) -> None:
        self._catalogue.prefetch(wish.name for wish in self._requirements)
        for wish in self._requirements:
            refusal = version_not_found(self._catalogue, wish)
            if refusal is not None:
                raise self._catalogue.missing.get(wish.name, refusal)

    def _without_forbidden(self, solver: Solver, first: Chosen) -> Chosen:
        """Return the best resolution there is: no fallback, else accepted ones only, else few forbidden ones."""
        if not self._rule.forbidden(first, NOTHING):
            return first
        solver.budget = self._better_budget
        if (clean := self._better(solver, first, NOTHING)) is not None:
            return clean
        if missing := self._missing():
            raise missing
        if not self._rule.forbidden(first, self._accepted):
            return first
        if self._accepted and (accepted := self._anew(self._accepted)) is not None:
            return accepted
        return self._with_fewest(first)

    def _with_fewest(self, chosen: Chosen) -> Chosen:
        """Drop one needed acceptance after the other, as long as a resolution remains."""
        needed = {fallback.name for fallback in self._rule.forbidden(chosen, self._accepted)}
        for name in sorted(needed):
            found = self._anew(self._accepted | (needed - {name}))
            if found is not None:
                chosen = found
                needed = {fallback.name for fallback in self._rule.forbidden(chosen, self._accepted)}
        return chosen

    def _anew(self, exempt: frozenset[PluginName]) -> Chosen | None:
        solver = self._solver(self._better_budget)
        try:
            return self._better(solver, solver.solve(), exempt)
        except LimitSpent:
            self._is_undecided = True
            return None

    def _better(self, solver: Solver, chosen: Chosen | None, exempt: frozenset[PluginName]) -> Chosen | None:
        """Go on from a resolution until one has no fallback but of those exempt; None where none is found."""
        try:
            while chosen is not None and (found := self._objections(chosen, exempt)):
                for name, terms in found:
                    solver.budget.spend()
                    solver.forbid(terms(), NoFallback(name))
                chosen = solver.solve()
            return chosen
        except LimitSpent:
            self._is_undecided = True
            return None

    def _objections(
        self, chosen: Chosen, exempt: frozenset[PluginName]
    ) -> list[tuple[PluginName, Callable[[], Terms]]]:
        """Return what speaks against a resolution: plugins that nothing taken requires, else fallbacks."""
        stray = self._requirers.unsupported(chosen, (wish.name for wish in self._requirements))
        if stray:
            return [(name, partial(self._requirers.stray, name, stray)) for name in sorted(stray)]
        return [(one.name, partial(self._rule.terms, one)) for one in self._rule.forbidden(chosen, exempt)]

    def _missing(self) -> NotFound | None:
        """Return the error of a plugin that the registry does not have, saying who requires it."""
        return next((self._not_there(name) for name in sorted(self._catalogue.missing)), None)

    def _passed_over_for_missing(self, chosen: Chosen) -> NotFound | None:
        """Return the error of a plugin that is not there, where a release newer than what is taken requires it.

        That the registry lacks what it lists is never a reason to take something older.
        """
        for name in sorted(self._catalogue.missing):
            for other, position in chosen.items():
                newer = self._asked_for(other) & ((1 << position) - 1)
                if any(newer & releases for releases in self._catalogue[other].requirers.get(name, {}).values()):
                    return self._not_there(name)
        return None

    def _not_there(self, name: PluginName) -> NotFound:
        error = self._catalogue.missing[name]
        who = []
        for other in sorted(self._catalogue.known):
            candidates = self._catalogue[other]
            for releases in candidates.requirers.get(name, {}).values():
                if found := releases & self._asked_for(other):
                    who.append(f"`{other}` {listed(str(candidates.releases[one].version) for one in positions(found))}")
        by = f"; it is required by {', '.join(who)}" if who else ""
        refusal = NotFound(f"{error.message}{by}", hint=error.hint, **error.context)
        refusal.__cause__ = error
        return refusal

    def _asked_for(self, name: PluginName) -> int:
        """Return the releases of a plugin that could be taken as far as the requirements themselves say."""
        candidates = self._catalogue[name]
        bits = candidates.usable
        for wanted in self._catalogue.wishes_for(name):
            bits &= candidates.in_range(wanted)
        return bits

    def _refuse_unknown(self, chosen: Chosen) -> None:
        for name in sorted(chosen):
            verdict = self._catalogue[name].verdicts[chosen[name]]
            if isinstance(verdict, Unknown):
                version = self._catalogue.release(name, chosen[name]).version
                raise Undecided(
                    f"whether `{name}` {version} fits cannot be decided: it {verdict.text}",
                    reason=f"unknown:{verdict.fact}",
                    hint=_HINTS.get(verdict.fact, _PROBE),
                    plugin=name,
                    version=str(version),
                    fact=verdict.fact,
                )

    def _teller(self, chosen: Chosen) -> FallbackTeller:
        return FallbackTeller(
            self._catalogue,
            self._requirements,
            self._ceilings,
            chosen,
            self._explaining(),
            is_undecided=self._is_undecided,
        )

    def _resolution(self, chosen: Chosen) -> Resolution:
        teller = self._teller(chosen)
        fallbacks = {fallback.name: teller.sentence(fallback) for fallback in self._rule.fallbacks(chosen)}
        requested = {wish.name for wish in self._requirements}
        return Resolution(
            pins=tuple(
                self._pin(name, chosen[name], fallbacks.get(name), requested=name in requested)
                for name in sorted(chosen)
            )
        )

    def _pin(self, name: PluginName, position: int, fallback: str | None, *, requested: bool) -> Pin:
        candidates = self._catalogue[name]
        release, verdict = candidates.releases[position], candidates.verdicts[position]
        assert isinstance(verdict, Fits), "unknown and unfit releases were refused before"
        return Pin(
            name=name,
            version=release.version,
            release=release,
            variant=verdict.variant,
            fallback=fallback,
            requested=requested,
        )


def _is_offered(exclude_newer: datetime | None, release: ReleaseEntry) -> bool:
    """Tell whether a release was there at a moment; one that does not say is judged, not hidden."""
    return (
        exclude_newer is None or release.published is None or datetime.fromisoformat(release.published) <= exclude_newer
    )

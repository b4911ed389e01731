"""From requirements and a target to a resolution without silent fallback. Pure: the provider alone may do I/O.

1. Requirements that no release can meet are refused before anything else is read.
2. The first resolution found is the answer if nothing in it is a fallback.
3. If something is, a resolution without fallback is searched for, then one with accepted fallbacks only.
4. Where neither is found, the fewest fallbacks found are refused, each newer release with the fact that excluded it.
   The searches of 3 and 4 have a step limit of their own: at it, refusing what was found first is still right.
"""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

from manifests.errors import NotFound, Undecided
from manifests.fit import Unknown
from manifests.index import ReleaseEntry, VariantEntry
from manifests.names import PluginName
from manifests.target import Target
from manifests.versions import Version
from spm_client.resolve.catalogue import Catalogue
from spm_client.resolve.explain import failure, version_not_found
from spm_client.resolve.fallback import FallbackRule
from spm_client.resolve.fit import Fits
from spm_client.resolve.provider import Provider
from spm_client.resolve.refusal import FallbackTeller
from spm_client.resolve.requirement import Requirement
from spm_client.resolve.search import Budget, Chosen, LimitSpent, search

MAX_STEPS = 200_000
BETTER_STEPS = 4_000
NOTHING: frozenset[PluginName] = frozenset()
UNLOCKED: Mapping[PluginName, Version] = MappingProxyType({})


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
    max_steps: int = MAX_STEPS,
) -> Resolution:
    """Return the newest releases that meet the requirements on the target, the same ones for the same input.

    `pins` bound a plugin without asking for it. `locked` releases are kept where they still do, yanked or old.
    Raises: NotFound, Unsatisfiable, FallbackRefused, IncompatibleTarget; Undecided where the target lacks a fact that
    would decide, or after `max_steps`; and whatever the provider raises.
    """
    return _Problem(
        provider,
        target,
        tuple(requirements),
        tuple(pins),
        frozenset(accept_fallback),
        frozenset(pre),
        locked,
        max_steps,
    ).solve()


class _Problem:
    def __init__(
        self,
        provider: Provider,
        target: Target,
        requirements: tuple[Requirement, ...],
        ceilings: tuple[Requirement, ...],
        accepted: frozenset[PluginName],
        pre: frozenset[PluginName],
        locked: Mapping[PluginName, Version],
        max_steps: int,
    ) -> None:
        self._requirements = tuple(sorted(requirements, key=lambda wish: (wish.name, wish.range.text, wish.source)))
        self._ceilings = tuple(sorted(ceilings, key=lambda wish: (wish.name, wish.range.text, wish.source)))
        self._accepted = accepted
        self._budget = Budget(max_steps)
        self._better_budget = Budget(BETTER_STEPS)
        self._catalogue = Catalogue(provider, target, (*self._requirements, *self._ceilings), pre=pre, locked=locked)
        self._rule = FallbackRule(self._catalogue)

    def solve(self) -> Resolution:
        self._refuse_what_is_not_there()
        first = search(self._catalogue, self._requirements, self._ceilings, self._budget)
        if first is None:
            raise self._missing() or failure(self._catalogue, self._requirements, self._ceilings)
        chosen = self._without_forbidden(first)
        self._refuse_unknown(chosen)
        if forbidden := tuple(self._rule.forbidden(chosen, self._accepted)):
            raise self._missing() or self._teller(chosen).refusal(forbidden)
        return self._resolution(chosen)

    def _refuse_what_is_not_there(self) -> None:
        for wish in self._requirements:
            refusal = version_not_found(self._catalogue[wish.name], wish)
            if refusal is not None:
                raise self._catalogue.missing.get(wish.name, refusal)

    def _without_forbidden(self, first: Chosen) -> Chosen:
        """Return the best resolution there is: no fallback, else accepted ones only, else few forbidden ones."""
        if not any(self._rule.forbidden(first, NOTHING)):
            return first
        if (clean := self._better(NOTHING)) is not None:
            return clean
        if missing := self._missing():
            raise missing
        if self._accepted and (accepted := self._better(self._accepted)) is not None:
            return accepted
        return self._with_fewest(first)

    def _with_fewest(self, chosen: Chosen) -> Chosen:
        """Drop one needed acceptance after the other, as long as a resolution remains."""
        needed = {fallback.name for fallback in self._rule.forbidden(chosen, self._accepted)}
        for name in sorted(needed):
            found = self._better(self._accepted | (needed - {name}))
            if found is not None:
                chosen = found
                needed = {fallback.name for fallback in self._rule.forbidden(chosen, self._accepted)}
        return chosen

    def _better(self, exempt: frozenset[PluginName]) -> Chosen | None:
        with suppress(LimitSpent):
            return search(
                self._catalogue,
                self._requirements,
                self._ceilings,
                self._better_budget,
                objection=lambda chosen: self._rule.objection(chosen, exempt),
            )
        return None

    def _missing(self) -> NotFound | None:
        """Return the error of a plugin that the registry does not have, saying who requires it."""
        for name in sorted(self._catalogue.missing):
            error = self._catalogue.missing[name]
            who = sorted(
                {
                    other
                    for other, candidates in self._catalogue.known.items()
                    if any(required == name for r in candidates.releases for required, _ in r.requires.plugins)
                }
            )
            by = f"; it is required by {', '.join(f'`{other}`' for other in who)}" if who else ""
            refusal = NotFound(f"{error.message}{by}", hint=error.hint, **error.context)
            refusal.__cause__ = error
            return refusal
        return None

    def _refuse_unknown(self, chosen: Chosen) -> None:
        for name in sorted(chosen):
            verdict = self._catalogue[name].verdicts[chosen[name]]
            if isinstance(verdict, Unknown):
                version = self._catalogue.release(name, chosen[name]).version
                raise Undecided(
                    f"whether `{name}` {version} fits cannot be decided: it {verdict.text}",
                    reason=f"unknown:{verdict.fact}",
                    hint="`spm target probe` on that host writes a target with what can be known of it",
                    plugin=name,
                    version=str(version),
                    fact=verdict.fact,
                )

    def _teller(self, chosen: Chosen) -> FallbackTeller:
        return FallbackTeller(self._catalogue, self._requirements, self._ceilings, chosen)

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

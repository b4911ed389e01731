"""What counts as a fallback, exactly as the design's section 5 says. Forbids; does not choose.

N is the newest non-yanked release of a plugin inside the ranges that the root and the chosen releases put on it. A
chosen release older than N is a *version fallback*; a variant taken while a more specific one for this kind of machine
cannot be used is a *variant fallback*. The lockfile exempts the release that it pins, by the
build that it pins; an acceptance exempts the plugin.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve.catalogue import Candidates, Catalogue, positions
from spm_client.resolve.fit import Fits, Verdict
from spm_client.resolve.incompatibility import EVERYTHING
from spm_client.resolve.requirers import Requirers, Terms
from spm_client.resolve.solver import Chosen


@dataclass(frozen=True, slots=True)
class Fallback:
    """A lesser choice: the newer releases (positions, newest first) or, without these, a less specific variant."""

    name: PluginName
    taken: int
    newer: tuple[int, ...]
    is_locked: bool


class FallbackRule:
    """Usage: `rule.forbidden(chosen, exempt)`, and `solver.forbid(rule.terms(fallback), ...)` to look for better."""

    def __init__(self, catalogue: Catalogue, requirers: Requirers) -> None:
        self._catalogue = catalogue
        self._requirers = requirers
        self._last: tuple[Chosen, list[Fallback]] = ({}, [])

    def fallbacks(self, chosen: Chosen) -> list[Fallback]:
        """Return every fallback of a whole resolution, ordered by plugin."""
        if self._last[0] is not chosen:
            self._last = (chosen, list(self._found(chosen)))
        return self._last[1]

    def _found(self, chosen: Chosen) -> Iterator[Fallback]:
        wanted: dict[PluginName, list[Range]] = {}
        for name, position in chosen.items():
            for other, range_ in self._catalogue.release(name, position).requires.plugins:
                wanted.setdefault(other, []).append(range_)
        for name in sorted(chosen):
            if (fallback := self._fallback(name, chosen[name], wanted.get(name, ()))) is not None:
                yield fallback

    def forbidden(self, chosen: Chosen, exempt: Collection[PluginName]) -> list[Fallback]:
        """Return the fallbacks that neither the lockfile nor an acceptance allows."""
        return [one for one in self.fallbacks(chosen) if not one.is_locked and one.name not in exempt]

    def terms(self, fallback: Fallback) -> Terms:
        """Return what cannot all be chosen if the fallback is forbidden, in any resolution.

        Whoever takes less than the newer release, while nothing that is taken excludes that one, has a fallback.
        """
        name, candidates = fallback.name, self._catalogue[fallback.name]
        if not fallback.newer:
            return {name: 2 << fallback.taken}
        newer = 1 << fallback.newer[0]
        older = candidates.usable & ~(newer | newer - 1)
        if candidates.locked is not None:
            older &= ~(1 << candidates.locked)
        terms = self._requirers.excluding(name, fallback.newer[0])
        return terms | {name: older << 1 & terms.get(name, EVERYTHING)}

    def _fallback(self, name: PluginName, position: int, wanted: Collection[Range]) -> Fallback | None:
        candidates = self._catalogue[name]
        newer = candidates.unyanked & ((1 << position) - 1)
        if newer:
            for range_ in (*self._catalogue.wishes_for(name), *wanted):
                newer &= candidates.in_range(range_)
        verdict, is_held = candidates.verdicts[position], position == candidates.locked
        is_lesser = isinstance(verdict, Fits) and bool(verdict.passed_over)
        if is_lesser and not (is_held and _is_held_build(candidates, verdict)) and (is_held or not newer):
            # A lock holds a release by one build: another one, though of the same version, is a choice made anew.
            return Fallback(name, position, (), is_locked=False)
        return Fallback(name, position, tuple(positions(newer)), is_locked=is_held) if newer or is_lesser else None


def _is_held_build(candidates: Candidates, verdict: Verdict) -> bool:
    return isinstance(verdict, Fits) and verdict.variant.manifest_sha256 in candidates.held_builds

"""What counts as a fallback, exactly as the design's section 5 says. Forbids; does not choose.

N is the newest non-yanked release of a plugin inside the ranges that the root and the chosen releases put on it. A
chosen release older than N is a *version fallback*; a variant taken while a more specific one for this kind of machine
cannot be used is a *variant fallback*. The lockfile exempts the release that it pins, an acceptance the plugin.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve.catalogue import Catalogue, positions
from spm_client.resolve.fit import Fits
from spm_client.resolve.search import Blame, Chosen


@dataclass(frozen=True, slots=True)
class Fallback:
    """A lesser choice: the newer releases (positions, newest first) or, without these, a less specific variant."""

    name: PluginName
    newer: tuple[int, ...]
    is_locked: bool


class FallbackRule:
    """Usage: `search(..., objection=rule.objection(exempt))`, `rule.fallbacks(chosen)`."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def fallbacks(self, chosen: Chosen) -> Iterator[Fallback]:
        """Yield every fallback of a whole resolution, ordered by plugin."""
        wanted = _wanted_ranges(self._catalogue, chosen)
        for name in sorted(chosen):
            if (fallback := self._fallback(name, chosen[name], wanted.get(name, ()))) is not None:
                yield fallback

    def forbidden(self, chosen: Chosen, exempt: Collection[PluginName]) -> Iterator[Fallback]:
        """Yield the fallbacks that neither the lockfile nor an acceptance allows."""
        for fallback in self.fallbacks(chosen):
            if not fallback.is_locked and fallback.name not in exempt:
                yield fallback

    def objection(self, chosen: Chosen, exempt: Collection[PluginName]) -> Blame | None:
        """Blame the first forbidden fallback on the plugins whose other choice could undo it; None without one."""
        first = next(self.forbidden(chosen, exempt), None)
        if first is None:
            return None
        name, newer = first.name, first.newer
        payers = self._payers(name, newer[0], chosen) if newer else frozenset()
        return frozenset({name}) | (payers & chosen.keys())

    def _fallback(self, name: PluginName, position: int, wanted: Collection[Range]) -> Fallback | None:
        candidates = self._catalogue[name]
        bits = candidates.unyanked & ((1 << position) - 1)
        for range_ in (*self._catalogue.wishes_for(name), *wanted):
            bits &= candidates.in_range(range_)
        verdict = candidates.verdicts[position]
        if not bits and not (isinstance(verdict, Fits) and verdict.passed_over):
            return None
        return Fallback(name, tuple(positions(bits)), is_locked=position == candidates.locked)

    def _payers(self, name: PluginName, newer: int, chosen: Chosen) -> Blame:
        """Return the plugins of which some release excludes the newer one, at once or through what it brings in.

        A plugin whose releases are not known yet may do so too.
        """
        known = self._catalogue.known
        bit = 1 << newer
        payers = {
            other
            for other, candidates in known.items()
            for release in candidates.releases
            for required, wanted in release.requires.plugins
            if required not in known or (required == name and not self._catalogue[name].in_range(wanted) & bit)
        }
        while grown := self._bring_in(payers):
            payers |= grown
        return frozenset(payers)

    def _bring_in(self, payers: Collection[PluginName]) -> set[PluginName]:
        return {
            other
            for other, candidates in self._catalogue.known.items()
            if other not in payers
            and any(name in payers for release in candidates.releases for name, _ in release.requires.plugins)
        }


def _wanted_ranges(catalogue: Catalogue, chosen: Chosen) -> Mapping[PluginName, list[Range]]:
    wanted: dict[PluginName, list[Range]] = {}
    for name, position in chosen.items():
        for other, range_ in catalogue.release(name, position).requires.plugins:
            wanted.setdefault(other, []).append(range_)
    return wanted

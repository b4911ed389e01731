"""Who requires what, over all releases of the plugins read so far, chosen or not. Decides nothing.

From it follow incompatibilities that hold in every resolution there is, also over plugins that have not been read yet:
these can only be taken if one is that has been named and not read.
"""

from collections.abc import Iterable

from manifests.names import PluginName
from spm_client.resolve.catalogue import Catalogue
from spm_client.resolve.incompatibility import ABSENT, EVERYTHING
from spm_client.resolve.solver import Chosen

Terms = dict[PluginName, int]


class Requirers:
    """Usage: `requirers.excluding("mel", 1 << 0)`, `requirers.stray("mel", {"mel"})`."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def excluding(self, name: PluginName, position: int) -> Terms:
        """Return terms that say: nothing that is taken excludes this release of the plugin."""
        in_range = self._catalogue[name].in_range
        return self._without(
            (candidates.name, releases)
            for candidates in self._catalogue.known.values()
            for wanted, releases in candidates.requirers.get(name, {}).items()
            if not in_range(wanted) >> position & 1
        )

    def unsupported(self, chosen: Chosen, roots: Iterable[PluginName]) -> frozenset[PluginName]:
        """Return what is taken though nothing that is asked for leads to it."""
        reached: set[PluginName] = set()
        todo = [name for name in roots if name in chosen]
        while todo:
            name = todo.pop()
            if name not in reached:
                reached.add(name)
                release = self._catalogue.release(name, chosen[name])
                todo.extend(other for other, _ in release.requires.plugins if other in chosen)
        return frozenset(chosen.keys() - reached)

    def stray(self, name: PluginName, names: frozenset[PluginName]) -> Terms:
        """Return terms that say: a plugin is taken, one of these, and nothing outside of them requires any of them."""
        return {name: ~ABSENT} | self._without(
            (candidates.name, releases)
            for candidates in self._catalogue.known.values()
            if candidates.name not in names
            for other in names & candidates.requirers.keys()
            for releases in candidates.requirers[other].values()
        )

    def _without(self, taken: Iterable[tuple[PluginName, int]]) -> Terms:
        """Return terms that say: none of these releases is taken, and nothing that is named and not read."""
        known = self._catalogue.known
        terms = {name: ABSENT for one in known.values() for name in one.requirers if name not in known}
        for name, releases in taken:
            terms[name] = terms.get(name, EVERYTHING) & ~(releases << 1)
        return terms

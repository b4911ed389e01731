"""What the solver knows of each plugin: its releases as positions, newest first, and sets of them as bits.

Reads a plugin's releases from the provider when it first matters. Chooses nothing.
"""

from collections.abc import Iterator, Mapping, Sequence

from manifests.errors import NotFound
from manifests.fit import Misfit
from manifests.index import ReleaseEntry
from manifests.names import PluginName
from manifests.ranges import Range
from manifests.target import Target
from manifests.versions import Version
from spm_client.resolve.fit import Verdict, judge
from spm_client.resolve.provider import Provider
from spm_client.resolve.requirement import Requirement


class Candidates:
    """The releases of one plugin. Position 0 is the newest; a set of releases is an integer with those bits."""

    def __init__(
        self,
        name: PluginName,
        releases: Sequence[ReleaseEntry],
        target: Target,
        *,
        pre: bool,
        locked: Version | None,
        exact: Sequence[Range],
    ) -> None:
        self.name = name
        self.releases = tuple(sorted(releases, key=lambda release: release.version, reverse=True))
        self.verdicts: tuple[Verdict, ...] = tuple(judge(release, target) for release in self.releases)
        self.is_pre_allowed = pre
        self.locked = next((place for place, r in enumerate(self.releases) if r.version == locked), None)
        self.unyanked = self._bits(release.yanked is None for release in self.releases)
        named = self._bits(any(wanted.exact == release.version.key for wanted in exact) for release in self.releases)
        # A yanked release is never chosen anew: only where a person named exactly it, or the lockfile holds it.
        self.offered = self.unyanked | named | self._locked_bit
        self.usable = self.offered & self._bits(not isinstance(verdict, Misfit) for verdict in self.verdicts)
        self._in_range: dict[str, int] = {}

    def in_range(self, wanted: Range) -> int:
        """Return the releases in the range, the pre-release rule applied. A locked pre-release was let in before."""
        bits = self._in_range.get(wanted.text)
        if bits is None:
            bits = self._bits(
                wanted.contains(release.version, pre=self.is_pre_allowed or place == self.locked)
                for place, release in enumerate(self.releases)
            )
            self._in_range[wanted.text] = bits
        return bits

    def preferred(self, bits: int) -> Iterator[int]:
        """Yield positions of the set: the locked release, then newest first."""
        if bits & self._locked_bit and self.locked is not None:
            yield self.locked
            bits &= ~self._locked_bit
        yield from positions(bits)

    @property
    def _locked_bit(self) -> int:
        return 0 if self.locked is None else 1 << self.locked

    @staticmethod
    def _bits(facts: Iterator[bool] | Sequence[bool]) -> int:
        return sum(1 << place for place, fact in enumerate(facts) if fact)


def positions(bits: int) -> Iterator[int]:
    """Yield the positions in a set, newest release first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


class Catalogue:
    """All plugins met so far, for one set of requirements and one target.

    Usage: `catalogue[name].usable`.
    """

    def __init__(
        self,
        provider: Provider,
        target: Target,
        wishes: Sequence[Requirement],
        *,
        pre: frozenset[PluginName],
        locked: Mapping[PluginName, Version],
    ) -> None:
        self._provider = provider
        self._target = target
        self._wishes = wishes
        self._pre = pre
        self._locked = locked
        self.known: dict[PluginName, Candidates] = {}
        self.missing: dict[PluginName, NotFound] = {}

    def __getitem__(self, name: PluginName) -> Candidates:
        if name not in self.known:
            self.known[name] = Candidates(
                name,
                self._releases(name),
                self._target,
                pre=name in self._pre,
                locked=self._locked.get(name),
                exact=[wish.range for wish in self._wishes if wish.name == name],
            )
        return self.known[name]

    def release(self, name: PluginName, position: int) -> ReleaseEntry:
        return self[name].releases[position]

    def wishes_for(self, name: PluginName) -> list[Range]:
        return [wish.range for wish in self._wishes if wish.name == name]

    def _releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        try:
            return self._provider.releases(name)
        except NotFound as error:
            # Kept for `resolve`, which raises it unless the answer does without the plugin and is no fallback.
            self.missing[name] = error
            return ()

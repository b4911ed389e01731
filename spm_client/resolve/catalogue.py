"""What the solver knows of each plugin: its releases as positions, newest first, and sets of them as bits.

Reads a plugin's releases from the provider when it first matters. Chooses nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from manifests.errors import NotFound
from manifests.fit import Misfit
from manifests.index import ReleaseEntry
from manifests.names import PluginName
from manifests.ranges import Range
from manifests.versions import Version
from spm_client.resolve.fit import Verdict
from spm_client.resolve.provider import Provider, prefetcher
from spm_client.resolve.requirement import Requirement

Judge = Callable[[ReleaseEntry], Verdict]
"""Tells whether a release fits; the target, and what else a person bounds it by, are the judge's own."""


class Releases:
    """The releases of one plugin as one judge sees them, whoever asks for it. Position 0 is the newest."""

    def __init__(self, name: PluginName, releases: Sequence[ReleaseEntry], judge: Judge) -> None:
        self.name = name
        self.entries = tuple(sorted(releases, key=lambda release: release.version, reverse=True))
        self._judge = judge
        self._in_range: dict[tuple[str, bool], int] = {}

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        return tuple(map(self._judge, self.entries))

    @cached_property
    def fitting(self) -> int:
        return bits(not isinstance(verdict, Misfit) for verdict in self.verdicts)

    @cached_property
    def unyanked(self) -> int:
        return bits(release.yanked is None for release in self.entries)

    @cached_property
    def requirers(self) -> Mapping[PluginName, Mapping[Range, int]]:
        """Which releases require a plugin in a range: `releases.requirers["mel"][Range.parse("^2")]`."""
        found: dict[PluginName, dict[Range, int]] = {}
        for place, release in enumerate(self.entries):
            for other, wanted in release.requires.plugins:
                ranges = found.setdefault(other, {})
                ranges[wanted] = ranges.get(wanted, 0) | 1 << place
        return found

    def in_range(self, wanted: Range, *, pre: bool) -> int:
        """Return the releases in a range, all its pre-releases or only those that it names."""
        found = self._in_range.get((wanted.text, pre))
        if found is None:
            found = bits(wanted.contains(release.version, pre=pre) for release in self.entries)
            self._in_range[wanted.text, pre] = found
        return found

    def place_of(self, version: Version) -> int | None:
        return next((place for place, release in enumerate(self.entries) if release.version == version), None)


class Candidates:
    """The releases of one plugin in one problem. A set of releases is an integer with the bits of their positions."""

    def __init__(
        self,
        source: Releases,
        *,
        is_pre_allowed: bool,
        locked: Version | None,
        held_builds: frozenset[str],
        wishes: Sequence[Range],
    ) -> None:
        self.name = source.name
        self.releases = source.entries
        self.is_pre_allowed = is_pre_allowed
        self.held_builds = held_builds
        self.locked = None if locked is None else source.place_of(locked)
        self._source = source
        self._locked_bit = 0 if self.locked is None else 1 << self.locked
        named = {wanted.exact for wanted in wishes} - {None}
        exact = bits(release.version in named for release in self.releases) if named else 0
        # A yanked release is never chosen anew: only where a person named exactly it, or the lockfile holds it.
        self.offered = source.unyanked | exact | self._locked_bit
        self.usable = self.offered & source.fitting

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        return self._source.verdicts

    @property
    def unyanked(self) -> int:
        return self._source.unyanked

    @property
    def requirers(self) -> Mapping[PluginName, Mapping[Range, int]]:
        return self._source.requirers

    def in_range(self, wanted: Range) -> int:
        """Return the releases in the range, the pre-release rule applied. A locked pre-release was let in before."""
        if self.is_pre_allowed:
            return self._source.in_range(wanted, pre=True)
        found = self._source.in_range(wanted, pre=False)
        if self._locked_bit & ~found:
            found |= self._source.in_range(wanted, pre=True) & self._locked_bit
        return found

    def preferred(self, among: int) -> int:
        """Return the position to try first of a set that is not empty: the locked release, else the newest."""
        if self.locked is not None and among & self._locked_bit:
            return self.locked
        return (among & -among).bit_length() - 1


def bits(facts: Iterable[bool]) -> int:
    return sum(1 << place for place, fact in enumerate(facts) if fact)


def positions(found: int) -> Iterator[int]:
    """Yield the positions in a set, newest release first."""
    while found:
        lowest = found & -found
        yield lowest.bit_length() - 1
        found ^= lowest


@dataclass(slots=True, kw_only=True)
class Catalogue:
    """All plugins met so far, for one set of wishes: `catalogue[name].usable`.

    `shelf` may be shared by problems that have provider and judge in common.
    """

    provider: Provider
    judge: Judge
    wishes: Sequence[Requirement]
    pre: frozenset[PluginName]
    locked: Mapping[PluginName, Version]
    held_builds: Mapping[PluginName, frozenset[str]] = field(default_factory=dict)
    """Digests of the manifests by which locked releases are held."""
    is_offered: Callable[[ReleaseEntry], bool] = lambda _release: True
    """Whether a release is there at all: a person may want to know nothing of the newest."""
    shelf: dict[PluginName, Releases] = field(default_factory=dict)
    known: dict[PluginName, Candidates] = field(default_factory=dict)
    missing: dict[PluginName, NotFound] = field(default_factory=dict)
    hidden: dict[PluginName, list[ReleaseEntry]] = field(default_factory=dict)
    """What is there, and not offered."""
    _prefetch: Callable[[Sequence[PluginName]], None] = field(init=False)

    def __post_init__(self) -> None:
        self._prefetch = prefetcher(self.provider)

    def __getitem__(self, name: PluginName) -> Candidates:
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = Candidates(
                self._releases(name),
                is_pre_allowed=name in self.pre,
                locked=self.locked.get(name),
                held_builds=self.held_builds.get(name, frozenset()),
                wishes=self.wishes_for(name),
            )
        return found

    def prefetch(self, names: Iterable[PluginName]) -> None:
        """Tell the provider which plugins will be asked for next, if any is new."""
        if wanted := [name for name in names if name not in self.known and name not in self.shelf]:
            self._prefetch(wanted)

    def release(self, name: PluginName, position: int) -> ReleaseEntry:
        return self[name].releases[position]

    def wishes_for(self, name: PluginName) -> list[Range]:
        return [wish.range for wish in self.wishes if wish.name == name]

    def _releases(self, name: PluginName) -> Releases:
        found = self.shelf.get(name)
        if found is None:
            found = self.shelf[name] = Releases(name, self._asked(name), self.judge)
        return found

    def _asked(self, name: PluginName) -> Sequence[ReleaseEntry]:
        try:
            releases = self.provider.releases(name)
        except NotFound as error:
            # Kept for `resolve`, which raises it unless the answer does without the plugin and is no fallback.
            self.missing[name] = error
            return ()
        held = self.locked.get(name)
        parts: tuple[list[ReleaseEntry], list[ReleaseEntry]] = ([], [])
        for release in releases:
            parts[release.version == held or self.is_offered(release)].append(release)
        if parts[False]:
            self.hidden[name] = parts[False]
        return parts[True]

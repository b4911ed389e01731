"""What an install does, as values: the same of a dry run and of the run that then follows it. Does nothing itself."""

from dataclasses import dataclass

from manifests.errors import SpmError
from manifests.lockfile import Generation, InstalledEntry
from manifests.names import PluginName
from manifests.traps import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one plugin: `before` is None where it is new, equal to `after` where nothing changed."""

    before: InstalledEntry | None
    after: InstalledEntry
    yanked: str | None = None
    """Why the release was yanked, where it is kept all the same or was asked for exactly."""
    once_yanked: str | None = None
    """Why it had been yanked when it was seen here before, where it is taken anew and offered again."""

    @property
    def variant(self) -> str:
        """The tag of the build that is taken."""
        return self.after.release.removeprefix(str(self.after.version)).removeprefix("+") or "any"

    @property
    def verb(self) -> str:
        """Say in one word what became of the plugin; a repair shows in `Installed` alone."""
        if self.before == self.after:
            return "unchanged"
        if self.before is None:
            return "installed"
        if self.before.version == self.after.version:
            return "changed"
        return "upgraded" if self.before.version < self.after.version else "downgraded"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLongerTrusted:
    """An installed release that this command leaves alone, and that no host loads any more."""

    entry: InstalledEntry
    refusal: SpmError


@dataclass(frozen=True, slots=True, kw_only=True)
class Downloaded:
    """How many blobs the store lacked, and their bytes."""

    blobs: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """The generation that now stands, how it came, and the waste traps in what was asked for."""

    generation: Generation
    changes: tuple[Change, ...]
    findings: tuple[Finding, ...] = ()
    repaired: frozenset[PluginName] = frozenset()
    """What was installed before and found damaged, now laid out anew."""
    dropped: tuple[InstalledEntry, ...] = ()
    """What nothing requires any more, or what is not in an exact resolution."""
    wished: frozenset[PluginName] = frozenset()
    refused: tuple[NoLongerTrusted, ...] = ()
    """What stays installed though its signatures count no longer."""
    downloaded: Downloaded = Downloaded()
    is_exact: bool = False
    """Everything else was removed."""

    def verb(self, change: Change) -> str:
        """Say in one word what became of one plugin."""
        return "repaired" if change.after.name in self.repaired else change.verb

"""Release versions: SemVer spelling, ordered by `packaging`. Knows nothing of ranges."""

import re
from dataclasses import dataclass, field
from functools import total_ordering

from packaging.version import Version as PackagingVersion

from manifests.errors import UsageError

MAX_VERSION_LENGTH = 64
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_VERSION = re.compile(
    rf"(?P<release>{_NUMBER}\.{_NUMBER}\.{_NUMBER})"
    rf"(?:-(?P<label>alpha|beta|rc|dev)\.(?P<number>{_NUMBER}))?"
    r"(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_LABELS = {"alpha": "a", "beta": "b", "rc": "rc", "dev": ".dev"}


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One release version: `X.Y.Z`, `-alpha.N`, `-beta.N`, `-rc.N` or `-dev.N`, and an optional `+build`.

    The build part is kept in the text but has no part in equality or order: two releases that differ only there are
    the same version (SemVer 2.0.0, clause 10).
    """

    text: str
    key: PackagingVersion = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Return the version that the text spells.

        Raises: UsageError when it is not `X.Y.Z` with an allowed pre-release and build part.
        """
        match = _VERSION.fullmatch(text) if isinstance(text, str) and len(text) <= MAX_VERSION_LENGTH else None
        if match is None:
            raise UsageError(
                f"{text!r:.80} is not a version: write `X.Y.Z`, with `-alpha.N`, `-beta.N`, `-rc.N` or `-dev.N` "
                "for a pre-release",
                version=str(text)[:MAX_VERSION_LENGTH],
            )
        label = match["label"]
        suffix = f"{_LABELS[label]}{match['number']}" if label else ""
        return cls(text, PackagingVersion(match["release"] + suffix))

    @property
    def is_prerelease(self) -> bool:
        return self.key.is_prerelease

    @property
    def release(self) -> tuple[int, ...]:
        """The `(X, Y, Z)` part."""
        return self.key.release

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.key < other.key if isinstance(other, Version) else NotImplemented

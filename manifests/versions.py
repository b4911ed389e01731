"""Release versions: SemVer spelling, in the order of `packaging`. Knows nothing of ranges."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from manifests.errors import UsageError

if TYPE_CHECKING:
    from packaging.version import Version as PackagingVersion

MAX_VERSION_LENGTH = 64
_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_VERSION = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-(alpha|beta|rc|dev)\.({_NUMBER}))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_RANKS = {"dev": 0, "alpha": 1, "beta": 2, "rc": 3}
RELEASE_RANK = 4

SortKey = tuple[int, ...]
"""Orders versions as `packaging` does: X, Y, Z, the rank of the label (4 for a release), the label's number."""


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """One release version: `X.Y.Z`, `-alpha.N`, `-beta.N`, `-rc.N` or `-dev.N`, and an optional `+build`.

    The build part is kept in the text but has no part in equality or order: two releases that differ only there are
    the same version (SemVer 2.0.0, clause 10).
    """

    text: str
    sort_key: SortKey = field(repr=False)

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
        major, minor, patch, label, number = match.groups()
        rank = (_RANKS[label], int(number)) if label else (RELEASE_RANK, 0)
        return cls(text, (int(major), int(minor), int(patch), *rank))

    @property
    def is_prerelease(self) -> bool:
        return self.sort_key[3] != RELEASE_RANK

    @property
    def release(self) -> tuple[int, ...]:
        """The `(X, Y, Z)` part."""
        return self.sort_key[:3]

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.sort_key)

    def __eq__(self, other: object) -> bool:
        return self.sort_key == other.sort_key if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.sort_key < other.sort_key if isinstance(other, Version) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.sort_key <= other.sort_key if isinstance(other, Version) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.sort_key > other.sort_key if isinstance(other, Version) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.sort_key >= other.sort_key if isinstance(other, Version) else NotImplemented


def pep440_sort_key(text: str) -> SortKey | None:
    """Return where a version as Python spells it stands among releases, or None where the text is none.

    For what a host reports, such as `2.13.0+cpu` or `3.11`: the local part has no part in it. What lies between two
    releases that can be written here, such as `2.13.0.post1`, has the key of the lower one with a 1 behind it.
    """
    from packaging.version import InvalidVersion
    from packaging.version import Version as PackagingVersion

    try:
        version = PackagingVersion(text)
    except InvalidVersion:
        return None
    if version.epoch:
        return None  # Counted in another way than any release of a plugin names.
    release = (*version.release, 0, 0)
    if any(release[3:]) or (version.pre is None and version.post is not None):
        return (*release[:3], RELEASE_RANK, 0, 1)
    return (*release[:3], *_pep440_label(version))


def _pep440_label(version: "PackagingVersion") -> SortKey:
    if version.pre is None:
        return (RELEASE_RANK, 0) if version.dev is None else (_RANKS["dev"], version.dev)
    label, number = version.pre
    rank = {"a": _RANKS["alpha"], "b": _RANKS["beta"], "rc": _RANKS["rc"]}[label]
    if version.post is not None:
        return (rank, number, 1)
    return (rank, number) if version.dev is None else (rank, number - 1, 1)

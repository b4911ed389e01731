"""Lists of versions as people read them. Knows no solver."""

from collections.abc import Iterable

MAX_LISTED = 4


def listed(words: Iterable[str]) -> str:
    """Join words, leaving away what a person would not read of a long list, and saying how much that is."""
    found = tuple(words)
    if len(found) > MAX_LISTED:
        return f"{', '.join(found[: MAX_LISTED - 1])} and {len(found) - MAX_LISTED + 1} more"
    return ", ".join(found)

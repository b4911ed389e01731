"""Plugin names: their grammar, and when two spellings are the same. Knows no registry."""

import re
from typing import NewType

from manifests.errors import UsageError

PluginName = NewType("PluginName", str)

MAX_NAME_LENGTH = 64
REGISTRY_ID = r"[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?"
"""How a registry is named inside signed manifests, whatever its URL."""
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CONFUSABLE = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "-": None})


def parse_name(text: str) -> PluginName:
    """Return the text as a plugin name.

    Raises: UsageError unless it is lower-case words of `[a-z0-9]` joined by single hyphens, 64 characters at most.
    """
    if not isinstance(text, str) or len(text) > MAX_NAME_LENGTH or not _NAME.fullmatch(text):
        shown = repr(text[: MAX_NAME_LENGTH + 1]) if isinstance(text, str) else repr(text)[:80]
        raise UsageError(
            f"{shown} is not a plugin name: names are lower-case words of a-z and 0-9 joined by single hyphens, "
            f"{MAX_NAME_LENGTH} characters at most",
            name=text[: MAX_NAME_LENGTH + 1] if isinstance(text, str) else None,
        )
    return PluginName(text)


def fold(text: str) -> str:
    """Return the spelling a query means: case, `_` and `.` are folded."""
    return text.lower().replace("_", "-").replace(".", "-")


def confusable_key(name: str) -> str:
    """Return the key that two names share when a reader could take one for the other."""
    return fold(name).translate(_CONFUSABLE)

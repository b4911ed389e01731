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


def parse_publisher(text: str) -> str:
    """Return the text as a publisher's name, which has the grammar of plugin names.

    Raises: UsageError.
    """
    try:
        return parse_name(text)
    except UsageError as error:
        raise UsageError(error.message.replace("a plugin name", "a publisher's name")) from error


def fold(text: str) -> str:
    """Return the spelling a query means: case, `_` and `.` are folded."""
    return text.lower().replace("_", "-").replace(".", "-")


def parse_query(text: str) -> PluginName:
    """Return the plugin that a person means, spelling folded.

    Raises: UsageError, in the person's own spelling, and with a hint where a version was written too.
    """
    try:
        return parse_name(fold(text))
    except UsageError as error:
        hint = "this command takes names without versions" if re.search("[=<>@]", text) else ""
        raise UsageError(error.message.replace(repr(fold(text)), repr(text[:MAX_NAME_LENGTH])), hint=hint) from error


def confusable_key(name: str) -> str:
    """Return the key that two names share when a reader could take one for the other."""
    return fold(name).translate(_CONFUSABLE)

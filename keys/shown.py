"""Untrusted values as they may stand in a message: ASCII, quoted, short. Decides nothing."""

_LONGEST = 80


def shown(value: object) -> str:
    """Return the value quoted for a message, so that it can neither flood nor steer a terminal."""
    text = ascii(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def bounded(path: str) -> str:
    """Return a path as a value for programs: unquoted, of characters alone, and no longer than a message shows it."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."

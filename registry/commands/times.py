"""Times as the commands print them. Reads no clock."""

from datetime import UTC, datetime


def day_of(seconds: int) -> str:
    """Return a time as RFC 3339."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""Moments as documents and people write them. Reads no clock."""

from datetime import UTC, datetime


def moment_text(seconds: int) -> str:
    """Return a time as RFC 3339 writes it in UTC: `2026-12-01T09:00:00Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""`If-None-Match`, `Range` and `Content-Range`, read as RFC 9110 says. Sends nothing."""

import re
from dataclasses import dataclass

from manifests.errors import UsageError

_RANGE = re.compile(r"bytes=(?:([0-9]{1,19})-([0-9]{1,19})?|-([0-9]{1,19}))")
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Bytes `first` to `last`, both included."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """Return how many bytes these are."""
        return self.last - self.first + 1


class RangeNotSatisfiable(Exception):
    """The asked range lies outside the bytes there are. Stays inside the read path."""


def matches(if_none_match: str, etag: str) -> bool:
    """Tell whether a client already has what this entity tag names (weak comparison, as for GET)."""
    listed = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in listed or etag in listed


def span_of(header: str, size: int) -> Span | None:
    """Return the one range that is asked for, or None where the whole is to be sent.

    Several ranges and unknown units are answered with the whole, which the RFC allows.

    Raises:
        RangeNotSatisfiable: no byte of the range exists.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None:
        return None
    if match[3] is not None:
        first, last = max(0, size - int(match[3])), size - 1
    else:
        first = int(match[1])
        last = min(int(match[2]), size - 1) if match[2] else size - 1
        if match[2] and int(match[2]) < first:
            return None
    if first >= size or first > last:
        raise RangeNotSatisfiable
    return Span(first=first, last=last)


def content_range(header: str) -> tuple[Span, int]:
    """Return the span and the total of a `Content-Range`.

    Raises:
        UsageError: it is not `bytes A-B/TOTAL` with A <= B < TOTAL.
    """
    match = _CONTENT_RANGE.fullmatch(header.strip())
    if match is not None:
        span, total = Span(first=int(match[1]), last=int(match[2])), int(match[3])
        if span.first <= span.last < total:
            return span, total
    raise UsageError(f"{header!r:.100} is not a content range: write `bytes A-B/TOTAL` with A <= B < TOTAL")

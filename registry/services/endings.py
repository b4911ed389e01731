"""When root and targets end, in words, from two months before on. Renews nothing."""

import shlex
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from registry.storage.records import Records

_DAY = 86_400
WARNED_SECONDS = 60 * _DAY


def endings(records: Records, root: Path, now: int) -> tuple[str, ...]:
    """Return a warning for each end of what only offline keys can renew."""
    rows = [row for role in ("root", "targets") if (row := records.signed.current(role)) is not None]
    ends = [(row.expires_at, f"{row.role} {row.version}") for row in rows if row.expires_at is not None]
    near = sorted(end for end in ends if end[0] - now <= WARNED_SECONDS)
    renew = f"`spm-registry root rotate --root {shlex.quote(str(root))}`"
    return tuple(
        f"{_said([what for _, what in group], at, now)}. Renew it: {renew}"
        for at, group in groupby(near, key=lambda end: end[0])
    )


def _said(what: list[str], at: int, now: int) -> str:
    who, is_one = " and ".join(what), len(what) == 1
    if at > now:
        verb = "ends" if is_one else "end"
        return f"{who} {verb} in {_days(at - now)} ({_day(at)}); then clients refuse every install"
    return f"{who} ended {_days(now - at)} ago ({_day(at)}): clients refuse every install"


def _day(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d}"


def _days(seconds: int) -> str:
    days = seconds // _DAY
    return {0: "less than a day", 1: "1 day"}.get(days, f"{days} days")

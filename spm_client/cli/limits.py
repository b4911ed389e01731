"""What bounds a resolution beyond ranges, as it is written on the command line: a moment, an architecture."""

import re
from datetime import UTC, date, datetime, time

from manifests.errors import UsageError
from manifests.fit import SM

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def parse_cutoff(text: str) -> datetime:
    """Return the last moment that counts: an RFC 3339 moment itself; of a day its end in UTC, as in spm.toml.

    Raises: UsageError.
    """
    try:
        if _DAY.fullmatch(text):
            return datetime.combine(date.fromisoformat(text), time.max, UTC)
        if _MOMENT.fullmatch(text):
            return datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise _no_moment(text) from error
    raise _no_moment(text)


def parse_arch(text: str) -> str:
    """Return an architecture of NVIDIA's, as builds name it.

    Raises: UsageError.
    """
    if SM.fullmatch(text) is None:
        raise UsageError(f"{text[:40]!r} is not an architecture", hint="write it as builds do: `--force-arch=sm_86`")
    return text


def _no_moment(text: str) -> UsageError:
    return UsageError(
        f"{text[:40]!r} is neither a day nor a moment",
        hint="write `--exclude-newer 2026-01-31`, or with time and zone `--exclude-newer 2026-01-31T12:00:00Z`",
    )

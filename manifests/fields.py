"""Reading documents member by member, gathering every problem with its path. Knows no particular document."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from manifests.errors import SpmError, TypeMismatch, UsageError

T = TypeVar("T")

MAX_TEXT = 4096
MAX_ITEMS = 4096
MAX_PROBLEMS = 64
MAX_SHOWN = 64
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOMENT = re.compile(
    r"(?P<year>(?!0000)[0-9]{4})-(?P<month>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12][0-9]|3[01])"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
)
_SHORT_MONTHS = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
# Beside C0 and C1: line separators, what turns the direction of writing, and halves of a surrogate pair.
_CONTROL = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"


@contextmanager
def document(what: str) -> Iterator[list[str]]:
    """Collect the problems of one document and raise them together at the end.

    Raises: TypeMismatch whose message lists every problem (64 at most) and whose context holds them.
    """
    problems: list[str] = []
    yield problems
    if problems:
        if len(problems) > MAX_PROBLEMS:
            problems[MAX_PROBLEMS:] = [f"and {len(problems) - MAX_PROBLEMS} more"]
        raise TypeMismatch(f"{what} is refused: " + "; ".join(problems), problems=problems)


class Fields:
    """One object of a document. What is not taken by `close` is an unknown member, hence a problem."""

    def __init__(self, value: Any, path: str, problems: list[str]) -> None:
        self._problems = problems
        self._path = path
        self._taken: set[str] = set()
        if not isinstance(value, dict):
            problems.append(f"`{path.rstrip('.') or 'the document'}` is not a table")
            value = {}
        self._value: dict[str, Any] = value

    def required(self, name: str, read: Callable[[Any], T]) -> T:
        """Return the member as `read` makes it. A missing or wrong one is noted; the value is then never used."""
        if name not in self._value:
            self._taken.add(name)
            self._problems.append(f"`{self._path}{name}` is missing")
            return cast(T, None)
        return cast(T, self.optional(name, read))

    def optional(self, name: str, read: Callable[[Any], T]) -> T | None:
        """Return the member as `read` makes it, or None where the document does not speak of it."""
        self._taken.add(name)
        if name not in self._value:
            return None
        try:
            return read(self._value[name])
        except SpmError as error:
            self._problems.append(f"`{self._path}{name}`: {error.message}" + (f" ({error.hint})" if error.hint else ""))
            return None

    def has(self, name: str) -> bool:
        return name in self._value

    def table(self, name: str) -> "Fields":
        """Return a member that is a table; absent reads as empty."""
        self._taken.add(name)
        return Fields(self._value.get(name, {}), f"{self._path}{name}.", self._problems)

    def close(self) -> None:
        for name in sorted(map(str, self._value.keys() - self._taken)):
            self._problems.append(f"`{self._path}{_cut(name)}` is not a known member")


def _cut(name: str) -> str:
    return repr(name[:MAX_SHOWN])[1:-1]


def text(value: Any) -> str:
    """Read non-empty text of at most 4096 characters without control characters."""
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT or _has_control(value):
        raise UsageError(f"{str(value)[:40]!r} is not plain text of 1 to {MAX_TEXT} characters")
    return value


def _has_control(value: str) -> bool:
    # What is printable throughout, as nearly every text is, has none of them; the search is slower to begin and to do.
    return not value.isprintable() and re.search(_CONTROL, value) is not None


def matching(pattern: str, kind: str) -> Callable[[Any], str]:
    """Return a reader of text that fully matches a pattern; `kind` is how the refusal calls it."""
    compiled = re.compile(pattern)

    def read(value: Any) -> str:
        if not compiled.fullmatch(text(value)):
            raise UsageError(f"{value[:80]!r} is not {kind}")
        return cast(str, value)

    return read


def sha256(value: Any) -> str:
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise UsageError(f"{str(value)[:80]!r} is not a SHA-256 digest of 64 lower-case hex digits")
    return value


def moment(value: Any) -> str:
    """Read a time of the calendar in UTC, to the second, as RFC 3339 writes it."""
    match = _MOMENT.fullmatch(text(value))
    if match is None or int(match["day"]) > _days(int(match["year"]), int(match["month"])):
        raise UsageError(f"{value[:80]!r} is not a UTC time such as 2026-01-31T12:00:00Z")
    return cast(str, value)


def _days(year: int, month: int) -> int:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 28 if month == 2 and not is_leap else _SHORT_MONTHS.get(month, 31)


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{str(value)[:40]!r} is neither true nor false")
    return value


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Return a reader of whole numbers from `low` to `high`."""

    def read(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise UsageError(f"{str(value)[:40]!r} is not a whole number from {low} to {high}")
        return value

    return read


def one_of(*allowed: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in allowed:
            raise UsageError(f"{str(value)[:40]!r} is not one of " + ", ".join(f"`{word}`" for word in allowed))
        return cast(str, value)

    return read


def many(read: Callable[[Any], T], limit: int = MAX_ITEMS) -> Callable[[Any], tuple[T, ...]]:
    """Return a reader of lists of at most `limit` items."""

    def read_all(value: Any) -> tuple[T, ...]:
        if not isinstance(value, list) or len(value) > limit:
            raise UsageError(f"{str(value)[:40]!r} is not a list of at most {limit} items")
        return tuple(_item(read, place, item) for place, item in enumerate(value))

    return read_all


def _item(read: Callable[[Any], T], place: int, value: Any) -> T:
    try:
        return read(value)
    except SpmError as error:
        if not isinstance(value, dict):
            raise  # The message shows the item itself; of a table it shows only a member.
        raise UsageError(f"item {place}: {error.message}", hint=error.hint) from error


def nested(read: Callable[[Fields], T]) -> Callable[[Any], T]:
    """Return a reader of tables by a function over their fields; its problems come out as one UsageError."""

    def read_table(value: Any) -> T:
        if not isinstance(value, dict):
            raise UsageError(f"{str(value)[:40]!r} is not a table")
        problems: list[str] = []
        fields = Fields(value, "", problems)
        result = read(fields)
        fields.close()
        if problems:
            raise UsageError(", ".join(problems[:MAX_PROBLEMS]))
        return result

    return read_table

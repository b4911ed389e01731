"""Reading documents member by member, gathering every problem with its path. Knows no particular document."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from manifests.errors import SpmError, TypeMismatch, UsageError

T = TypeVar("T")

MAX_TEXT = 4096
MAX_ITEMS = 4096
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@contextmanager
def document(what: str) -> Iterator[list[str]]:
    """Collect the problems of one document and raise them together at the end.

    Raises: TypeMismatch whose message lists every problem and whose context holds them.
    """
    problems: list[str] = []
    yield problems
    if problems:
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

    def table(self, name: str) -> "Fields":
        """Return a member that is a table; absent reads as empty."""
        self._taken.add(name)
        return Fields(self._value.get(name, {}), f"{self._path}{name}.", self._problems)

    def close(self) -> None:
        for name in sorted(set(map(str, self._value)) - self._taken):
            self._problems.append(f"`{self._path}{name}` is not a known member")


def text(value: Any) -> str:
    """Read non-empty text of at most 4096 characters without control characters."""
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT or _CONTROL.search(value):
        raise UsageError(f"{str(value)[:40]!r} is not plain text of 1 to {MAX_TEXT} characters")
    return value


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
        return tuple(read(item) for item in value)

    return read_all


def nested(read: Callable[[Fields], T]) -> Callable[[Any], T]:
    """Return a reader of tables by a function over their fields; its problems come out as one UsageError."""

    def read_table(value: Any) -> T:
        problems: list[str] = []
        fields = Fields(value, "", problems)
        result = read(fields)
        fields.close()
        if problems:
            raise UsageError(", ".join(problems))
        return result

    return read_table

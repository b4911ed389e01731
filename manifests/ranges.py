"""Version ranges with npm's meanings, compiled to `packaging.ranges`. Refuses a bare number instead of guessing.

range       := alternative ("||" alternative)*
alternative := comparator ((" " | ",") comparator)*  |  partial " - " partial
comparator  := (">" | "<" | ">=" | "<=" | "=" | "==" | "!=" | "^" | "~" | "~=") partial  |  "*" | "1.2.x" | "1.x"
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from packaging.ranges import VersionRange
from packaging.version import Version as PackagingVersion

from manifests.errors import UsageError
from manifests.versions import Version

MAX_RANGE_LENGTH = 256
MAX_COMPARATORS = 32

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_PART = rf"(?:{_NUMBER}|[xX*])"
_PARTIAL = rf"{_PART}(?:\.{_PART}(?:\.{_PART}(?:-(?:alpha|beta|rc|dev)\.{_NUMBER})?(?:\+[0-9A-Za-z.-]+)?)?)?"
_TOKEN = re.compile(rf" *(?P<operator>>=|<=|==|!=|~=|[><=^~])? *(?P<partial>{_PARTIAL})(?: *, *(?=[^ ])| +|\Z)")
_HYPHEN = re.compile(rf" *(?P<low>{_PARTIAL}) +- +(?P<high>{_PARTIAL}) *")
_EXACT = re.compile(rf" *==? *(?P<partial>{_PARTIAL}) *")

_EVERYTHING = VersionRange.full(admit_arbitrary=False)


@dataclass(frozen=True, slots=True)
class _Comparator:
    """One comparator compiled: the interval, whether it bounds from above, and the `X.Y.Z` of a named pre-release."""

    interval: VersionRange
    is_bounded: bool
    named: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Alternative:
    interval: VersionRange
    is_bounded: bool
    named: frozenset[tuple[int, ...]]

    def contains(self, version: Version, *, pre: bool) -> bool:
        if version.is_prerelease and not pre and version.release not in self.named:
            return False
        return self.interval.contains(version.key, prereleases=True)


@dataclass(frozen=True, slots=True)
class Range:
    """A set of versions as written, and the same as intervals."""

    text: str
    alternatives: tuple[_Alternative, ...]

    @classmethod
    def parse(cls, text: str) -> "Range":
        """Return the range that the text spells.

        Raises: UsageError on a bare number, an unknown operator, or a text beyond 256 characters or 32 comparators.
        """
        if not isinstance(text, str) or len(text) > MAX_RANGE_LENGTH:
            raise UsageError(f"a range is text of at most {MAX_RANGE_LENGTH} characters, not {str(text)[:40]!r}")
        return _parse(text)

    @property
    def interval(self) -> VersionRange:
        """All alternatives as one set of intervals, pre-releases not yet ruled out."""
        union = self.alternatives[0].interval
        for alternative in self.alternatives[1:]:
            union = union | alternative.interval
        return union

    @property
    def has_upper_bound(self) -> bool:
        return all(alternative.is_bounded for alternative in self.alternatives)

    @property
    def exact(self) -> PackagingVersion | None:
        """The one version of a range written `==X.Y.Z`."""
        match = _EXACT.fullmatch(self.text)
        return Version.parse(match["partial"]).key if match and _is_full(match["partial"]) else None

    def contains(self, version: Version, *, pre: bool = False) -> bool:
        """Tell whether the version is in the range.

        A pre-release is in only where a comparator of its alternative names one of the same `X.Y.Z`, or with `pre`.
        """
        return any(alternative.contains(version, pre=pre) for alternative in self.alternatives)

    def intersects(self, other: "Range") -> bool:
        return not (self.interval & other.interval).is_empty

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def _parse(text: str) -> Range:
    if not text.strip(" "):
        raise UsageError("an empty range says nothing: write `*` for any version", range=text)
    return Range(text, tuple(_parse_alternative(part, text) for part in text.split("||")))


def _parse_alternative(part: str, whole: str) -> _Alternative:
    if hyphen := _HYPHEN.fullmatch(part):
        comparators = [_compile(">=", hyphen["low"], whole), _compile("<=", hyphen["high"], whole)]
    else:
        comparators = [_compile(operator, partial, whole) for operator, partial in _tokens(part, whole)]
    interval = _EVERYTHING
    for comparator in comparators:
        interval = interval & comparator.interval
    return _Alternative(
        interval,
        interval.is_empty or any(comparator.is_bounded for comparator in comparators),
        frozenset(comparator.named for comparator in comparators if comparator.named),
    )


def _tokens(part: str, whole: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(part.rstrip(" ")):
        match = _TOKEN.match(part, position)
        if match is None or len(tokens) == MAX_COMPARATORS:
            raise UsageError(
                f"{whole!r} is not a range: {part[position:].strip()!r} is not a comparator such as "
                "`>=1.2,<2`, `^1.2`, `~1.2`, `==1.2.3` or `1.2.x`",
                range=whole,
            )
        tokens.append((match["operator"] or "", match["partial"]))
        position = match.end()
    return tokens or [("", "*")]


def _compile(operator: str, partial: str, whole: str) -> _Comparator:
    if not operator and _numbers(partial) and not re.search(r"[xX*]", partial):
        raise _bare_number(partial, whole)
    if operator == "~=" and len(_numbers(partial)) < 2:
        raise UsageError(f"{whole!r} is not a range: `~=` needs at least two numbers, as in `~=1.2`", range=whole)
    named = _named(partial)
    if operator == "!=":
        # Ruling one pre-release out is not asking for its siblings, so `!=` names none.
        return _Comparator(_between(*_span("=", partial)).complement() & _EVERYTHING, False)
    low, high, is_closed = _span(operator or "=", partial)
    is_above = operator == ">" and _is_full(partial)
    return _Comparator(_between(low, high, is_closed, is_above=is_above), high is not None, named)


def _named(partial: str) -> tuple[int, ...] | None:
    version = Version.parse(partial) if _is_full(partial) else None
    return version.release if version is not None and version.is_prerelease else None


def _bare_number(partial: str, whole: str) -> UsageError:
    numbers = _numbers(partial)
    low = ".".join(map(str, (*numbers, 0, 0)[:3]))
    near = ".".join(map(str, numbers[:2]))
    return UsageError(
        f"the range {whole!r} has the bare number `{partial}`, which would have to be interpreted",
        hint=f"write `=={low}`, `~{near}` or `>={near},<{numbers[0] + 1}`",
        range=whole,
    )


def _span(operator: str, partial: str) -> tuple[str | None, str | None, bool]:
    """Return lower bound (inclusive), upper bound, and whether the upper bound is inclusive."""
    numbers = _numbers(partial)
    if not numbers:
        return (None, "0.0.0.dev0", False) if operator in {"<", ">"} else (None, None, False)
    low, full = _lowest(partial), _is_full(partial)
    match operator:
        case ">=":
            return low, None, False
        case "<":
            return None, low if full else _floor(numbers), False
        case "<=":
            return (None, low, True) if full else (None, _bump(numbers, len(numbers)), False)
        case ">":
            return (low if full else _bump(numbers, len(numbers), floor=False)), None, False
        case "^":
            return low, _bump(numbers, _leading(numbers)), False
        case "~":
            return low, _bump(numbers, min(len(numbers), 2)), False
        case "~=":
            return low, _bump(numbers, len(numbers) - 1), False
        case _:
            return (low, low, True) if full else (low, _bump(numbers, len(numbers)), False)


def _between(low: str | None, high: str | None, is_closed: bool, *, is_above: bool = False) -> VersionRange:
    return VersionRange.from_bounds(low, high, include_lower=not is_above, include_upper=is_closed)


def _numbers(partial: str) -> tuple[int, ...]:
    """Return the leading numbers of a partial version, up to the first `x`."""
    numbers: list[int] = []
    for part in re.split(r"[-+]", partial, maxsplit=1)[0].split("."):
        if part in {"x", "X", "*"}:
            break
        numbers.append(int(part))
    return tuple(numbers)


def _is_full(partial: str) -> bool:
    return len(_numbers(partial)) == 3


def _lowest(partial: str) -> str:
    if _is_full(partial):
        return str(Version.parse(partial).key)
    return ".".join(map(str, (*_numbers(partial), 0, 0)[:3]))


def _leading(numbers: tuple[int, ...]) -> int:
    """Return how many numbers `^` keeps: up to the first non-zero one, or all that are written."""
    return next((place for place, number in enumerate(numbers, 1) if number), len(numbers))


def _bump(numbers: tuple[int, ...], keep: int, *, floor: bool = True) -> str:
    bumped = (*numbers[: keep - 1], numbers[keep - 1] + 1)
    return _floor(bumped) if floor else ".".join(map(str, (*bumped, 0, 0)[:3]))


def _floor(numbers: tuple[int, ...]) -> str:
    """Return the bound below every pre-release of a version, as npm's `-0`."""
    return ".".join(map(str, (*numbers, 0, 0)[:3])) + ".dev0"

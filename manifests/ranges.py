"""Version ranges with npm's meanings, kept as cuts in the order of versions. Refuses a bare number instead of guessing.

range       := alternative ("||" alternative)*
alternative := comparator ((" " | ",") comparator)*  |  partial " - " partial
comparator  := (">" | "<" | ">=" | "<=" | "=" | "==" | "!=" | "^" | "~" | "~=") partial  |  "*" | "1.2.x" | "1.x"

Unlike npm's, `<1.2.0` leaves out the pre-releases of 1.2.0 even on request, unless its alternative names one of them.
"""

import operator
import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial, reduce

from manifests.errors import UsageError
from manifests.versions import RELEASE_RANK, SortKey, Version

MAX_RANGE_LENGTH = 256
MAX_COMPARATORS = 32

_NUMBER = r"(?:0|[1-9][0-9]{0,8})"
_PART = rf"(?:{_NUMBER}|[xX*])"
_PARTIAL = rf"{_PART}(?:\.{_PART}(?:\.{_PART}(?:-(?:alpha|beta|rc|dev)\.{_NUMBER})?(?:\+[0-9A-Za-z.-]+)?)?)?"
_TOKEN = re.compile(rf" *(?P<sign>>=|<=|==|!=|~=|[><=^~])? *(?P<partial>{_PARTIAL})(?: *, *(?=[^ ])| +|\Z)")
_HYPHEN = re.compile(rf" *(?P<low>{_PARTIAL}) +- +(?P<high>{_PARTIAL}) *")
_EXACT = re.compile(rf" *==? *(?P<partial>{_PARTIAL}) *")

Cuts = tuple[SortKey, ...]
"""Where a set of versions begins, ends, begins again: a version is in it when the cuts up to it are odd in number."""

Numbers = tuple[int, ...]
_LOWEST: SortKey = (0, 0, 0, 0, 0)
_BEYOND: SortKey = (1 << 64,)
_EVERYTHING: Cuts = (_LOWEST, _BEYOND)


@dataclass(frozen=True, slots=True)
class _Alternative:
    """One alternative of a range, and the `X.Y.Z` of the pre-releases that its comparators name."""

    cuts: Cuts
    named: frozenset[Numbers]


@dataclass(frozen=True, slots=True)
class Range:
    """A set of versions as written, and the same as cuts."""

    text: str
    cuts: Cuts = field(compare=False, repr=False)
    naming: tuple[_Alternative, ...] = field(compare=False, repr=False)
    """The alternatives that name pre-releases: only these let one in unasked."""

    @classmethod
    def parse(cls, text: str) -> "Range":
        """Return the range that the text spells.

        Raises: UsageError on a bare number, an unknown operator, or a text beyond 256 characters or 32 comparators.
        """
        if not isinstance(text, str) or len(text) > MAX_RANGE_LENGTH:
            raise UsageError(f"a range is text of at most {MAX_RANGE_LENGTH} characters, not {str(text)[:40]!r}")
        return _parse(text)

    @property
    def has_upper_bound(self) -> bool:
        return not self.cuts or self.cuts[-1] != _BEYOND

    @property
    def exact(self) -> Version | None:
        """The one version of a range written `==X.Y.Z`."""
        match = _EXACT.fullmatch(self.text)
        return Version.parse(match["partial"]) if match and len(_numbers(match["partial"])) == 3 else None

    def contains(self, version: Version, *, pre: bool = False) -> bool:
        """Tell whether the version is in the range.

        A pre-release is in only where a comparator of its alternative names one of the same `X.Y.Z`, or with `pre`.
        """
        key = version.sort_key
        if pre or key[3] == RELEASE_RANK:
            return _holds(self.cuts, key)
        return any(key[:3] in alternative.named and _holds(alternative.cuts, key) for alternative in self.naming)

    def spans(self, key: SortKey) -> bool:
        """Tell whether what stands there in the order of versions is in the range, pre-release or not."""
        return _holds(self.cuts, key)

    def intersects(self, other: "Range") -> bool:
        return _combine(operator.and_, self.cuts, other.cuts) != ()

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return hash(self.text)


def _holds(cuts: Cuts, key: SortKey) -> bool:
    return bisect_right(cuts, key) % 2 == 1


def _combine(both: Callable[[bool, bool], bool], one: Cuts, other: Cuts) -> Cuts:
    """Return the cuts of a union (`or_`), an intersection (`and_`) or a difference (`xor` with everything)."""
    cuts: list[SortKey] = []
    for cut in sorted({*one, *other}):
        is_open = len(cuts) % 2 == 1
        if both(_holds(one, cut), _holds(other, cut)) != is_open:
            cuts.append(cut)
    return tuple(cuts)


@lru_cache(maxsize=4096)
def _parse(text: str) -> Range:
    if not text.strip(" "):
        raise UsageError("an empty range says nothing: write `*` for any version", range=text)
    alternatives = [_parse_alternative(part, text) for part in text.split("||")]
    cuts = reduce(partial(_combine, operator.or_), (alternative.cuts for alternative in alternatives))
    return Range(text, cuts, tuple(alternative for alternative in alternatives if alternative.named))


def _parse_alternative(part: str, whole: str) -> _Alternative:
    hyphen = _HYPHEN.fullmatch(part)
    tokens = [(">=", hyphen["low"]), ("<=", hyphen["high"])] if hyphen else _tokens(part, whole)
    # Ruling one pre-release out is not asking for its siblings, so `!=` names none.
    named = frozenset().union(*(_named(written) for sign, written in tokens if sign != "!="))
    comparators = [_compile(sign, written, named, whole) for sign, written in tokens]
    return _Alternative(reduce(partial(_combine, operator.and_), comparators), named)


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
        tokens.append((match["sign"] or "", match["partial"]))
        position = match.end()
    return tokens or [("", "*")]


def _compile(sign: str, written: str, named: frozenset[Numbers], whole: str) -> Cuts:
    numbers = _numbers(written)
    if not sign and numbers and not _has_wildcard(written):
        raise _bare_number(written, numbers, whole)
    if sign == "~=" and len(numbers) < 2:
        raise UsageError(f"{whole!r} is not a range: `~=` needs at least two numbers, as in `~=1.2`", range=whole)
    low, high = _span(sign, numbers, _lowest(written, numbers), named)
    cuts = (low, high) if low < high else ()
    return _combine(operator.xor, _EVERYTHING, cuts) if sign == "!=" else cuts


def _span(sign: str, numbers: Numbers, low: SortKey, named: frozenset[Numbers]) -> tuple[SortKey, SortKey]:
    """Return where the versions of a comparator begin, and what they stay below."""
    if not numbers:
        return (_LOWEST, _LOWEST) if sign in {"<", ">"} else (_LOWEST, _BEYOND)
    is_full = len(numbers) == 3
    match sign:
        case ">=":
            return low, _BEYOND
        case "<":
            return _LOWEST, low if numbers in named else _floor(numbers)
        case "<=":
            return _LOWEST, _above(low) if is_full else _floor(_next(numbers))
        case ">":
            return _above(low) if is_full else _release(_next(numbers)), _BEYOND
        case "^":
            return low, _floor(_next(numbers[: _leading(numbers)]))
        case "~":
            return low, _floor(_next(numbers[:2]))
        case "~=":
            return low, _floor(_next(numbers[:-1]))
        case _:
            return low, _above(low) if is_full else _floor(_next(numbers))


def _numbers(written: str) -> Numbers:
    """Return the leading numbers of a partial version, up to the first `x`."""
    numbers: list[int] = []
    for part in _dotted(written):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _has_wildcard(written: str) -> bool:
    return not all(part.isdigit() for part in _dotted(written))


def _dotted(written: str) -> list[str]:
    return written.partition("+")[0].partition("-")[0].split(".")


def _lowest(written: str, numbers: Numbers) -> SortKey:
    return Version.parse(written).sort_key if len(numbers) == 3 else _release(numbers)


def _named(written: str) -> frozenset[Numbers]:
    numbers = _numbers(written)
    is_prerelease = len(numbers) == 3 and Version.parse(written).is_prerelease
    return frozenset({numbers}) if is_prerelease else frozenset()


def _bare_number(written: str, numbers: Numbers, whole: str) -> UsageError:
    exact = ".".join(map(str, (*numbers, 0, 0)[:3]))
    near = ".".join(map(str, numbers[:2]))
    return UsageError(
        f"the range {whole!r} has the bare number `{written}`, which would have to be interpreted",
        hint=f"write `=={exact}`, `~{near}` or `>={near},<{numbers[0] + 1}`",
        range=whole,
    )


def _leading(numbers: Numbers) -> int:
    """Return how many numbers `^` keeps: up to the first non-zero one, or all that are written."""
    return next((place for place, number in enumerate(numbers, 1) if number), len(numbers))


def _next(numbers: Numbers) -> Numbers:
    return (*numbers[:-1], numbers[-1] + 1)


def _release(numbers: Numbers) -> SortKey:
    return (*(*numbers, 0, 0)[:3], RELEASE_RANK, 0)


def _floor(numbers: Numbers) -> SortKey:
    """Return the place below every pre-release of a version, as npm's `-0`."""
    return (*(*numbers, 0, 0)[:3], 0, 0)


def _above(key: SortKey) -> SortKey:
    """Return the place just above a version, below all that follow it: a longer key that begins alike."""
    return (*key, 1)

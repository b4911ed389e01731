"""Ranges as intervals of `packaging`, for tests to compare with. Refuses nothing, knows no rule for pre-releases."""

import re
from collections.abc import Sequence
from functools import reduce

from packaging.ranges import VersionRange
from packaging.version import Version as PackagingVersion

EVERYTHING = VersionRange.full(admit_arbitrary=False)


def interval(text: str) -> VersionRange:
    """Return all that a range spans."""
    return reduce(lambda one, other: one | other, map(_alternative, text.split("||")))


def _alternative(text: str) -> VersionRange:
    if " - " in text:
        low, high = text.split(" - ")
        return _comparator(">=", low.strip()) & _comparator("<=", high.strip())
    found = re.findall(r"([><=!^~]*) *([0-9xX*][^ ,]*)", text)
    named = [_numbers(partial) for sign, partial in found if sign != "!=" and "-" in partial.partition("+")[0]]
    comparators = (_comparator(sign, partial, named) for sign, partial in found)
    return reduce(lambda one, other: one & other, comparators, EVERYTHING)


def _comparator(sign: str, partial: str, named: Sequence[list[int]] = ()) -> VersionRange:
    numbers = _numbers(partial)
    if sign == "!=":
        return _comparator("=", partial).complement() & EVERYTHING
    if not numbers:
        return EVERYTHING & EVERYTHING.complement() if sign in {"<", ">"} else EVERYTHING
    if len(numbers) < 3 or (sign == "<" and numbers not in named):
        return _short(sign, numbers)
    return _full(sign, str(PackagingVersion(partial.partition("+")[0])), numbers)


def _full(sign: str, low: str, numbers: list[int]) -> VersionRange:
    match sign:
        case ">=":
            return VersionRange.from_bounds(low, None)
        case ">":
            return VersionRange.from_bounds(low, None, include_lower=False)
        case "<=":
            return VersionRange.from_bounds(None, low)
        case "<":
            return _below(None, low)
        case "^":
            return _below(low, _after(_fixed(numbers)))
        case "~" | "~=":
            return _below(low, _after(numbers[:2]))
        case _:
            return VersionRange.from_bounds(low, low)


def _short(sign: str, numbers: list[int]) -> VersionRange:
    low = ".".join(map(str, numbers))
    match sign:
        case ">=":
            return VersionRange.from_bounds(low, None)
        case ">":
            return VersionRange.from_bounds(_after(numbers).removesuffix(".dev0"), None)
        case "<":
            return _below(None, f"{low}.dev0")
        case "<=":
            return _below(None, _after(numbers))
        case "^":
            return _below(low, _after(_fixed(numbers)))
        case "~=":
            return _below(low, _after(numbers[:-1]))
        case _:
            return _below(low, _after(numbers))


def _fixed(numbers: list[int]) -> list[int]:
    """Return what `^` holds fixed: the numbers up to the first that is not 0."""
    return numbers[: next((place for place, number in enumerate(numbers, 1) if number), len(numbers))]


def _below(low: str | None, high: str) -> VersionRange:
    return VersionRange.from_bounds(low, high, include_upper=False)


def _after(numbers: list[int]) -> str:
    """Return the lowest version whose leading numbers are the next ones."""
    return ".".join(map(str, [*numbers[:-1], numbers[-1] + 1])) + ".dev0"


def _numbers(partial: str) -> list[int]:
    numbers: list[int] = []
    for part in re.split(r"[-+]", partial)[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return numbers

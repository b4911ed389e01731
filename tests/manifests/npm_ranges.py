"""npm's ranges by brute force, from node-semver's documentation, for tests to compare with. Neither fast nor strict.

`<X.Y.Z` is ours: it leaves the pre-releases of X.Y.Z out where the alternative names none of them.
"""

import re

Key = tuple[int, int, int, int, int]

_LABELS = ("dev", "alpha", "beta", "rc")
_RELEASE = len(_LABELS)


def key(text: str) -> Key:
    """Return what orders a version: its three numbers, then the rank of its label and the label's number."""
    release, _, label = text.partition("+")[0].partition("-")
    major, minor, patch = map(int, release.split("."))
    if not label:
        return major, minor, patch, _RELEASE, 0
    word, _, number = label.partition(".")
    return major, minor, patch, _LABELS.index(word), int(number)


def contains(text: str, version: str, *, pre: bool = False) -> bool:
    """Tell whether the range has the version."""
    return any(_has(part.strip(), key(version), pre=pre) for part in text.split("||"))


def _has(alternative: str, version: Key, *, pre: bool) -> bool:
    parts = _comparators(alternative)
    is_named = any(
        operator != "!=" and "-" in partial and key(partial)[:3] == version[:3] for operator, partial in parts
    )
    if not all(_satisfies(operator, partial, version, is_named=is_named) for operator, partial in parts):
        return False
    return version[3] == _RELEASE or pre or is_named


def _comparators(alternative: str) -> list[tuple[str, str]]:
    if " - " in alternative:
        low, high = alternative.split(" - ")
        return [(">=", low.strip()), ("<=", high.strip())]
    found = re.findall(r"([><=!^~]*) *([0-9xX*][^ ,]*)", alternative)
    return found or [("", "*")]


def _satisfies(operator: str, partial: str, version: Key, *, is_named: bool) -> bool:
    if operator == "!=":
        return not _satisfies("=", partial, version, is_named=is_named)
    numbers = _written(partial)
    if not numbers:
        return operator not in {"<", ">"}
    low = key(partial) if len(numbers) == 3 else _of(numbers)
    match operator:
        case ">":
            return version > low if len(numbers) == 3 else version >= _of(_next(numbers))
        case ">=":
            return version >= low
        case "<":
            return version < (low if is_named and len(numbers) == 3 else _floor(numbers))
        case "<=":
            return version <= low if len(numbers) == 3 else version < _floor(_next(numbers))
        case "^":
            return low <= version < _floor(_caret_end(numbers))
        case "~":
            return low <= version < _floor(_next(numbers[:2]))
        case "~=":
            return low <= version < _floor(_next(numbers[:-1]))
        case _:
            return version == low if len(numbers) == 3 else low <= version < _floor(_next(numbers))


def _caret_end(numbers: list[int]) -> list[int]:
    if numbers[0] > 0 or len(numbers) == 1:
        return [numbers[0] + 1]
    if numbers[1] > 0 or len(numbers) == 2:
        return [0, numbers[1] + 1]
    return [0, 0, numbers[2] + 1]


def _written(partial: str) -> list[int]:
    numbers: list[int] = []
    for part in re.split(r"[-+]", partial)[0].split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return numbers


def _next(numbers: list[int]) -> list[int]:
    return [*numbers[:-1], numbers[-1] + 1]


def _of(numbers: list[int]) -> Key:
    major, minor, patch = (*numbers, 0, 0)[:3]
    return major, minor, patch, _RELEASE, 0


def _floor(numbers: list[int]) -> Key:
    """Return the key below all pre-releases: npm's `-0`."""
    return (*_of(numbers)[:3], 0, 0)

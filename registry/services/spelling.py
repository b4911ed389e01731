"""How far apart two spellings are. Pure; knows no registry."""

from collections.abc import Iterable


def nearest(name: str, candidates: Iterable[str], *, limit: int) -> tuple[str, ...]:
    """Return the candidates that a slip of the fingers could have meant, the nearest first, at most `limit`."""
    most = allowed(name)
    found = [(distance(name, candidate, most), candidate) for candidate in candidates if candidate != name]
    return tuple(candidate for far, candidate in sorted(found) if far <= most)[:limit]


def allowed(name: str) -> int:
    """Return how many slips a name of this length may have: one up to four letters, two up to eleven, else three."""
    return 1 if len(name) < 5 else 2 if len(name) < 12 else 3


def distance(left: str, right: str, most: int) -> int:
    """Return how many letters were added, left out, changed or swapped with the next; `most + 1` for any more."""
    if abs(len(left) - len(right)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for down, letter in enumerate(left, start=1):
        before, above = row, before
        row = [down]
        for across, other in enumerate(right, start=1):
            cost = min(before[across] + 1, row[-1] + 1, before[across - 1] + (letter != other))
            if down > 1 and across > 1 and letter == right[across - 2] and other == left[down - 2]:
                cost = min(cost, above[across - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]

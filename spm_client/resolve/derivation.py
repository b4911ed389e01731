"""A proof that there is no resolution, step by step: facts, and what follows from two earlier steps. Shortens nothing.

Each step is an incompatibility: choices of plugins that cannot all be made. The last has no terms left: nothing helps.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from manifests.fit import Misfit
from manifests.names import PluginName
from spm_client.resolve.catalogue import Candidates, Catalogue, positions
from spm_client.resolve.incompatibility import (
    ABSENT,
    EVERYTHING,
    Cause,
    Derived,
    Fact,
    Held,
    NoFallback,
    Requires,
    Unusable,
    Wished,
    resolvent,
)
from spm_client.resolve.words import listed

MAX_STEPS = 500
Terms = Mapping[PluginName, int]


@dataclass(frozen=True, slots=True)
class Step:
    """One incompatibility of a proof: a fact, or what follows from two earlier steps, by their numbers from 0."""

    terms: Terms
    why: Fact | tuple[int, int]


def steps_of(catalogue: Catalogue, proof: Cause) -> list[Step] | None:
    """Return the steps of a proof, premises first; None where there are more than 500, which nobody reads."""
    numbers: dict[int, int] = {}
    steps: list[Step] = []
    todo = [proof]
    while todo:
        cause = todo[-1]
        premises = (cause.first, cause.second.cause) if isinstance(cause, Derived) else ()
        missing = [premise for premise in premises if id(premise) not in numbers]
        if id(cause) in numbers or not missing:
            todo.pop()
        todo += missing
        if not missing and id(cause) not in numbers:
            numbers[id(cause)] = len(steps)
            steps.append(_step(catalogue, steps, cause, numbers))
        if len(steps) > MAX_STEPS:
            return None
    return steps


def told(catalogue: Catalogue, steps: list[Step]) -> list[dict[str, object]]:
    """Return the steps as JSON, each with its sentence."""
    return [
        {"step": number, "text": _sentence(catalogue, step)}
        | ({"from": [premise + 1 for premise in step.why]} if isinstance(step.why, tuple) else {})
        for number, step in enumerate(steps, 1)
    ]


def _step(catalogue: Catalogue, steps: list[Step], cause: Cause, numbers: Mapping[int, int]) -> Step:
    if not isinstance(cause, Derived):
        terms = _terms_of(catalogue, cause)
        return Step({name: mask for name, mask in terms.items() if mask != EVERYTHING}, cause)
    first, second = numbers[id(cause.first)], numbers[id(cause.second.cause)]
    return Step(resolvent(steps[first].terms, steps[second].terms, cause.plugin), (first, second))


def _terms_of(catalogue: Catalogue, fact: Fact) -> Terms:
    match fact:
        case Wished(wish):
            return {wish.name: ~(catalogue[wish.name].in_range(wish.range) << 1)}
        case Held(wish):
            return {wish.name: ~(catalogue[wish.name].in_range(wish.range) << 1 | ABSENT)}
        case Unusable(name):
            return {name: ~(catalogue[name].usable << 1 | ABSENT)}
        case Requires(name, other, wanted):
            requirers = catalogue[name].requirers[other][wanted] << 1
            outside = ~(catalogue[other].in_range(wanted) << 1)
            return {name: requirers & outside} if name == other else {name: requirers, other: outside}
        case NoFallback():
            raise AssertionError("what forbids fallbacks proves nothing about requirements")


def _sentence(catalogue: Catalogue, step: Step) -> str:
    match step.why:
        case Wished(wish):
            return f"{wish.source} want{'' if wish.source == 'you' else 's'} {wish}"
        case Held(wish):
            return f"{wish.source} holds {wish}"
        case Unusable(name):
            return _facts(catalogue[name])
        case Requires(name, other, wanted):
            candidates = catalogue[name]
            nothing = "" if catalogue[other].in_range(wanted) else ", in which there is no release"
            requirers = _named(candidates, candidates.requirers[other][wanted] << 1)
            return f"{requirers} requires `{other}` `{wanted}`{nothing}"
        case NoFallback(name):
            return f"`{name}` may not fall back"
        case _:
            return f"so {_conclusion(catalogue, step.terms)}"


def _facts(candidates: Candidates) -> str:
    """Return why releases are not to be had at all, and which ones there are."""
    found: dict[str, list[str]] = {}
    for position, (release, verdict) in enumerate(zip(candidates.releases, candidates.verdicts, strict=True)):
        if not candidates.offered >> position & 1:
            found.setdefault(f"is yanked ({release.yanked})", []).append(str(release.version))
        elif isinstance(verdict, Misfit):
            found.setdefault(verdict.text, []).append(str(release.version))
    out = "; ".join(f"`{candidates.name}` {listed(versions)} {text}" for text, versions in found.items())
    return out or f"`{candidates.name}` has {_versions(candidates, EVERYTHING) or 'no releases'}"


def _conclusion(catalogue: Catalogue, terms: Terms) -> str:
    taken = [_named(catalogue[name], mask) for name, mask in terms.items() if not mask & ABSENT]
    needed = [
        f"`{name}` must be {_versions(catalogue[name], ~mask) or 'one that is not there'}"
        for name, mask in terms.items()
        if mask & ABSENT
    ]
    if not needed:
        together = " together" if len(taken) > 1 else ""
        return f"{' and '.join(taken)} cannot be taken{together}" if taken else "there is no resolution"
    return (f"with {' and '.join(taken)}, " if taken else "") + " or ".join(needed)


def _named(candidates: Candidates, mask: int) -> str:
    return f"`{candidates.name}` {_versions(candidates, mask)}"


def _versions(candidates: Candidates, mask: int) -> str:
    """Return the releases of a set of choices by their versions."""
    there = (1 << len(candidates.releases)) - 1
    return listed(str(candidates.releases[position].version) for position in positions(mask >> 1 & there))

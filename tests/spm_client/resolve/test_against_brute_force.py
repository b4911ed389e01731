"""The solver against an oracle that tries every set of releases of small random universes."""

import random
from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import FallbackRefused, IncompatibleTarget, NotFound, SpmError, Unsatisfiable
from manifests.index import ReleaseEntry
from manifests.names import PluginName, parse_name
from spm_client.resolve import Requirement, Resolution, resolve
from spm_client.resolve.fit import Fits, judge
from tests.spm_client.resolve.universe import HOST, Universe, release, wishes

pytestmark = pytest.mark.property

NAMES = ("a", "b", "c", "d")
VERSIONS = ("1.0.0", "1.1.0", "2.0.0", "2.1.0-rc.1")
RANGES = ("*", "^1", "^2", ">=1.1", "<2", "==1.0.0", ">=2.1.0-rc.1", "!=2.0.0")
Assignment = dict[PluginName, ReleaseEntry]


def random_universe(seed: int) -> tuple[Universe, list[Requirement]]:
    dice = random.Random(seed)
    plugins = {name: [_random_release(dice, name, version) for version in _some(dice, VERSIONS)] for name in NAMES}
    roots = [f"{name}@{dice.choice(RANGES[:5])}" for name in dice.sample(NAMES, dice.choice((1, 2, 2, 3)))]
    return Universe(**plugins), wishes(*roots)


def _some(dice: random.Random, versions: tuple[str, ...]) -> list[str]:
    return [version for version in versions if dice.random() < 0.8] or [versions[0]]


def _random_release(dice: random.Random, name: str, version: str) -> ReleaseEntry:
    others = [other for other in NAMES if other != name]
    requires = {other: dice.choice(RANGES) for other in others if dice.random() < 0.4}
    torch = ">=2.14" if dice.random() < 0.15 else None
    return release(version, requires=requires, torch=torch, yanked="broken" if dice.random() < 0.12 else None)


def every_resolution(universe: Universe, roots: list[Requirement]) -> Iterator[Assignment]:
    """Yield every set of releases that meets all requirements, leaving out what nothing requires."""
    choices = [[None, *universe.plugins[parse_name(name)]] for name in NAMES]
    for taken in product(*choices):
        chosen = {parse_name(name): entry for name, entry in zip(NAMES, taken, strict=True) if entry is not None}
        if _is_resolution(chosen, roots):
            yield chosen


def _is_resolution(chosen: Assignment, roots: list[Requirement]) -> bool:
    wants = [(wish.name, wish.range) for wish in roots]
    wants += [want for entry in chosen.values() for want in entry.requires.plugins]
    return (
        all(name in chosen and range_.contains(chosen[name].version) for name, range_ in wants)
        and _reached(chosen, roots) == chosen.keys()
        and all(isinstance(judge(entry, HOST), Fits) for entry in chosen.values())
        and all(entry.yanked is None or _is_named(name, entry, roots) for name, entry in chosen.items())
    )


def _is_named(name: PluginName, entry: ReleaseEntry, roots: list[Requirement]) -> bool:
    return any(wish.name == name and wish.range.exact == entry.version for wish in roots)


def _reached(chosen: Assignment, roots: list[Requirement]) -> set[PluginName]:
    reached: set[PluginName] = set()
    todo = [wish.name for wish in roots]
    while todo:
        name = todo.pop()
        if name not in reached:
            reached.add(name)
            todo.extend(other for other, _ in chosen[name].requires.plugins)
    return reached


def older_than_it_could_be(universe: Universe, roots: list[Requirement], chosen: Assignment) -> set[PluginName]:
    """Return the plugins with a newer, non-yanked release in all ranges of the root and the chosen releases."""
    wants = [(wish.name, wish.range) for wish in roots]
    wants += [want for entry in chosen.values() for want in entry.requires.plugins]
    return {
        name
        for name, entry in chosen.items()
        for newer in universe.plugins[name]
        if newer.version > entry.version
        and newer.yanked is None
        and all(range_.contains(newer.version) for other, range_ in wants if other == name)
    }


def taken(resolution: Resolution) -> Assignment:
    return {pin.name: pin.release for pin in resolution.pins}


SEEDS = st.integers(0, 2**32)


@given(SEEDS)
@settings(max_examples=400, deadline=None)
def test_resolves_exactly_when_some_set_of_releases_does(seed: int) -> None:
    universe, roots = random_universe(seed)
    every_name = frozenset(map(parse_name, NAMES))

    try:
        found = taken(resolve(universe, roots, HOST, accept_fallback=every_name))
    except (Unsatisfiable, IncompatibleTarget, NotFound):
        found = None

    possible = list(every_resolution(universe, roots))
    assert found in possible if possible else found is None


@given(SEEDS)
@settings(max_examples=400, deadline=None)
def test_nothing_older_is_taken_silently_and_none_is_refused_without_need(seed: int) -> None:
    universe, roots = random_universe(seed)
    clean = [c for c in every_resolution(universe, roots) if not older_than_it_could_be(universe, roots, c)]

    try:
        found = taken(resolve(universe, roots, HOST))
    except (Unsatisfiable, IncompatibleTarget, NotFound, FallbackRefused):
        found = None

    assert found in clean if clean else found is None


@given(SEEDS, st.sets(st.sampled_from(NAMES)))
@settings(max_examples=300, deadline=None)
def test_what_the_refusal_says_to_accept_is_then_taken_and_recorded(seed: int, accepted: set[str]) -> None:
    universe, roots = random_universe(seed)
    accept = frozenset(map(parse_name, accepted))
    try:
        resolution = resolve(universe, roots, HOST, accept_fallback=accept)
    except FallbackRefused as refused:
        resolution = resolve(universe, roots, HOST, accept_fallback=accept | set(refused.context["accept"]))
        accept |= set(refused.context["accept"])
    except SpmError:
        return

    recorded = {pin.name for pin in resolution.pins if pin.fallback}
    assert recorded == older_than_it_could_be(universe, roots, taken(resolution))
    assert recorded <= accept


@given(SEEDS)
@settings(max_examples=100, deadline=None)
def test_answer_does_not_depend_on_the_order_in_which_anything_is_given(seed: int) -> None:
    universe, roots = random_universe(seed)
    turned = Universe(**{name: universe.plugins[parse_name(name)][::-1] for name in reversed(NAMES)})

    assert _answer(universe, roots) == _answer(turned, roots[::-1])


@given(SEEDS)
@settings(max_examples=200, deadline=None)
def test_every_release_named_in_a_failure_is_real_and_every_wish_was_made(seed: int) -> None:
    universe, roots = random_universe(seed)

    told = _failure(universe, roots)

    for fact in told["releases"]:
        entries = universe.plugins[parse_name(fact["plugin"])]
        entry = next(entry for entry in entries if str(entry.version) == fact["version"])
        assert _is_true(fact["why"], entry)
    made = {(wish.name, wish.range.text) for wish in roots}
    assert {(wish["plugin"], wish["range"]) for wish in told["requirements"]} <= made


def _failure(universe: Universe, roots: list[Requirement]) -> dict[str, list[dict[str, str]]]:
    try:
        resolve(universe, roots, HOST)
    except (Unsatisfiable, IncompatibleTarget) as refused:
        return refused.context
    except (FallbackRefused, NotFound):
        return {"releases": [], "requirements": []}
    return {"releases": [], "requirements": []}


def _is_true(why: str, entry: ReleaseEntry) -> bool:
    if why.startswith("requires "):
        return all(f"`{name}` `{wanted}`" in why for name, wanted in entry.requires.plugins if f"`{name}`" in why)
    if why.startswith("needs torch"):
        return not isinstance(judge(entry, HOST), Fits)
    if why.startswith("yanked"):
        return entry.yanked is not None
    if why.startswith("a pre-release"):
        return entry.version.is_prerelease
    return why.startswith("outside ")


def _answer(universe: Universe, roots: list[Requirement]) -> object:
    try:
        return [(pin.name, str(pin.version)) for pin in resolve(universe, roots, HOST).pins]
    except SpmError as refused:
        return refused.message

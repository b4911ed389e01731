"""Generations: what is written reads back, and what does not hold together is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.canonical import canonical_bytes
from manifests.devices import parse_affinity
from manifests.errors import NotCanonical, TypeMismatch
from manifests.lockfile import Bindings, Generation, InstalledEntry
from manifests.names import PluginName
from tests.manifests.builders import (
    CREATED,
    DIGEST,
    UNHURRIED,
    generations,
    holds_or_refuses,
    installed,
    refused,
    with_flipped_bytes,
    with_one_hostile_value,
)


def generation(*plugins: InstalledEntry) -> Generation:
    return Generation(number=1, registry="team.example", created=CREATED, plugins=plugins)


def requiring(name: str, *required: str) -> InstalledEntry:
    return installed(name, requires=tuple(map(PluginName, required)))


def test_stored_bytes_are_these() -> None:
    entry = installed(fallback="built for another torch", bindings=Bindings(affinity=parse_affinity(["cuda:1"])))

    assert (
        generation(entry).to_bytes()
        == (
            '{"_type":"spm.generation/1","created":"2026-01-31T12:00:00Z","number":1,"plugins":[{"bindings":'
            f'{{"affinity":["cuda:1"]}},"fallback":"built for another torch","keyids":["{DIGEST}"],'
            f'"manifest_sha256":"{DIGEST}","name":"audio-encoder","release":"1.0.0","requested":true,"requires":[],'
            '"type":"ext","version":"1.0.0"}],"registry":"team.example"}'
        ).encode()
    )


def test_registry_is_written_where_it_is_another_than_the_generations_own() -> None:
    made = generation(installed("px-scale", registry="px.example"), installed("scale"))

    plugins = json.loads(made.to_bytes())["plugins"]

    assert [plugin.get("registry") for plugin in plugins] == ["px.example", None]
    assert Generation.from_bytes(made.to_bytes()) == made


@pytest.mark.property
@UNHURRIED
@given(generations())
def test_generation_reads_back(made: Generation) -> None:
    assert Generation.from_bytes(made.to_bytes()) == made
    assert Generation.from_bytes(made.to_bytes()).to_bytes() == made.to_bytes()


@pytest.mark.property
@UNHURRIED
@given(generations().flatmap(lambda made: with_flipped_bytes(made.to_bytes())))
def test_any_bytes_are_a_generation_or_refused(data: bytes) -> None:
    holds_or_refuses(lambda: Generation.from_bytes(data))


@pytest.mark.property
@UNHURRIED
@given(generations().flatmap(lambda made: with_one_hostile_value(json.loads(made.to_bytes()))))
def test_any_value_is_a_generation_or_refused(value: Any) -> None:
    holds_or_refuses(lambda: Generation.from_bytes(canonical_bytes(value)))


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        ((requiring("a", "b"),), "`a` requires `b`, which is not installed"),
        ((installed("a"), installed("a")), "`a` is installed twice"),
        (
            (installed("a", release="1.0.1"),),
            "`plugins`: item 0: the release folder `1.0.1` is not one of version 1.0.0",
        ),
        (
            (installed("a", release="1.0.00"),),
            "`plugins`: item 0: the release folder `1.0.00` is not one of version 1.0.0",
        ),
        ((installed("a", release="../1.0.0"),), "`plugins`: item 0: `release`: '../1.0.0' is not a release folder"),
        (
            (installed("a", release="1.0.0/../.."),),
            "`plugins`: item 0: `release`: '1.0.0/../..' is not a release folder",
        ),
    ],
)
def test_generation_that_does_not_hold_together_is_refused(plugins: tuple[InstalledEntry, ...], message: str) -> None:
    assert refused(lambda: Generation.from_bytes(generation(*plugins).to_bytes()), TypeMismatch) == (
        f"the generation file is refused: {message}"
    )


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("number", 0, "`number`: '0' is not a whole number from 1 to 999999"),
        ("number", True, "`number`: 'True' is not a whole number from 1 to 999999"),
        ("created", "never", "`created`: 'never' is not a UTC time such as 2026-01-31T12:00:00Z"),
        ("plugins", {}, "`plugins`: '{}' is not a list of at most 4096 items"),
        ("_type", "spm.generation/2", "`_type`: 'spm.generation/2' is not one of `spm.generation/1`"),
    ],
)
def test_wrong_member_is_refused(member: str, value: Any, message: str) -> None:
    data = canonical_bytes(json.loads(generation().to_bytes()) | {member: value})

    assert refused(lambda: Generation.from_bytes(data), TypeMismatch) == f"the generation file is refused: {message}"


def test_other_spelling_is_refused() -> None:
    assert refused(lambda: Generation.from_bytes(b" " + generation().to_bytes()), NotCanonical) == (
        "the generation file is not in RFC 8785 canonical form"
    )


def test_closure_has_all_that_is_required_each_once_the_named_one_first() -> None:
    made = generation(
        requiring("a", "b", "c"), requiring("b", "d"), requiring("c", "d"), requiring("d"), requiring("e")
    )

    assert [entry.name for entry in made.closure("a")] == ["a", "b", "c", "d"]
    assert [entry.name for entry in made.closure("d")] == ["d"]
    assert made.closure("f") == ()


def test_closure_of_a_circle_ends() -> None:
    assert [entry.name for entry in generation(requiring("a", "b"), requiring("b", "a")).closure("b")] == ["b", "a"]


def test_dependants_are_those_that_require_it() -> None:
    made = generation(requiring("a", "c"), requiring("b", "c"), requiring("c"))

    assert made.dependants("c") == ("a", "b")
    assert made.dependants("a") == ()


def test_following_generation_has_the_next_number_and_is_sorted() -> None:
    later = "2026-02-01T00:00:00Z"

    made = generation(installed("a")).following(created=later, plugins=(installed("c"), installed("b")))

    assert (made.number, made.created, [entry.name for entry in made.plugins]) == (2, later, ["b", "c"])


@pytest.mark.property
@UNHURRIED
@given(generations(), st.data())
def test_closure_holds_what_its_members_require(made: Generation, data: st.DataObject) -> None:
    if not made.plugins:
        return
    found = made.closure(data.draw(st.sampled_from(made.plugins)).name)

    assert {wanted for entry in found for wanted in entry.requires} <= {entry.name for entry in found}
    assert len({entry.name for entry in found}) == len(found)

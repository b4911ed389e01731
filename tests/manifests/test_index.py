"""Shards: what is written reads back, versions are ordered and never replaced, and only `yanked` changes."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from manifests.canonical import canonical_bytes
from manifests.errors import NotCanonical, NotFound, TypeMismatch, UsageError, VersionExists
from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.names import PluginName
from manifests.parts import Variant
from manifests.ranges import Range
from manifests.versions import Version
from tests.manifests.builders import (
    DIGEST,
    UNHURRIED,
    holds_or_refuses,
    manifest,
    refused,
    shards,
    with_flipped_bytes,
    with_one_hostile_value,
)

BUILD = VariantEntry.of(manifest(), sha256=DIGEST, size=512, keyids=["ff" * 32, "00" * 32])


def release(version: str, *builds: VariantEntry) -> ReleaseEntry:
    return replace(ReleaseEntry.of(manifest(), builds or (BUILD,)), version=Version.parse(version))


def shard(*versions: str) -> Shard:
    found = tuple(release(version) for version in versions)
    return Shard(registry="team.example", name=PluginName("audio-encoder"), releases=found)


def listed(made: Shard) -> list[str]:
    return [str(entry.version) for entry in made.releases]


def test_served_bytes_are_these() -> None:
    assert (
        shard("2.0.5").to_bytes()
        == (
            '{"_type":"spm.index/1","name":"audio-encoder","registry":"team.example","releases":[{"requires":{},'
            '"seedance_version":">=2.0.0,<3","summary":"Turns speech into vectors","type":"ext","variants":['
            f'{{"blobs_size":7,"manifest_sha256":"{DIGEST}","manifest_size":512,'
            f'"signatures":["{"00" * 32}","{"ff" * 32}"]}}],"version":"2.0.5"}}]}}'
        ).encode()
    )


@pytest.mark.property
@UNHURRIED
@given(shards)
def test_shard_reads_back(made: Shard) -> None:
    assert Shard.from_dict(made.to_dict()) == made
    assert Shard.from_bytes(made.to_bytes()).to_bytes() == made.to_bytes()


@pytest.mark.property
@UNHURRIED
@given(shards.flatmap(lambda made: with_flipped_bytes(made.to_bytes())))
def test_any_bytes_are_a_shard_or_refused(data: bytes) -> None:
    holds_or_refuses(lambda: Shard.from_bytes(data))


@pytest.mark.property
@UNHURRIED
@given(shards.flatmap(lambda made: with_one_hostile_value(made.to_dict())))
def test_any_value_is_a_shard_or_refused(value: Any) -> None:
    holds_or_refuses(lambda: Shard.from_dict(value))


def test_releases_are_kept_in_order_whatever_the_order_of_publishing() -> None:
    made = shard()
    for version in ("1.10.0", "1.9.0", "2.0.0-rc.1", "1.10.1+cpu"):
        made = made.with_release(release(version))

    assert listed(made) == ["1.9.0", "1.10.0", "1.10.1+cpu", "2.0.0-rc.1"]
    assert Shard.from_bytes(made.to_bytes()) == made


@pytest.mark.parametrize("version", ["1.0.0", "1.0.0+other"])
def test_version_is_never_replaced(version: str) -> None:
    assert refused(lambda: shard("1.0.0").with_release(release(version)), VersionExists) == (
        "`audio-encoder` 1.0.0 exists; a version can never be replaced"
    )


@pytest.mark.parametrize("versions", [("1.1.0", "1.0.0"), ("1.0.0", "1.0.0"), ("1.0.0", "1.0.0+cpu")])
def test_shard_out_of_order_is_refused(versions: tuple[str, ...]) -> None:
    assert refused(lambda: Shard.from_bytes(shard(*versions).to_bytes()), TypeMismatch) == (
        "the index shard is refused: `releases` is not ordered by version, newest last, each once"
    )


def test_release_is_found_whatever_its_build_part() -> None:
    found = shard("1.0.0+cpu").find(Version.parse("1.0.0"))

    assert found is not None
    assert str(found.version) == "1.0.0+cpu"
    assert shard("1.0.0").find(Version.parse("1.0.1")) is None


def test_yanking_changes_nothing_else_and_can_be_taken_back() -> None:
    made = shard("1.0.0", "1.1.0")

    yanked = made.with_yanked(Version.parse("1.0.0"), "it forgets its weights")

    assert [entry.yanked for entry in yanked.releases] == ["it forgets its weights", None]
    assert Shard.from_bytes(yanked.to_bytes()) == yanked
    assert yanked.with_yanked(Version.parse("1.0.0"), None) == made


def test_a_release_says_when_it_was_published_or_nothing_of_it() -> None:
    stamped = replace(release("1.1.0"), published="2026-12-01T09:00:00Z")
    made = replace(shard(), releases=(release("1.0.0"), stamped))

    assert [entry.to_dict().get("published") for entry in made.releases] == [None, "2026-12-01T09:00:00Z"]
    assert Shard.from_bytes(made.to_bytes()) == made
    assert made.with_yanked(stamped.version, "it leaks").releases[1].published == "2026-12-01T09:00:00Z"


def test_yanking_what_is_not_there_is_refused() -> None:
    message = refused(lambda: shard("1.0.0").with_yanked(Version.parse("2.0.0"), "why"), NotFound)

    assert message == "`audio-encoder` has no release 2.0.0"


@pytest.mark.parametrize("reason", ["", "a\nb", "\x1b[2J"])
def test_reason_that_no_shard_could_hold_is_refused(reason: str) -> None:
    assert refused(lambda: shard("1.0.0").with_yanked(Version.parse("1.0.0"), reason), UsageError) == (
        f"{reason!r} is not plain text of 1 to 4096 characters"
    )


@pytest.mark.parametrize("torches", [("==2.13.0", "=2.13.0"), (None, None)])
def test_two_variants_of_one_tag_are_refused(torches: tuple[str | None, str | None]) -> None:
    builds = [replace(BUILD, variant=None if torch is None else Variant(torch=Range.parse(torch))) for torch in torches]
    made = replace(shard(), releases=(release("1.0.0", *builds),))
    tag = "any" if torches == (None, None) else "torcheq2.13.0"

    assert refused(lambda: Shard.from_bytes(made.to_bytes()), TypeMismatch) == (
        f"the index shard is refused: `releases`: item 0: `variants`: two variants are `{tag}`"
    )


def test_two_variants_of_different_tags_are_read() -> None:
    builds = [replace(BUILD, variant=Variant(torch=Range.parse(torch))) for torch in ("==2.13.0", "~2.13.0")]
    made = replace(shard(), releases=(release("1.0.0", *builds),))

    assert Shard.from_bytes(made.to_bytes()) == made


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("yanked", None, "`yanked`: 'None' is not plain text of 1 to 4096 characters"),
        ("yanked", True, "`yanked`: 'True' is not plain text of 1 to 4096 characters"),
        ("published", "yesterday", "`published`: 'yesterday' is not a UTC time such as 2026-01-31T12:00:00Z"),
        ("type", "any", "`type`: 'any' is not one of `core`, `ext`"),
        ("variants", {}, "`variants`: '{}' is not a list of at most 64 items"),
        ("variants", ["a"], "`variants`: 'a' is not a table"),
        (
            "variants",
            [BUILD.to_dict() | {"blobs_size": -1, "signatures": ["x"]}],
            "`variants`: item 0: `signatures`: 'x' is not a SHA-256 digest of 64 lower-case hex digits, "
            "`blobs_size`: '-1' is not a whole number from 0 to 68719476736",
        ),
        ("provenance", {}, "`provenance` is not a known member"),
    ],
)
def test_wrong_release_is_refused(member: str, value: Any, message: str) -> None:
    document = shard("1.0.0").to_dict()
    document["releases"][0][member] = value

    assert refused(lambda: Shard.from_bytes(canonical_bytes(document)), TypeMismatch) == (
        f"the index shard is refused: `releases`: item 0: {message}"
    )


def test_other_spelling_is_refused() -> None:
    assert refused(lambda: Shard.from_bytes(shard("1.0.0").to_bytes() + b"\n"), NotCanonical) == (
        "the index shard is not in RFC 8785 canonical form"
    )

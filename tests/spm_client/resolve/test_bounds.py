"""What a person bounds a resolution by besides ranges: a date, an architecture, steps and time."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from manifests.errors import FallbackRefused, IncompatibleTarget, NotFound, Undecided, Unsatisfiable
from manifests.index import ReleaseEntry
from spm_client.resolve import resolve
from spm_client.resolve.budget import Budget
from spm_client.resolve.catalogue import Catalogue
from spm_client.resolve.fit import judge_for, tag_of
from spm_client.resolve.resolution import Problem
from spm_client.resolve.universe import Universe as JsonUniverse
from tests.spm_client.resolve.universe import (
    HOST,
    Universe,
    gpu_host,
    locks,
    names,
    only,
    release,
    solve,
    variant,
    wishes,
)

JUNE = datetime(2026, 6, 1, tzinfo=UTC)


def published(version: str, moment: str | None) -> ReleaseEntry:
    return replace(release(version), published=moment)


def test_release_published_later_is_not_there_and_passing_it_over_is_no_fallback() -> None:
    universe = Universe(
        mel=[
            published("1.0.0", "2026-01-01T00:00:00Z"),
            published("1.1.0", "2026-06-01T00:00:00Z"),
            published("1.2.0", "2026-06-01T00:00:01Z"),
        ]
    )

    resolution = resolve(universe, wishes("mel"), HOST, exclude_newer=JUNE)

    assert [(str(pin.version), pin.fallback) for pin in resolution.pins] == [("1.1.0", None)]


def test_plugin_of_which_all_is_newer_has_no_release() -> None:
    universe = Universe(mel=[published("1.0.0", "2026-07-01T00:00:00Z")])

    with pytest.raises(NotFound) as refused:
        solve(universe, "mel", exclude_newer=JUNE)

    assert (refused.value.message, refused.value.hint) == (
        "`mel` has no release in `*` from before `--exclude-newer`; 1.0.0 came later",
        "leave `--exclude-newer` away, or name a later date",
    )


def test_release_that_does_not_say_when_it_was_published_is_undecided() -> None:
    universe = Universe(mel=[published("1.0.0", "2026-01-01T00:00:00Z"), published("1.1.0", None)])

    with pytest.raises(Undecided) as refused:
        solve(universe, "mel", exclude_newer=JUNE, accept_fallback=names("mel"))

    assert (refused.value.reason, refused.value.message, refused.value.hint) == (
        "unknown:published",
        "whether `mel` 1.1.0 fits cannot be decided: it does not say when it was published, "
        "and `--exclude-newer` asks for that",
        "leave `--exclude-newer` away, or ask for a release by its version",
    )
    assert solve(universe, "mel==1.0.0", exclude_newer=JUNE) == {"mel": "1.0.0"}


def test_locked_release_stays_whenever_it_was_published() -> None:
    universe = Universe(mel=[published("1.0.0", "2026-01-01T00:00:00Z"), published("1.1.0", "2026-07-01T00:00:00Z")])

    assert solve(universe, "mel", exclude_newer=JUNE, locked=locks(mel="1.1.0")) == {"mel": "1.1.0"}


def test_forced_architecture_takes_the_build_for_exactly_it_and_no_other_that_would_run() -> None:
    both = release("1.0.0", variant(accelerator="cuda", sm="sm_80"), variant(accelerator="cuda", sm="sm_86"))

    pin = only(resolve(Universe(fused=[both]), wishes("fused"), gpu_host("sm_86"), force_arch="sm_86").pins)

    assert (tag_of(pin.variant), pin.fallback) == ("cuda-sm_86", None)


def test_forced_architecture_that_nothing_is_built_for_is_refused_with_what_there_is() -> None:
    near = release("1.0.0", variant(accelerator="cuda", sm="sm_80"), variant())

    with pytest.raises(IncompatibleTarget) as refused:
        solve(Universe(fused=[near]), "fused", target=gpu_host("sm_86"), force_arch="sm_86")

    assert (refused.value.reason, refused.value.message) == (
        "arch",
        "no release of `fused` that would do fits the target:\n`fused`: `*` wanted by you\n"
        "  1.0.0: is built for sm_80, and `--force-arch=sm_86` asks for exactly that",
    )


def test_forced_architecture_weakens_no_check_of_the_target() -> None:
    other = release("1.0.0", variant(accelerator="cuda", sm="sm_90"))

    with pytest.raises(IncompatibleTarget) as refused:
        solve(Universe(fused=[other]), "fused", target=gpu_host("sm_86"), force_arch="sm_90")

    assert refused.value.reason == "arch"
    assert "`cuda-sm_90` is built for sm_90, and the target has sm_86" in refused.value.message


def test_forced_architecture_leaves_plugins_without_device_code_as_they_are() -> None:
    universe = Universe(
        fused=[release("1.0.0", variant(accelerator="cuda", sm="sm_86"), requires={"mel": "*"})], mel=[release("1.0.0")]
    )

    assert solve(universe, "fused", target=gpu_host("sm_86"), force_arch="sm_86") == {"fused": "1.0.0", "mel": "1.0.0"}


def test_older_release_with_the_forced_architecture_is_a_fallback() -> None:
    universe = Universe(
        fused=[
            release("1.0.0", variant(accelerator="cuda", sm="sm_86")),
            release("1.1.0", variant(accelerator="cuda", sm="sm_90")),
        ]
    )

    with pytest.raises(FallbackRefused) as refused:
        solve(universe, "fused", target=gpu_host("sm_86"), force_arch="sm_86")

    assert refused.value.message == (
        "`fused` would fall back to 1.0.0, older than the newest release in range:\n"
        "  1.1.0: is built for sm_90, and `--force-arch=sm_86` asks for exactly that"
    )


def hard_universe() -> dict[str, dict[str, dict[str, dict[str, str]]]]:
    """Return eight pigeons for seven holes: refuted only after hundreds of conflicts."""
    pigeons = {
        f"pigeon{one}": {f"{hole}.0.0": {"requires": {f"hole{hole}": f"=={one}.0.0"}} for hole in range(1, 8)}
        for one in range(1, 9)
    }
    holes: dict[str, dict[str, dict[str, dict[str, str]]]] = {
        f"hole{hole}": {f"{one}.0.0": {"requires": {}} for one in range(1, 9)} for hole in range(1, 8)
    }
    return pigeons | holes


def test_search_ends_at_its_step_limit_with_an_answer_of_its_own_kind() -> None:
    with pytest.raises(Undecided) as refused:
        JsonUniverse(hard_universe()).solve({f"pigeon{one}": "*" for one in range(1, 9)}, max_steps=100)

    assert (refused.value.reason, refused.value.message) == (
        "unknown:resolution",
        "no resolution was found or ruled out within 100 steps",
    )


def test_search_ends_when_the_time_is_over() -> None:
    asked: list[int] = []
    hard = hard_universe()
    universe = Universe(
        **{
            name: [release(version, requires=told["requires"]) for version, told in releases.items()]
            for name, releases in hard.items()
        }
    )

    def is_late() -> bool:
        asked.append(1)
        return True

    with pytest.raises(Undecided) as refused:
        resolve(universe, wishes(*(f"pigeon{one}" for one in range(1, 9))), HOST, is_late=is_late)

    assert (refused.value.message, len(asked)) == (
        "no resolution was found or ruled out within the time allowed",
        1,
    )


def test_fallback_is_refused_with_a_word_that_the_search_for_better_was_given_up() -> None:
    universe = Universe(
        alto=[release("1.0.0"), release("2.0.0")],
        beat=[release("1.0.0"), release("2.0.0", requires={"window": "*"})],
        window=[release("1.0.0", requires={"alto": "^1"})],
    )
    asked = tuple(wishes("alto", "beat"))
    catalogue = Catalogue(provider=universe, judge=judge_for(HOST), wishes=asked, pre=frozenset(), locked={})

    with pytest.raises(FallbackRefused) as refused:
        Problem(catalogue, asked, (), frozenset(), Budget(1000), better_steps=0).solve()

    assert refused.value.message == (
        "`beat` would fall back to 1.0.0, older than the newest release in range:\n"
        "  2.0.0: was found only with another fallback\n"
        "whether there is a resolution without that was not found out: the search for one grew too long"
    )
    assert solve(universe, "alto", "beat") == {"alto": "1.0.0", "beat": "2.0.0", "window": "1.0.0"}


def test_search_that_needs_no_other_plugin_says_so_at_once() -> None:
    with pytest.raises(Unsatisfiable):
        JsonUniverse({"a": {"1.0.0": {"requires": {"b": "*"}}}}).solve({"a": "*"})

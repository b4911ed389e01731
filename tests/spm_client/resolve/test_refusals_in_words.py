"""What people read when resolving fails, whole, as golden texts in `golden/`."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import SpmError
from manifests.index import ReleaseEntry
from manifests.names import parse_name
from manifests.parts import Requires
from manifests.ranges import Range
from manifests.target import Target
from spm_client.resolve import Requirement, resolve
from tests.spm_client.resolve.universe import HOST, Universe, gpu_host, locks, names, release, variant, wishes

MAY, JUNE, JULY = "2026-05-01T00:00:00Z", datetime(2026, 6, 1, tzinfo=UTC), "2026-07-01T00:00:00Z"
GOLDEN = Path(__file__).parent / "golden"
Case = tuple[Universe, list[str], Target, dict[str, Any]]
CASES: dict[str, Callable[[], Case]] = {}


def _published(version: str, moment: str) -> ReleaseEntry:
    return replace(release(version), published=moment)


def _requires(name: str, wanted: str) -> Requires:
    return Requires(plugins=((parse_name(name), Range.parse(wanted)),))


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


@case
def conflict_of_two() -> Case:
    universe = Universe(
        beat=[release("1.0.0", requires={"mel": "^2"}), release("1.1.0", requires={"mel": "^2"})],
        mel=[release("1.3.0"), release("1.4.0"), release("2.0.0"), release("2.1.0")],
    )
    return universe, ["beat", "mel@^1"], HOST, {}


@case
def conflict_through_a_third() -> Case:
    universe = Universe(
        beat=[release("1.0.0", requires={"fft": "^3"})],
        mel=[release("1.0.0", requires={"window": "^1"}), release("1.1.0", requires={"window": "~1.1"})],
        window=[release("1.0.0", requires={"fft": "^2"}), release("1.1.0", requires={"fft": "^2"})],
        fft=[release("2.0.0"), release("3.0.0")],
        unrelated=[release("1.0.0", requires={"fft": "*"})],
    )
    return universe, ["unrelated", "mel", "beat"], HOST, {}


@case
def conflict_with_what_is_held() -> Case:
    universe = Universe(beat=[release("1.0.0", requires={"mel": "^2"})], mel=[release("1.0.0"), release("2.0.0")])
    held = Requirement(name=parse_name("mel"), range=Range.parse("^1"), source="spm.toml")
    return universe, ["beat"], HOST, {"pins": [held]}


@case
def dependency_has_no_release_in_range() -> Case:
    universe = Universe(beat=[release("1.0.0", requires={"mel": "^9"})], mel=[release("1.0.0"), release("2.0.0")])
    return universe, ["beat"], HOST, {}


@case
def long_list_is_cut_and_says_by_how_much() -> Case:
    universe = Universe(
        beat=[release(f"1.{minor}.0", requires={"mel": "^2"}) for minor in range(12)],
        mel=[release(f"{major}.0.0") for major in range(1, 9)],
    )
    return universe, ["beat", "mel>=3"], HOST, {}


@case
def all_yanked() -> Case:
    universe = Universe(mel=[release("1.0.0", yanked="wrong weights"), release("1.1.0", yanked="wrong weights")])
    return universe, ["mel"], HOST, {}


@case
def only_pre_releases() -> Case:
    return Universe(mel=[release("1.0.0-beta.1"), release("1.0.0-rc.1")]), ["mel"], HOST, {}


@case
def version_not_there() -> Case:
    return Universe(mel=[release("1.0.0"), release("1.2.0"), release("2.0.0-rc.1")]), ["mel==3.0.0"], HOST, {}


@case
def plugin_without_releases() -> Case:
    return Universe(mel=[]), ["mel"], HOST, {}


@case
def plugin_not_there() -> Case:
    return Universe(), ["mel"], HOST, {}


@case
def dependency_not_there() -> Case:
    return Universe(beat=[release("1.0.0", requires={"mel": "*"})]), ["beat"], HOST, {}


@case
def torch_too_old() -> Case:
    universe = Universe(mel=[release("1.0.0", torch=">=2.14,<3"), release("1.1.0", torch=">=2.15,<3")])
    return universe, ["mel"], HOST, {}


@case
def contract_too_old() -> Case:
    return Universe(mel=[release("1.0.0", contract=">=2.1,<3")]), ["mel"], HOST, {}


@case
def no_variant_for_this_cpu() -> Case:
    entry = release("1.0.0", variant(os="linux", cpu="aarch64"), variant(os="darwin", cpu="arm64"))
    return Universe(fused=[entry]), ["fused"], HOST, {}


@case
def no_variant_for_this_gpu() -> Case:
    entry = release("1.0.0", variant(accelerator="cuda", sm="sm_90 sm_100"))
    return Universe(fused=[entry]), ["fused"], gpu_host("sm_86"), {}


@case
def dependency_does_not_fit_the_target() -> Case:
    universe = Universe(
        beat=[release("1.0.0", requires={"mel": "^1"}), release("1.1.0", requires={"mel": "^1.1"})],
        mel=[release("1.0.0", python=">=3.12"), release("1.1.0", python=">=3.13")],
    )
    return universe, ["beat"], HOST, {}


@case
def sm_of_the_gpu_is_unknown() -> Case:
    entry = release("1.0.0", variant(), variant(accelerator="cuda", sm="sm_90"))
    return Universe(fused=[entry]), ["fused"], gpu_host(None), {}


@case
def fallback_because_of_the_target() -> Case:
    universe = Universe(mel=[release("1.0.0"), release("1.1.0", torch=">=2.14"), release("1.2.0", contract="^3")])
    return universe, ["mel"], HOST, {}


@case
def fallback_because_of_a_conflict() -> Case:
    universe = Universe(
        beat=[release("1.0.0"), release("1.1.0", requires={"mel": "^2"})],
        mel=[release("1.0.0"), release("2.0.0")],
    )
    return universe, ["beat", "mel@^1"], HOST, {}


@case
def fallback_because_of_a_longer_conflict() -> Case:
    universe = Universe(
        beat=[release("1.0.0"), release("1.1.0", requires={"window": "*"})],
        window=[release("1.0.0", requires={"mel": "^2"})],
        mel=[release("1.0.0"), release("2.0.0")],
    )
    return universe, ["beat", "mel@^1"], HOST, {}


@case
def fallback_because_a_dependency_does_not_fit() -> Case:
    universe = Universe(
        beat=[release("1.0.0"), release("1.1.0", requires={"mel": "^2"})], mel=[release("2.0.0", torch=">=2.14")]
    )
    return universe, ["beat"], HOST, {}


@case
def fallback_of_a_variant() -> Case:
    entry = release("1.0.0", variant(), variant(accelerator="cuda", sm="sm_90"))
    return Universe(fused=[entry]), ["fused"], gpu_host("sm_86"), {}


@case
def fallback_of_two_where_one_is_accepted() -> Case:
    universe = Universe(
        beat=[release("1.0.0"), release("1.1.0", torch=">=2.14")],
        mel=[release("1.0.0"), release("1.1.0", torch=">=2.14")],
    )
    return universe, ["beat", "mel"], HOST, {"accept_fallback": names("mel")}


@case
def fallback_because_of_what_came_later() -> Case:
    universe = Universe(
        beat=[_published("1.0.0", MAY), replace(_published("1.1.0", MAY), requires=_requires("mel", "^2"))],
        mel=[_published("1.0.0", MAY), _published("2.0.0", JULY)],
    )
    return universe, ["beat", "mel"], HOST, {"exclude_newer": JUNE}


@case
def conflict_because_of_what_came_later() -> Case:
    universe = Universe(
        beat=[replace(_published("1.0.0", MAY), requires=_requires("mel", "^2"))],
        mel=[_published("1.0.0", MAY), _published("2.0.0", JULY)],
    )
    return universe, ["beat"], HOST, {"exclude_newer": JUNE}


@case
def fallback_because_of_pre_releases_alone() -> Case:
    universe = Universe(beat=[release("1.0.0"), release("1.1.0", requires={"mel": "^2"})], mel=[release("2.1.0-rc.1")])
    return universe, ["beat"], HOST, {}


@case
def fallback_because_of_a_fact_behind_another_plugin() -> Case:
    universe = Universe(
        alto=[release("1.0.0"), release("2.0.0", requires={"beat": "^1"})],
        beat=[release("1.0.0", requires={"mel": "^1"}), release("2.0.0")],
        mel=[release("1.0.0", torch=">=9")],
    )
    return universe, ["alto", "beat"], HOST, {}


@case
def fallback_of_many_releases_by_one_fact() -> Case:
    newer = [release(f"1.{minor}.0", torch=">=2.14") for minor in range(1, 30)]
    return Universe(mel=[release("1.0.0"), *newer]), ["mel"], HOST, {}


@case
def fallback_of_the_build_of_a_locked_release() -> Case:
    entry = release("1.0.0", variant(), variant(accelerator="cuda", sm="sm_90"))
    return Universe(fused=[entry]), ["fused"], gpu_host("sm_86"), {"locked": locks(fused="1.0.0")}


@case
def range_below_what_was_yanked() -> Case:
    return Universe(mel=[release("1.0.0", yanked="wrong weights")]), ["mel>=2"], HOST, {}


@case
def out_of_steps() -> Case:
    return Universe(mel=[release("1.0.0")], beat=[release("1.0.0")]), ["mel", "beat"], HOST, {"max_steps": 1}


@case
def lock_does_not_excuse_another_release() -> Case:
    universe = Universe(mel=[release("1.0.0"), release("1.1.0"), release("1.2.0", torch=">=2.14")])
    return universe, ["mel>=1.1"], HOST, {"locked": locks(mel="1.0.0")}


@pytest.mark.parametrize("name", CASES)
def test_refusal_reads_as_the_golden_text(name: str) -> None:
    universe, specs, target, options = CASES[name]()

    with pytest.raises(SpmError) as refused:
        resolve(universe, wishes(*specs), target, **options)

    error = refused.value
    told = f"exit {error.exit_code} {error.reason}\n{error.message}\n" + (f"hint: {error.hint}\n" if error.hint else "")
    assert told == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_every_golden_text_has_its_case() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(CASES)

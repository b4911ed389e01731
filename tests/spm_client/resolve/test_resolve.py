"""Which releases are taken: newest, locked, yanked, pre-release, fallback; one rule a test."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from manifests.errors import FallbackRefused, NotFound, RegistryTimeout, SpmError, Undecided, Unsatisfiable
from manifests.index import ReleaseEntry
from manifests.names import PluginName, parse_name
from manifests.ranges import Range
from spm_client.resolve import Requirement, Resolution, resolve
from spm_client.resolve.fit import tag_of
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

MEL = parse_name("mel")


def held(name: str, text: str) -> Requirement:
    return Requirement(name=parse_name(name), range=Range.parse(text), source="spm.toml")


def test_newest_release_in_range_is_taken() -> None:
    universe = Universe(mel=[release("1.0.0"), release("2.0.0"), release("1.10.0"), release("1.9.0")])

    assert solve(universe, "mel@^1") == {"mel": "1.10.0"}


def test_dependencies_are_taken_too_and_only_what_was_asked_for_is_requested() -> None:
    universe = Universe(
        beat=[release("1.0.0", requires={"mel": "^1"})],
        mel=[release("1.0.0", requires={"fft": "*"}), release("2.0.0")],
        fft=[release("3.0.0")],
        other=[release("1.0.0")],
    )

    resolution = resolve(universe, wishes("beat"), HOST)

    assert [(pin.name, str(pin.version), pin.requested, pin.fallback) for pin in resolution.pins] == [
        ("beat", "1.0.0", True, None),
        ("fft", "3.0.0", False, None),
        ("mel", "1.0.0", False, None),
    ]
    assert universe.asked == ["beat", "mel", "fft"]


def test_nothing_asked_for_is_nothing_taken() -> None:
    assert solve(Universe()) == {}


def test_cycle_of_plugins_resolves() -> None:
    universe = Universe(beat=[release("1.0.0", requires={"mel": "*"})], mel=[release("1.0.0", requires={"beat": "^1"})])

    assert solve(universe, "mel") == {"beat": "1.0.0", "mel": "1.0.0"}


def test_release_excluded_by_the_range_of_a_chosen_release_is_no_fallback() -> None:
    universe = Universe(beat=[release("1.0.0", requires={"mel": "<2"})], mel=[release("1.0.0"), release("2.0.0")])

    assert solve(universe, "beat", "mel") == {"beat": "1.0.0", "mel": "1.0.0"}


def test_resolution_without_fallback_is_found_where_the_first_one_has_one() -> None:
    universe = Universe(
        alto=[release("1.0.0"), release("2.0.0")],
        beat=[release("1.0.0"), release("2.0.0", requires={"alto": "^1"})],
    )

    assert solve(universe, "alto", "beat") == {"alto": "1.0.0", "beat": "2.0.0"}


def test_accepted_fallback_is_taken_and_recorded_as_a_sentence() -> None:
    universe = Universe(mel=[release("1.0.0"), release("1.1.0", torch=">=2.14")])

    pin = only(resolve(universe, wishes("mel"), HOST, accept_fallback=names("mel")).pins)

    expected = "mel 1.0.0 was accepted as a fallback: 1.1.0 needs torch `>=2.14`, and the target has 2.13.0+cpu"
    assert (str(pin.version), pin.fallback) == ("1.0.0", expected)


def test_acceptance_is_not_used_where_it_is_not_needed() -> None:
    universe = Universe(
        alto=[release("1.0.0"), release("2.0.0")],
        beat=[release("1.0.0"), release("2.0.0", requires={"alto": "^1"})],
    )

    assert solve(universe, "alto", "beat", accept_fallback=names("beat")) == {"alto": "1.0.0", "beat": "2.0.0"}


def test_refusal_asks_for_no_more_than_is_needed() -> None:
    universe = Universe(
        alto=[release("1.0.0"), release("2.0.0")],
        beat=[release("1.0.0"), release("2.0.0", requires={"alto": "^1"})],
        mel=[release("1.0.0"), release("1.1.0", torch=">=2.14")],
    )

    with pytest.raises(FallbackRefused) as refused:
        solve(universe, "alto", "beat", "mel")

    assert refused.value.context == {
        "fallbacks": [
            {
                "plugin": "mel",
                "version": "1.0.0",
                "passed_over": [
                    {"release": "1.1.0", "why": "needs torch `>=2.14`, and the target has 2.13.0+cpu"},
                ],
            }
        ],
        "accept": ["mel"],
    }


def test_locked_release_is_kept_although_a_newer_one_is_there_and_that_is_recorded() -> None:
    universe = Universe(mel=[release("1.0.0"), release("1.1.0")])

    pin = only(resolve(universe, wishes("mel"), HOST, locked=locks(mel="1.0.0")).pins)

    assert (str(pin.version), pin.fallback) == ("1.0.0", "mel 1.0.0 is kept by the lockfile although 1.1.0 is newer")


def test_locked_release_outside_the_range_is_left_for_the_newest() -> None:
    universe = Universe(mel=[release("1.0.0"), release("2.0.0")])

    assert solve(universe, "mel>=2", locked=locks(mel="1.0.0")) == {"mel": "2.0.0"}


def test_locked_pre_release_is_kept_without_asking_again() -> None:
    universe = Universe(mel=[release("1.0.0"), release("1.1.0-rc.1")])

    assert solve(universe, "mel", locked=locks(mel="1.1.0-rc.1")) == {"mel": "1.1.0-rc.1"}


def test_yanked_release_is_passed_over_and_that_is_no_fallback() -> None:
    universe = Universe(mel=[release("1.0.0"), release("1.1.0", yanked="wrong weights")])

    assert solve(universe, "mel") == {"mel": "1.0.0"}


def test_yanked_release_is_taken_when_a_person_names_exactly_it() -> None:
    universe = Universe(mel=[release("1.0.0"), release("1.1.0", yanked="wrong weights")])

    assert solve(universe, "mel==1.1.0") == {"mel": "1.1.0"}
    assert solve(universe, "mel-v1.1.0") == {"mel": "1.1.0"}


def test_yanked_release_is_kept_when_the_lockfile_pins_it() -> None:
    universe = Universe(mel=[release("1.0.0"), release("1.1.0", yanked="wrong weights")])

    assert solve(universe, "mel", locked=locks(mel="1.1.0")) == {"mel": "1.1.0"}


def test_exact_range_of_another_plugin_does_not_bring_a_yanked_release_back() -> None:
    universe = Universe(
        beat=[release("1.0.0", requires={"mel": "==1.1.0"})], mel=[release("1.1.0", yanked="wrong weights")]
    )

    with pytest.raises(Unsatisfiable):
        solve(universe, "beat")
    assert solve(universe, "beat", "mel==1.1.0") == {"beat": "1.0.0", "mel": "1.1.0"}


def test_pre_release_is_taken_only_where_the_range_names_one_of_its_version_or_by_pre() -> None:
    universe = Universe(mel=[release("1.0.0"), release("1.1.0-rc.1"), release("1.1.0-rc.2")])

    assert solve(universe, "mel") == {"mel": "1.0.0"}
    assert solve(universe, "mel>=1.1.0-beta.1") == {"mel": "1.1.0-rc.2"}
    assert solve(universe, "mel", pre=names("mel")) == {"mel": "1.1.0-rc.2"}


def test_pin_bounds_a_plugin_without_asking_for_it() -> None:
    universe = Universe(
        beat=[release("1.0.0", requires={"mel": "*"})], mel=[release("1.0.0"), release("2.0.0")], fft=[]
    )

    assert solve(universe, "beat", pins=[held("mel", "<2"), held("fft", "^9")]) == {"beat": "1.0.0", "mel": "1.0.0"}
    assert universe.asked == ["beat", "mel"]


def test_variant_taken_is_in_the_pin() -> None:
    kind = {"os": "linux", "cpu": "x86_64"}
    entry = release("1.0.0", variant(os="darwin"), variant(**kind, torch="~2.13"), variant(**kind))

    pin = only(resolve(Universe(fused=[entry]), wishes("fused"), HOST).pins)

    assert (tag_of(pin.variant), pin.fallback) == ("linux-x86_64-torch2.13", None)


def test_accepted_variant_fallback_is_recorded() -> None:
    entry = release("1.0.0", variant(), variant(accelerator="cuda", sm="sm_90"))

    resolution = resolve(Universe(fused=[entry]), wishes("fused"), gpu_host("sm_86"), accept_fallback=names("fused"))

    pin = only(resolution.pins)
    expected = (
        "fused 1.0.0 was accepted as a fallback: variant `cuda-sm_90` is built for sm_90, and the target has sm_86"
    )
    assert (tag_of(pin.variant), pin.fallback) == ("any", expected)


def test_release_of_which_a_fact_is_unknown_is_neither_taken_nor_passed_over() -> None:
    universe = Universe(fused=[release("1.0.0"), release("1.1.0", variant(accelerator="cuda", sm="sm_90"))])

    with pytest.raises(Undecided) as undecided:
        solve(universe, "fused", target=gpu_host(None), accept_fallback=names("fused"))

    assert (undecided.value.reason, undecided.value.context) == (
        "unknown:sm",
        {"plugin": "fused", "version": "1.1.0", "fact": "sm"},
    )


def test_unknown_fact_of_a_release_that_is_not_needed_does_not_matter() -> None:
    universe = Universe(fused=[release("1.0.0"), release("1.1.0", variant(accelerator="cuda", sm="sm_90"))])

    assert solve(universe, "fused<1.1", target=gpu_host(None)) == {"fused": "1.0.0"}


class Failing(Universe):
    """A universe of which one plugin's metadata cannot be had."""

    def __init__(self, broken: str, error: SpmError, **plugins: Sequence[ReleaseEntry]) -> None:
        super().__init__(**plugins)
        self._broken, self._error = broken, error

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        if name == self._broken:
            raise self._error
        return super().releases(name)


def test_metadata_failure_passes_through_and_is_never_no_such_version() -> None:
    error = RegistryTimeout("index/mel.json took longer than 10 s")
    older_would_do = Failing("mel", error, beat=[release("1.0.0"), release("1.1.0", requires={"mel": "*"})])

    with pytest.raises(RegistryTimeout) as raised:
        solve(older_would_do, "beat", accept_fallback=names("beat"))

    assert raised.value is error


def test_missing_dependency_is_an_error_even_where_an_older_release_would_do_without() -> None:
    universe = Universe(beat=[release("1.0.0"), release("1.1.0", requires={"mel": "*"})])

    with pytest.raises(NotFound) as refused:
        solve(universe, "beat", accept_fallback=names("beat"))

    assert refused.value.message == "the registry has no plugin `mel`; it is required by `beat` 1.1.0"


def test_missing_dependency_of_a_release_that_is_out_of_range_does_not_matter() -> None:
    universe = Universe(
        alto=[release("1.0.0"), release("2.0.0")],
        beat=[release("1.0.0", requires={"gone": "*"}), release("1.1.0", requires={"alto": "^1"})],
    )

    assert solve(universe, "alto", "beat") == {"alto": "1.0.0", "beat": "1.1.0"}


def test_missing_dependency_is_an_error_also_where_another_choice_shuts_out_what_requires_it() -> None:
    universe = Universe(
        alto=[release("1.0.0", requires={"beat": "^2"}), release("2.0.0", requires={"beat": "^1", "gone": "*"})],
        beat=[release("1.0.0", requires={"alto": "^2"}), release("2.0.0", requires={"alto": "^1"})],
    )

    with pytest.raises(NotFound) as refused:
        solve(universe, "alto", "beat")

    assert refused.value.message == "the registry has no plugin `gone`; it is required by `alto` 2.0.0"


def test_lock_keeps_a_lesser_build_only_where_it_is_the_one_that_it_holds() -> None:
    entry = release("1.0.0", variant(), variant(accelerator="cuda", sm="sm_90"))
    held = replace(entry, variants=(replace(entry.variants[0], manifest_sha256="a" * 64), entry.variants[1]))
    builds = {parse_name("fused"): frozenset({"a" * 64})}

    def resolved(entry: ReleaseEntry) -> Resolution:
        universe, lock = Universe(fused=[entry]), locks(fused="1.0.0")
        return resolve(universe, wishes("fused"), gpu_host("sm_86"), locked=lock, held_builds=builds)

    pin = only(resolved(held).pins)

    expected = "fused 1.0.0 is kept by the lockfile: variant `cuda-sm_90` is built for sm_90, and the target has sm_86"
    assert (tag_of(pin.variant), pin.fallback) == ("any", expected)
    with pytest.raises(FallbackRefused):
        resolved(entry)


def test_what_may_be_bounded_by_others_is_chosen_after_them() -> None:
    plugins: dict[str, list[ReleaseEntry]] = {}
    for pair in range(40):
        plugins[f"alto{pair}"] = [release("1.0.0"), release("2.0.0")]
        plugins[f"beat{pair}"] = [release("1.0.0"), release("2.0.0", requires={f"alto{pair}": "^1"})]
    universe = Universe(**plugins)

    found = solve(universe, *plugins)

    assert {found[f"beat{pair}"] for pair in range(40)} == {"2.0.0"}


def test_each_plugin_is_asked_for_once() -> None:
    universe = Universe(
        beat=[release(f"1.{minor}.0", requires={"mel": "^2"}) for minor in range(5)],
        mel=[release("1.0.0")],
    )

    with pytest.raises(Unsatisfiable):
        solve(universe, "beat")

    assert sorted(universe.asked) == ["beat", "mel"]


def test_deep_chain_resolves_without_recursion() -> None:
    depth = 3000
    chain = {f"p{place}": [release("1.0.0", requires={f"p{place + 1}": "*"})] for place in range(depth)}

    assert len(solve(Universe(**chain, **{f"p{depth}": [release("1.0.0")]}), "p0")) == depth + 1


def test_many_independent_plugins_with_one_fallback_are_refused_at_once() -> None:
    plugins = {f"p{place}": [release(f"1.{minor}.0") for minor in range(20)] for place in range(60)}
    plugins["mel"] = [release("1.0.0"), release("1.1.0", torch=">=2.14")]

    with pytest.raises(FallbackRefused) as refused:
        solve(Universe(**plugins), *plugins)

    assert refused.value.context["accept"] == ["mel"]


def test_importing_the_resolver_brings_neither_network_nor_cryptography_nor_torch() -> None:
    heavy = {"urllib3", "http", "ssl", "socket", "cryptography", "jwcrypto", "torch", "yaml", "sqlalchemy", "flask"}
    code = "import sys, spm_client.resolve; print(sorted({name.partition('.')[0] for name in sys.modules}))"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert {name for name in heavy if f"'{name}'" in ran.stdout} == set()

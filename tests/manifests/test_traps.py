"""The three waste traps as tables: what a plugin says, where it would run, and what is found."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.batching import BatchPolicy
from manifests.canonical import canonical_bytes
from manifests.devices import parse_affinity
from manifests.lockfile import Bindings
from manifests.names import PluginName
from manifests.parts import TRAPS, Requires, TensorSpec
from manifests.ranges import Range
from manifests.target import Target, TargetDevice
from manifests.traps import Finding, PluginFacts, Severity, find_traps
from tests.manifests.builders import UNHURRIED, manifest, manifests, target, targets

BATCHED = TensorSpec(name="x", dtype="float32", shape=(-1, 80))
SINGLE = TensorSpec(name="bias", dtype="float32", shape=(1, 80))


def device(id_: str, sm: str | None = None) -> TargetDevice:
    return TargetDevice(id=id_, name="a device", sm=sm)


ONLY_CPU = target(device("cpu"))
ONE_GPU = target(device("cpu"), device("cuda:0", "sm_86"))
TWO_GPUS = target(device("cpu"), device("cuda:0", "sm_86"), device("cuda:1", "sm_90"))
TWINS = target(device("cpu"), device("cuda:0", "sm_90"), device("cuda:1", "sm_90"))
UNKNOWN_SM = target(device("cpu"), device("cuda:0"))


def affinity(*entries: str) -> Any:
    return parse_affinity(entries) if entries else None


def sound(**changes: Any) -> Any:
    """Return a manifest in which nothing is to be found on a host with one device."""
    members = {
        "device_affinity": affinity("cpu"),
        "batch_policy": BatchPolicy.from_value("adaptive"),
        "inputs": (BATCHED,),
    }
    return manifest(**(members | changes))


def found(facts: PluginFacts, where: Target | None, trap: str) -> list[tuple[Severity, str]]:
    return [(finding.severity, finding.message) for finding in find_traps(facts, where) if finding.trap == trap]


def of_affinity(entries: tuple[str, ...], where: Target | None) -> list[tuple[Severity, str]]:
    return found(PluginFacts.of_manifest(sound(device_affinity=affinity(*entries))), where, "affinity-unbound")


@pytest.mark.parametrize("where", [None, ONLY_CPU, ONE_GPU, TWO_GPUS, target()])
def test_sound_plugin_has_no_finding(where: Target | None) -> None:
    assert find_traps(PluginFacts.of_manifest(sound()), where) == ()


@pytest.mark.parametrize(
    ("entries", "where"),
    [
        ((), ONLY_CPU),
        ((), ONE_GPU),
        (("cpu",), TWO_GPUS),
        (("cuda",), ONE_GPU),
        (("cuda:1",), TWO_GPUS),
        (("cuda:1", "cpu"), TWO_GPUS),
        (("cuda:sm_86",), TWO_GPUS),
        (("npu", "cuda:1"), TWO_GPUS),
        (("npu", "cpu"), ONLY_CPU),
        (("cuda:sm_86", "cpu"), target(device("cpu"), device("cuda:0", "sm_90"))),
        (("cuda",), None),
        (("cuda:sm_86",), None),
    ],
)
def test_affinity_that_settles_where_it_runs_is_no_trap(entries: tuple[str, ...], where: Target | None) -> None:
    assert of_affinity(entries, where) == []


@pytest.mark.parametrize(
    ("entries", "where", "problem"),
    [
        ((), TWO_GPUS, "names no device, and this target has several accelerators: cuda:0, cuda:1"),
        ((), None, "names no device, so a host with several accelerators places it by luck"),
        (("cuda",), TWO_GPUS, "names `cuda`, which on this target may be any of cuda:0, cuda:1"),
        (("cuda:sm_90",), TWINS, "names `cuda:sm_90`, which on this target may be any of cuda:0, cuda:1"),
        (("cuda:2",), TWO_GPUS, "names `cuda:2`, which this target does not have"),
        (("cuda:2", "cpu"), TWO_GPUS, "names `cuda:2`, which this target does not have"),
        (("npu:7", "cpu"), ONLY_CPU, "names `npu:7`, which this target does not have"),
        (("npu", "mps"), ONE_GPU, "names only `npu`, `mps`, and this target has none of them"),
        (("cuda:sm_75",), TWO_GPUS, "names only `cuda:sm_75`, and this target has none of them"),
    ],
)
def test_affinity_that_leaves_it_to_luck_is_waste(entries: tuple[str, ...], where: Target | None, problem: str) -> None:
    assert of_affinity(entries, where) == [(Severity.WASTE, f"`audio-encoder` 2.0.5 {problem}")]


@pytest.mark.parametrize("entries", [("cuda:sm_86",), ("cuda:sm_86", "cpu")])
def test_unknown_capability_is_neither_good_nor_waste(entries: tuple[str, ...]) -> None:
    assert of_affinity(entries, UNKNOWN_SM) == [
        (
            Severity.UNKNOWN,
            "`audio-encoder` 2.0.5 names `cuda:sm_86`, and this target does not say the compute capability of cuda:0",
        )
    ]


def test_finding_tells_its_facts_and_the_command_that_mends_it() -> None:
    (finding,) = find_traps(PluginFacts.of_manifest(sound(device_affinity=None)), TWO_GPUS)

    assert finding.to_dict() == {
        "trap": "affinity-unbound",
        "severity": "waste",
        "plugin": "audio-encoder",
        "message": "`audio-encoder` 2.0.5 names no device, and this target has several accelerators: cuda:0, cuda:1",
        "evidence": {"affinity": None, "devices": ["cpu", "cuda:0", "cuda:1"]},
        "remedy": "spm install audio-encoder==2.0.5 --affinity=cuda:0",
    }


def test_remedy_for_any_target_leaves_the_device_open() -> None:
    (finding,) = find_traps(PluginFacts.of_manifest(sound(device_affinity=None)), None)

    assert finding.remedy == "spm install audio-encoder==2.0.5 --affinity=DEVICE"
    assert finding.evidence == {"affinity": None}


def test_bindings_override_what_the_manifest_says() -> None:
    made = sound(device_affinity=affinity("npu:7"), batch_policy=None)
    bindings = Bindings(affinity=affinity("cuda:1"), batch_policy=BatchPolicy.from_value("adaptive"))

    assert [finding.trap for finding in find_traps(PluginFacts.of_manifest(made), TWO_GPUS)] == [
        "affinity-unbound",
        "batch-policy-missing",
    ]
    assert find_traps(PluginFacts.of_manifest(made, bindings), TWO_GPUS) == ()


def test_binding_that_is_not_there_is_found_although_the_manifest_was_sound() -> None:
    facts = PluginFacts.of_manifest(sound(), Bindings(affinity=affinity("cuda:5")))

    assert found(facts, TWO_GPUS, "affinity-unbound") == [
        (Severity.WASTE, "`audio-encoder` 2.0.5 names `cuda:5`, which this target does not have")
    ]


@pytest.mark.parametrize("where", [None, ONLY_CPU])
def test_every_open_range_is_named(where: Target | None) -> None:
    requires = Requires(
        plugins=((PluginName("log-mel"), Range.parse(">=1.0")), (PluginName("vad"), Range.parse("^1"))),
        torch=Range.parse("!=2.9.0"),
        python=Range.parse(">=3.11"),
    )
    facts = PluginFacts.of_manifest(sound(seedance_version=Range.parse(">=2.0 || ^1"), requires=requires))

    (finding,) = find_traps(facts, where)

    assert finding.message == (
        "`audio-encoder` 2.0.5 has no upper bound in `seedance_version: >=2.0 || ^1`, "
        "`requires.plugins.log-mel: >=1.0`, `requires.torch: !=2.9.0`, so what it was never tested with may be taken"
    )
    assert finding.evidence == {
        "open": {
            "seedance_version": ">=2.0 || ^1",
            "requires.plugins.log-mel": ">=1.0",
            "requires.torch": "!=2.9.0",
        }
    }
    assert (finding.severity, finding.remedy) == (Severity.WASTE, "spm uninstall audio-encoder")


@pytest.mark.parametrize(
    ("fallback", "why"),
    [
        ("audio-encoder 2.0.5 was accepted as a fallback: 2.1.0 needs torch", "2.1.0 needs torch"),
        ("2.0.5 instead of the installed 2.1.0, which was yanked", None),
        ("audio-encoder 2.0.5 is kept by the lockfile although 2.1.0 is newer", None),
    ],
)
def test_accepted_fallback_stays_a_finding_that_names_it_once(fallback: str, why: str | None) -> None:
    facts = PluginFacts.of_manifest(sound(), fallback=fallback)

    (finding,) = find_traps(facts, ONLY_CPU)

    assert finding.trap == "range-unbounded"
    assert finding.message == (
        f"`audio-encoder` 2.0.5 is not the newest in range; when it was accepted: {why or fallback}"
    )
    assert finding.evidence == {"fallback": fallback}
    assert finding.remedy == "spm outdated"


@pytest.mark.parametrize(
    ("policy", "inputs", "expected"),
    [
        ("adaptive", (BATCHED,), []),
        ("adaptive", (SINGLE,), []),
        ("none", (BATCHED, SINGLE), []),
        ("none", (SINGLE,), []),
        (
            "none",
            (BATCHED,),
            [(Severity.UNKNOWN, "has the batch policy `none`; whether calls queue is not known before it runs")],
        ),
        (
            "none",
            (),
            [(Severity.UNKNOWN, "has the batch policy `none`; whether calls queue is not known before it runs")],
        ),
        (
            "static",
            (SINGLE,),
            [(Severity.UNKNOWN, "has the batch policy `static`; whether calls queue is not known before it runs")],
        ),
        (None, (BATCHED,), [(Severity.WASTE, "has no batch policy, so calls that wait together are run one by one")]),
        (None, (SINGLE,), [(Severity.WASTE, "has no batch policy, so calls that wait together are run one by one")]),
    ],
)
def test_batch_policy_is_judged(
    policy: str | None, inputs: tuple[TensorSpec, ...], expected: list[tuple[Severity, str]]
) -> None:
    made = sound(batch_policy=BatchPolicy.from_value(policy) if policy else None, inputs=inputs)

    assert found(PluginFacts.of_manifest(made), ONLY_CPU, "batch-policy-missing") == [
        (severity, f"`audio-encoder` 2.0.5 {problem}") for severity, problem in expected
    ]


def test_remedy_of_a_missing_batch_policy_names_the_release() -> None:
    (finding,) = find_traps(PluginFacts.of_manifest(sound(batch_policy=None)), ONLY_CPU)

    assert finding.remedy == "spm install audio-encoder==2.0.5 --batch-policy=adaptive"
    assert finding.evidence == {"batch_policy": None}


@pytest.mark.parametrize("trap", TRAPS)
def test_waiver_is_shown_and_silences_nothing(trap: str) -> None:
    made = sound(
        device_affinity=None,
        batch_policy=None,
        seedance_version=Range.parse(">=2.0"),
        waivers=((trap, "kept as a specimen of the trap"),),
    )

    findings = find_traps(PluginFacts.of_manifest(made), TWO_GPUS)

    assert {finding.trap for finding in findings} == set(TRAPS)
    assert {finding.trap: finding.evidence.get("publisher_waiver") for finding in findings} == dict.fromkeys(TRAPS) | {
        trap: "kept as a specimen of the trap"
    }


@pytest.mark.property
@UNHURRIED
@given(manifests, st.none() | targets, st.none() | st.just("lesser"))
def test_findings_are_of_known_traps_and_of_json(made: Any, where: Target | None, fallback: str | None) -> None:
    findings = find_traps(PluginFacts.of_manifest(made, fallback=fallback), where)

    assert {finding.trap for finding in findings} <= set(TRAPS)
    for finding in findings:
        assert isinstance(finding, Finding)
        assert finding.remedy.startswith("spm ")
        canonical_bytes(finding.to_dict())

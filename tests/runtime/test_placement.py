"""Placement: the affinity's order, the target's devices, and never another one."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.devices import Device, matches, parse_affinity, parse_device
from manifests.errors import IncompatibleTarget, Undecided
from manifests.parts import Requires, Variant
from manifests.ranges import Range
from manifests.target import Target, TargetDevice, TorchFacts
from runtime.placement import place, require_fit
from tests.manifests.builders import manifest

CPU = TargetDevice(id="cpu", name="a cpu")
A100 = TargetDevice(id="cuda:0", name="A100", sm="sm_80")
H100 = TargetDevice(id="cuda:1", name="H100", sm="sm_90")
ENTRIES = ["cpu", "cuda", "cuda:0", "cuda:1", "cuda:sm_80", "cuda:sm_90", "npu", "npu:0", "mps"]


def target(*devices: TargetDevice) -> Target:
    return Target(os="linux", cpu="x86_64", python="3.11.7", contract="2.0.5", devices=devices)


@pytest.mark.parametrize(
    ("affinity", "device"),
    [
        (["cpu"], CPU),
        (["cuda"], A100),
        (["cuda:1", "cpu"], H100),
        (["cuda:sm_90"], H100),
        (["npu", "cuda:sm_90", "cpu"], H100),
        (["npu", "cpu"], CPU),
    ],
)
def test_the_first_device_that_the_affinity_names_is_taken(affinity: list[str], device: TargetDevice) -> None:
    assert device == place("enc", parse_affinity(affinity), target(CPU, A100, H100))


def test_a_device_outside_the_affinity_is_never_taken() -> None:
    with pytest.raises(IncompatibleTarget) as refusal:
        place("enc", parse_affinity(["npu", "cuda:sm_90"]), target(CPU, A100))

    assert refusal.value.to_dict() == {
        "error": {
            "exit": 12,
            "reason": "device",
            "message": "`enc` runs on `npu`, `cuda:sm_90` only, but this host has `cpu`, `cuda:0`",
            "context": {"plugin": "enc", "affinity": ["npu", "cuda:sm_90"], "devices": ["cpu", "cuda:0"]},
            "hint": "bind it to a device that this host has: `spm install enc --affinity DEVICE`",
        }
    }


def test_the_caller_may_choose_among_what_the_affinity_names() -> None:
    wanted = parse_device("cuda:1")

    assert place("enc", parse_affinity(["cpu", "cuda"]), target(CPU, A100, H100), wanted=wanted) == H100


def test_the_caller_cannot_choose_beyond_the_affinity() -> None:
    with pytest.raises(IncompatibleTarget) as refusal:
        place("enc", parse_affinity(["cpu"]), target(CPU, A100), wanted=parse_device("cuda"))

    assert refusal.value.message == (
        "`enc` runs on `cpu` only, and the device `cuda` was asked for, but this host has `cpu`, `cuda:0`"
    )


def test_without_affinity_a_host_without_accelerators_is_its_cpu() -> None:
    assert place("enc", None, target(CPU)) == CPU


def test_without_affinity_no_accelerator_is_chosen_or_left_idle_silently() -> None:
    with pytest.raises(IncompatibleTarget) as refusal:
        place("enc", None, target(CPU, A100, H100))

    assert (refusal.value.message, refusal.value.hint) == (
        "`enc` names no device affinity and this host has `cuda:0`, `cuda:1`",
        "bind it: `spm install enc --affinity cuda:0`",
    )


def test_without_affinity_the_caller_may_choose() -> None:
    assert place("enc", None, target(CPU, A100), wanted=parse_device("cuda:0")) == A100


@pytest.mark.property
@given(
    st.lists(st.sampled_from(ENTRIES), min_size=1, unique=True),
    st.lists(st.sampled_from([CPU, A100, H100]), unique=True),
    st.none() | st.sampled_from(ENTRIES).map(parse_device),
)
def test_whatever_is_placed_is_named_by_the_affinity_and_by_the_caller(
    entries: list[str], devices: Sequence[TargetDevice], wanted: Device | None
) -> None:
    affinity = parse_affinity(entries)
    fits = [d for e in affinity for d in devices if matches(e, d) and (wanted is None or matches(wanted, d))]

    try:
        placed = place("enc", affinity, target(*devices), wanted=wanted)
    except IncompatibleTarget:
        assert not fits
    else:
        assert placed == fits[0]


def test_a_release_that_fits_the_host_passes() -> None:
    fitting = manifest(requires=Requires(torch=Range.parse(">=2.6,<3")), variant=Variant(os="linux", cpu="x86_64"))

    require_fit(fitting, replace(target(CPU), torch=TorchFacts(version="2.13.0+cpu")))


def test_a_build_for_another_machine_is_refused_with_the_fact() -> None:
    with pytest.raises(IncompatibleTarget) as refusal:
        require_fit(manifest(variant=Variant(os="linux", cpu="aarch64")), target(CPU))

    assert (refusal.value.reason, refusal.value.message) == (
        "no-variant",
        "`audio-encoder` 2.0.5 does not fit this host: it is built for aarch64, and the target's cpu is x86_64",
    )


def test_a_torch_whose_version_cannot_be_compared_leaves_it_undecided() -> None:
    odd = replace(target(CPU), torch=TorchFacts(version="2.6-custom-x"))

    with pytest.raises(Undecided) as refusal:
        require_fit(manifest(requires=Requires(torch=Range.parse(">=2.6"))), odd)

    assert (refusal.value.exit_code, refusal.value.reason, refusal.value.message) == (
        3,
        "unknown:torch",
        "`audio-encoder` 2.0.5 cannot be known to fit this host: it needs torch `>=2.6`, "
        "and the target's torch '2.6-custom-x' cannot be compared",
    )

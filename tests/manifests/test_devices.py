"""The grammar of device affinity, and which device of a target an entry means."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.devices import Device, matches, parse_affinity, parse_device
from manifests.errors import UsageError
from manifests.target import TargetDevice
from tests.manifests.builders import UNHURRIED, devices, refused


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("cpu", Device(kind="cpu")),
        ("mps", Device(kind="mps")),
        ("cuda", Device(kind="cuda")),
        ("npu", Device(kind="npu")),
        ("xpu", Device(kind="xpu")),
        ("cuda:0", Device(kind="cuda", index=0)),
        ("cuda:999", Device(kind="cuda", index=999)),
        ("npu:7", Device(kind="npu", index=7)),
        ("npu0", Device(kind="npu", index=0)),
        ("cuda:sm_86", Device(kind="cuda", sm="sm_86")),
        ("cuda:sm_90a", Device(kind="cuda", sm="sm_90a")),
        ("cuda:sm_100f", Device(kind="cuda", sm="sm_100f")),
    ],
)
def test_device_is_read(text: str, device: Device) -> None:
    assert parse_device(text) == device


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu",
        "CUDA",
        "cuda:",
        "cuda:00",
        "cuda:01",
        "cuda:1000",
        "cuda:-1",
        "cuda:sm_8",
        "cuda:sm_086",
        "cuda:sm_86b",
        "npu:sm_86",
        "cpu:0",
        "mps:0",
        "cuda:0\n",
        "cuda:٣",
        "cuda 0",
        "auto",
    ],
)
def test_other_spelling_is_refused(text: str) -> None:
    assert refused(lambda: parse_device(text), UsageError) == (
        f"{text!r} is not a device: write `cpu`, `cuda`, `cuda:0`, `cuda:sm_86`, `npu`, `npu:0`, `xpu` or `mps`"
    )


@pytest.mark.parametrize("value", [None, True, 0, [], {}])
def test_what_is_no_text_is_no_device(value: str) -> None:
    assert refused(lambda: parse_device(value), UsageError).startswith(f"{str(value)!r} is not a device: ")


@pytest.mark.property
@UNHURRIED
@given(devices)
def test_printed_device_reads_back(device: Device) -> None:
    assert parse_device(str(device)) == device


@pytest.mark.property
@UNHURRIED
@given(st.text(st.sampled_from("cudanpxms:_0189af\n"), max_size=12))
def test_any_text_is_a_device_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert parse_device(str(parse_device(text))) == parse_device(text)


def test_affinity_keeps_its_order() -> None:
    assert [str(device) for device in parse_affinity(["npu1", "cuda:sm_86", "cpu"])] == ["npu:1", "cuda:sm_86", "cpu"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "a device affinity names 1 to 16 devices, not 0"),
        ([f"cuda:{index}" for index in range(17)], "a device affinity names 1 to 16 devices, not 17"),
        (["npu0", "npu:0"], "the device affinity ['npu:0', 'npu:0'] names a device twice"),
    ],
)
def test_affinity_without_a_clear_choice_is_refused(entries: list[str], message: str) -> None:
    assert refused(lambda: parse_affinity(entries), UsageError) == message


@pytest.mark.parametrize(
    ("wanted", "id_", "sm", "fact"),
    [
        ("cpu", "cpu", None, True),
        ("cuda", "cuda:3", None, True),
        ("cuda", "cpu", None, False),
        ("cuda:3", "cuda:3", None, True),
        ("cuda:3", "cuda:30", None, False),
        ("cuda:3", "npu:3", None, False),
        ("cuda:sm_86", "cuda:0", "sm_86", True),
        ("cuda:sm_86", "cuda:0", "sm_89", False),
        ("cuda:sm_86", "cuda:0", None, False),
        ("mps", "mps", None, True),
    ],
)
def test_entry_means_a_device(wanted: str, id_: str, sm: str | None, *, fact: bool) -> None:
    assert matches(parse_device(wanted), TargetDevice(id=id_, name="a device", sm=sm)) is fact

"""A host as a value."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.canonical import canonical_bytes
from manifests.errors import TypeMismatch
from manifests.target import CONTRACT_VERSION, Target, TargetDevice
from manifests.versions import Version
from tests.manifests.builders import UNHURRIED, holds_or_refuses, refused, target, targets, with_one_hostile_value


@pytest.mark.property
@UNHURRIED
@given(targets)
def test_target_reads_back(made: Target) -> None:
    assert Target.from_dict(made.to_dict()) == made
    assert canonical_bytes(made.to_dict()) == canonical_bytes(Target.from_dict(made.to_dict()).to_dict())


@pytest.mark.property
@UNHURRIED
@given(targets.flatmap(lambda made: with_one_hostile_value(made.to_dict())))
def test_any_value_is_a_target_or_refused(value: Any) -> None:
    holds_or_refuses(lambda: Target.from_dict(value))


def test_unknown_facts_are_left_out_not_null() -> None:
    assert target(torch=None).to_dict() == {
        "_type": "spm.target/1",
        "os": "linux",
        "cpu": "x86_64",
        "python": "3.11.4",
        "contract": "2.0.5",
        "devices": [{"id": "cpu", "name": "a cpu"}],
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_type": "spm.target/2"}, "`_type`: 'spm.target/2' is not one of `spm.target/1`"),
        ({"python": "latest"}, "`python`: 'latest' is not a version"),
        ({"torch": "2.13"}, "`torch`: '2.13' is not a table"),
        ({"torch": {}}, "`torch`: `version` is missing"),
        ({"driver": None}, "`driver`: 'None' is not plain text of 1 to 4096 characters"),
        ({"devices": {}}, "`devices`: '{}' is not a list of at most 256 items"),
        (
            {"devices": [{"id": "cuda", "name": "a"}]},
            "`devices`: item 0: `id`: 'cuda' is not a device such as `cuda:0`",
        ),
        (
            {"devices": [{"id": "cuda:0", "name": "a", "sm": "8.6", "memory_bytes": 2**53}]},
            "`devices`: item 0: `sm`: '8.6' is not a compute capability such as `sm_86`, "
            "`memory_bytes`: '9007199254740992' is not a whole number from 0 to 9007199254740991",
        ),
        ({"devices": [{"id": "cpu", "name": "a"}] * 2}, "`devices` lists a device twice"),
        ({"gpu": 1}, "`gpu` is not a known member"),
    ],
)
def test_wrong_target_is_refused(changes: dict[str, Any], message: str) -> None:
    value = target().to_dict() | changes

    assert refused(lambda: Target.from_dict(value), TypeMismatch) == f"the target is refused: {message}"


@pytest.mark.property
@UNHURRIED
@given(st.text(st.sampled_from("1.a+-\n"), max_size=4096))
def test_any_version_text_is_read_in_time(text: str) -> None:
    holds_or_refuses(lambda: Target.from_dict(target().to_dict() | {"glibc": text}))


def test_accelerators_are_all_devices_but_the_cpu() -> None:
    made = target(*(TargetDevice(id=id_, name="a") for id_ in ("cpu", "cuda:0", "mps")))

    assert [device.id for device in made.accelerators] == ["cuda:0", "mps"]
    assert [device.kind for device in made.devices] == ["cpu", "cuda", "mps"]


def test_contract_of_this_spm_is_a_version() -> None:
    assert str(Version.parse(CONTRACT_VERSION)) == CONTRACT_VERSION

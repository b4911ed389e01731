"""The parts of manifests: requirements, variants and their tags, controls, tensors, capabilities, files, waivers."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from manifests import fields
from manifests.errors import UsageError
from manifests.parts import (
    Capabilities,
    Controls,
    FileEntry,
    Requires,
    TensorSpec,
    Variant,
    read_affinity,
    read_batch_policy,
    read_waivers,
)
from manifests.ranges import Range
from tests.manifests import builders
from tests.manifests.builders import DIGEST, UNHURRIED, holds_or_refuses, hostile, refused

READERS: dict[str, Callable[[Any], object]] = {
    "requires": fields.nested(Requires.read),
    "variant": fields.nested(Variant.read),
    "controls": fields.nested(Controls.read),
    "tensor": fields.nested(TensorSpec.read),
    "capabilities": fields.nested(Capabilities.of),
    "file": fields.nested(FileEntry.read),
    "affinity": read_affinity,
    "policy": read_batch_policy,
    "waivers": read_waivers,
}


def variant(**members: Any) -> Variant:
    return fields.nested(Variant.read)(members)


@pytest.mark.property
@UNHURRIED
@given(builders.requirements, builders.variants, builders.controls, builders.capabilities)
def test_part_reads_back(requires: Requires, made: Variant, controls: Controls, capabilities: Capabilities) -> None:
    assert fields.nested(Requires.read)(requires.to_dict()) == requires
    assert fields.nested(Variant.read)(made.to_dict()) == made
    assert fields.nested(Controls.read)(controls.to_dict()) == controls
    assert fields.nested(Capabilities.of)(capabilities.to_dict()) == capabilities


@pytest.mark.property
@UNHURRIED
@given(hostile)
@pytest.mark.parametrize("part", READERS)
def test_any_value_is_a_part_or_refused(part: str, value: Any) -> None:
    holds_or_refuses(lambda: READERS[part](value))


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("requires", {"plugins": []}, "`plugins`: it is not a table of at most 256 `name: range`"),
        (
            "requires",
            {"plugins": {"log-mel": "1.0"}},
            "`plugins`: the range '1.0' has the bare number `1.0`, which would have to be interpreted "
            "(write `==1.0.0`, `~1.0` or `>=1.0,<2`)",
        ),
        (
            "requires",
            {"plugins": {"Log": "*"}},
            "`plugins`: 'Log' is not a plugin name: names are lower-case words of a-z and 0-9 joined by single "
            "hyphens, 64 characters at most",
        ),
        ("requires", {"torch": []}, "`torch`: a range is text of at most 256 characters, not '[]'"),
        ("requires", {"packages": ["numpy>=2"]}, "`packages`: 'numpy>=2' is not `name==version`"),
        ("requires", {"packages": "numpy==2"}, "`packages`: 'numpy==2' is not a list of at most 256 items"),
        ("variant", {"accelerator": "gpu"}, "`accelerator`: 'gpu' is not one of `cpu`, `cuda`, `npu`, `xpu`, `mps`"),
        ("variant", {"sm": ["86"]}, "`sm`: '86' is not a capability"),
        (
            "variant",
            {"os": "any"},
            "`os`: 'any' is not a word of a-z, 0-9 and `_` that begins unlike `any`, `sm_`, `torch`, `python` "
            "and the accelerators",
        ),
        ("controls", {"memory_fraction": "0.0"}, "`memory_fraction`: '0.0' is not a fraction above 0 such as `0.75`"),
        ("controls", {"memory_fraction": "1.1"}, "`memory_fraction`: '1.1' is not a fraction above 0 such as `0.75`"),
        ("controls", {"memory_fraction": 1}, "`memory_fraction`: '1' is not plain text of 1 to 4096 characters"),
        ("controls", {"allow_growth": "true"}, "`allow_growth`: 'true' is neither true nor false"),
        ("controls", {"memory": "512MB"}, "`memory`: '512MB' is not a size such as `512MiB`"),
        ("controls", {"tensor_core_policy": True}, "`tensor_core_policy`: 'True' is not one of `auto`, `force`, `off`"),
        (
            "tensor",
            {"name": "X", "dtype": "float32", "shape": [True]},
            "`name`: 'X' is not a tensor's name, `shape`: 'True' is not a whole number from -1 to 1099511627776",
        ),
        ("capabilities", {"network": 1}, "`network`: '1' is neither true nor false"),
        ("capabilities", {"read": ["/a/../b"]}, "`read`: '/a/../b' is not an absolute path without `.` or `..`"),
        ("capabilities", {"read": ["/"]}, "`read`: '/' is not an absolute path without `.` or `..`"),
        ("capabilities", {"write": ["tmp"]}, "`write`: 'tmp' is not an absolute path without `.` or `..`"),
        ("capabilities", {"env": ["A=1"]}, "`env`: 'A=1' is not the name of an environment variable"),
        *(
            (
                "capabilities",
                {"env": [name]},
                f"`env`: {name!r} is not a variable that a plugin may ask for: "
                "it steers the process that the plugin runs in",
            )
            for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "GLIBC_TUNABLES", "MALLOC_CONF", "PATH", "HOME")
        ),
        ("capabilities", {"processes": -1}, "`processes`: '-1' is not a whole number from 0 to 4096"),
        (
            "file",
            {"path": "a", "size": 1, "sha256": "AB" * 32, "mode": "rw"},
            f"`sha256`: '{'AB' * 32}' is not a SHA-256 digest of 64 lower-case hex digits, "
            "`mode`: 'rw' is not one of `r`, `x`",
        ),
        ("affinity", "cuda", "'cuda' is not a list of at most 16 items"),
        ("affinity", [], "a device affinity names 1 to 16 devices, not 0"),
        (
            "waivers",
            {"slow": "it always was"},
            "it is not a table of `affinity-unbound`, `range-unbounded`, `batch-policy-missing` with written reasons",
        ),
        ("waivers", {"range-unbounded": "because"}, "the reason for `range-unbounded` is too short to be one"),
        ("waivers", {"range-unbounded": " " * 20}, "the reason for `range-unbounded` is too short to be one"),
        ("waivers", {"range-unbounded": True}, "'True' is not plain text of 1 to 4096 characters"),
    ],
)
def test_wrong_part_is_refused(part: str, value: Any, message: str) -> None:
    assert refused(lambda: READERS[part](value), UsageError) == message


@pytest.mark.parametrize("text", ["0.1", "0.75", "0.0001", "1", "1.0"])
def test_fraction_stays_as_written(text: str) -> None:
    assert fields.nested(Controls.read)({"memory_fraction": text}).memory_fraction == text


def test_file_entry_reads_back() -> None:
    value = {"path": "a/b", "size": 0, "sha256": DIGEST, "mode": "x"}

    assert fields.nested(FileEntry.read)(value).to_dict() == value


@pytest.mark.parametrize(
    ("members", "tag"),
    [
        ({}, "any"),
        ({"os": "linux"}, "linux"),
        ({"cpu": "x86_64"}, "any-x86_64"),
        ({"os": "linux", "cpu": "x86_64", "torch": "~2.13.0"}, "linux-x86_64-torch2.13.0"),
        ({"os": "linux", "cpu": "x86_64", "torch": "==2.13.0"}, "linux-x86_64-torcheq2.13.0"),
        (
            {"os": "linux", "accelerator": "cuda", "cuda": "~12.6", "sm": ["sm_86", "sm_90a"]},
            "linux-cuda-sm_86-sm_90a-cuda12.6",
        ),
        ({"python": ">=3.11,<4 || ^5"}, "pythonge3.11_lt4orc5"),
    ],
)
def test_tag_names_what_the_variant_is_for(members: dict[str, Any], tag: str) -> None:
    assert variant(**members).tag == tag


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"torch": "==2.13.0"}, {"torch": "~2.13.0"}),
        ({"torch": "~=2.13"}, {"torch": "~2.13"}),
        ({"torch": "^2"}, {"torch": "~2"}),
        ({"torch": "!=2.1"}, {"torch": "==2.1"}),
        ({"os": "linux"}, {"cpu": "linux"}),
        ({"accelerator": "cuda", "torch": "~12"}, {"cuda": "~12"}),
    ],
)
def test_variants_for_different_targets_have_different_tags(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert variant(**one).tag.lower() != variant(**other).tag.lower()


@pytest.mark.property
@UNHURRIED
@given(builders.variants, builders.variants)
def test_variants_of_one_tag_are_for_the_same_targets(one: Variant, other: Variant) -> None:
    def meaning(made: Variant) -> tuple[object, ...]:
        spelled = [None if wanted is None else wanted.cuts for wanted in (made.cuda, made.torch, made.python)]
        return (made.os, made.cpu, made.accelerator, made.sm, *spelled)

    assert one.tag.lower() != other.tag.lower() or meaning(one) == meaning(other)


@pytest.mark.parametrize("name", ["os", "cpu"])
@pytest.mark.parametrize(
    "word", ["any", "cuda", "cpu", "cuda12", "sm_86", "torch2", "python3", "Linux", "a-b", "a\n", ""]
)
def test_system_is_not_called_as_another_member_begins(name: str, word: str) -> None:
    assert refused(lambda: variant(**{name: word}), UsageError).startswith(f"`{name}`: {word!r} is not ")


def test_tag_too_long_for_a_folder_is_refused() -> None:
    wanted = ">=2.13.0-rc.1 <2.14.0 !=2.13.1 !=2.13.2"

    assert refused(lambda: variant(torch=wanted, cuda=wanted, python=wanted), UsageError) == (
        "its tag `cudage2.13.0-rc.1lt2.14.0ne2.13.1ne2.13....` has 128 characters, more than 120"
    )


def test_range_in_a_tag_is_spelled_for_folders() -> None:
    tag = variant(torch="1.0.0 - 2.0.0 || *", python="==3.11.0+A.b").tag

    assert tag == "torch1.0.0-2.0.0orx-pythoneq3.11.0xA.b"
    assert Range.parse("==3.11.0+A.b").exact is not None

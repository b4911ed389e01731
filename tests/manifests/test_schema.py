"""manifest.schema.json says what the readers say, so that an editor and `spm pack` agree."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests import fields
from manifests.author import read_yaml
from manifests.errors import TypeMismatch
from manifests.fields import Fields
from manifests.manifest import read_shared
from manifests.parts import TRAPS, Capabilities, Requires, TensorSpec, Variant
from tests.manifests.builders import UNHURRIED, manifests, with_one_hostile_value
from tests.manifests.json_schema import faults

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "manifests" / "manifest.schema.json").read_bytes())
EXAMPLES = sorted((ROOT / "manifests" / "examples").glob("*/manifest.yaml"))
PACKER_SAYS = {"_type", "registry", "publisher", "created", "files"}


def is_accepted(value: Any) -> bool:
    try:
        with fields.document("manifest.yaml") as problems:
            reader = Fields(value, "", problems)
            read_shared(reader)
            reader.close()
    except TypeMismatch:
        return False
    return True


def is_valid(value: Any) -> bool:
    return not list(faults(value, SCHEMA, SCHEMA))


def taken(read: Any) -> set[str]:
    reader = Fields({}, "", [])
    read(reader)
    return reader._taken


def member(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["properties"][name]
    return found


def test_schema_has_the_members_of_the_readers() -> None:
    assert set(SCHEMA["properties"]) == taken(read_shared)
    assert set(member("requires")["properties"]) == taken(Requires.read)
    assert set(member("variant")["properties"]) == taken(Variant.read)
    assert set(member("capabilities")["properties"]) == taken(Capabilities.of)
    assert set(SCHEMA["$defs"]["tensors"]["items"]["properties"]) == taken(TensorSpec.read)
    assert set(member("waivers")["properties"]) == set(TRAPS)


def test_schema_requires_what_the_readers_require() -> None:
    problems: list[str] = []
    read_shared(Fields({}, "", problems))

    assert [f"`{name}` is missing" for name in SCHEMA["required"]] == problems


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_example_is_valid(path: Path) -> None:
    assert list(faults(read_yaml(path.read_bytes()), SCHEMA, SCHEMA)) == []


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


def author_of(made: Any) -> dict[str, Any]:
    return {name: value for name, value in made.to_dict().items() if name not in PACKER_SAYS}


@pytest.mark.property
@UNHURRIED
@given(manifests)
def test_what_the_readers_accept_is_valid(made: Any) -> None:
    assert is_accepted(author_of(made))
    assert list(faults(author_of(made), SCHEMA, SCHEMA)) == []


# Where the schema is content with less than the readers: grammars that no pattern states well.
COARSE = {
    "seedance_version",
    "requires",
    "variant",
    "summary",
    "license",
    "waivers",
    "device_affinity",
    "memory_fraction",
}


@pytest.mark.property
@UNHURRIED
@given(manifests.flatmap(lambda made: st.tuples(st.just(author_of(made)), with_one_hostile_value(author_of(made)))))
def test_schema_and_readers_agree_on_a_wrong_value(pair: tuple[dict[str, Any], Any]) -> None:
    before, after = pair
    changed = {name for name in before if isinstance(after, dict) and after.get(name) != before[name]}

    assert is_valid(after) or not is_accepted(after)
    assert is_accepted(after) or not is_valid(after) or changed & COARSE or "inputs" in changed or "outputs" in changed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", "Audio"),
        ("name", "a--b"),
        ("version", "1.0"),
        ("version", "01.0.0"),
        ("version", "1.0.0-gamma.1"),
        ("type", "plugin"),
        ("summary", ""),
        ("entry", "audio"),
        ("requires", {"plugin": {}}),
        ("requires", {"packages": ["numpy>=2"]}),
        ("requires", {"plugins": {"A": "*"}}),
        ("device_affinity", []),
        ("device_affinity", ["gpu"]),
        ("device_affinity", ["cpu", "cpu"]),
        ("batch_policy", "auto"),
        ("batch_policy", {}),
        ("batch_policy", {"mode": "none", "max_batch_size": 0}),
        ("batch_policy", {"mode": "none", "size": 1}),
        ("memory_fraction", "0.0"),
        ("memory_fraction", "1.5"),
        ("allow_growth", "true"),
        ("memory", "512MB"),
        ("compute_capability_override", "8.6"),
        ("tensor_core_policy", "on"),
        ("precision", "FP 16"),
        ("inputs", [{"name": "x", "dtype": "float", "shape": []}]),
        ("inputs", [{"name": "X", "dtype": "float32", "shape": []}]),
        ("inputs", [{"name": "x", "dtype": "float32", "shape": [-2]}]),
        ("outputs", [{"name": "x", "dtype": "float32"}]),
        ("capabilities", {"network": "yes"}),
        ("capabilities", {"read": ["/a/../b"]}),
        ("capabilities", {"write": ["/"]}),
        ("capabilities", {"env": ["A=1"]}),
        ("capabilities", {"processes": 5000}),
        ("variant", {"os": "any"}),
        ("variant", {"os": "cuda12"}),
        ("variant", {"accelerator": "gpu"}),
        ("variant", {"sm": ["86"]}),
        ("waivers", {"slow": "it always was so"}),
        ("waivers", {"range-unbounded": "because"}),
        ("colour", "red"),
    ],
)
def test_wrong_value_is_refused_by_both(name: str, value: Any) -> None:
    sound = read_yaml(EXAMPLES[0].read_bytes())

    assert is_valid(sound)
    assert not is_valid(sound | {name: value})
    assert not is_accepted(sound | {name: value})

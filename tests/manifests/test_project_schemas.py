"""project.schema.json and project_lock.schema.json say what the readers say."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from manifests.errors import SpmError
from manifests.names import PluginName
from manifests.project import Project, ProjectRequirement
from manifests.project_lock import LockedPlugin, LockedVariant, ProjectLock, TargetPin
from tests.manifests.builders import UNHURRIED
from tests.manifests.json_schema import faults
from tests.manifests.test_project import LEAST, WHOLE
from tests.manifests.test_project_lock import GOLDEN, locks
from tests.manifests.test_schema import taken

MANIFESTS = Path(__file__).parents[2] / "manifests"
PROJECT: dict[str, Any] = json.loads((MANIFESTS / "project.schema.json").read_bytes())
LOCK: dict[str, Any] = json.loads((MANIFESTS / "project_lock.schema.json").read_bytes())


def broken(value: Any, schema: dict[str, Any]) -> list[str]:
    return list(faults(value, schema, schema))


def is_project(value: Any) -> bool:
    try:
        Project.from_dict(value)
    except SpmError:
        return False
    return True


def is_lock(value: Any) -> bool:
    try:
        ProjectLock.from_bytes(json.dumps(value).encode())
    except SpmError:
        return False
    return True


def test_schemas_have_the_members_of_the_readers() -> None:
    members = taken(lambda reader: ProjectRequirement.read(PluginName("a"), reader))

    assert set(PROJECT["$defs"]["requirement"]["properties"]) == members
    assert LOCK["$defs"]["requirement"] == PROJECT["$defs"]["requirement"]
    assert set(LOCK["$defs"]["plugin"]["properties"]) == taken(LockedPlugin.read)
    assert set(LOCK["$defs"]["variant"]["properties"]) == taken(LockedVariant.read)
    assert set(LOCK["$defs"]["pin"]["properties"]) == taken(TargetPin.read)


@pytest.mark.parametrize("text", [WHOLE, LEAST])
def test_what_a_project_may_say_is_valid(text: str) -> None:
    assert broken(tomllib.loads(text), PROJECT) == []


def test_a_whole_lock_is_valid() -> None:
    assert broken(json.loads(GOLDEN), LOCK) == []


@pytest.mark.parametrize("name", ["_type", "registry", "targets", "requirements", "plugins"])
def test_a_lock_without_a_member_that_it_needs_is_refused_by_both(name: str) -> None:
    wrong = json.loads(GOLDEN)
    del wrong[name]

    assert not is_lock(wrong)
    assert broken(wrong, LOCK) != []


@pytest.mark.property
@UNHURRIED
@given(locks())
def test_what_is_written_is_valid(lock: ProjectLock) -> None:
    assert broken(lock.to_dict(), LOCK) == []


@pytest.mark.parametrize(
    "change",
    [
        {"project": {}},
        {"project": {"name": "A"}},
        {"project": {"name": "a", "registry": "A"}},
        {"project": {"name": "a", "more": 1}},
        {"requirements": []},
        {"requirements": {"A": "*"}},
        {"requirements": {"a": 1}},
        {"requirements": {"a": {}}},
        {"requirements": {"a": {"range": "*", "pre": "yes"}}},
        {"requirements": {"a": {"range": "*", "affinity": ["gpu"]}}},
        {"requirements": {"a": {"range": "*", "batch-policy": "auto"}}},
        {"requirements": {"a": {"range": "*", "size": 1}}},
        {"targets": {"here": "../here.json"}},
        {"targets": {"here": "/here.json"}},
        {"targets": {"Here": "here.json"}},
        {"resolution": {"exclude-newer": "today"}},
        {"resolution": {"pre": ["A"]}},
        {"resolution": {"newer": "2026-01-31"}},
        {"tool": {}},
    ],
)
def test_a_wrong_project_is_refused_by_both(change: dict[str, Any]) -> None:
    sound = tomllib.loads(WHOLE)

    assert is_project(sound)
    assert not is_project(sound | change)
    assert broken(sound | change, PROJECT) != []


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["_type"], "spm.lock/2"),
        (["registry"], "A"),
        (["targets", "gpu"], "x"),
        (["requirements", "alpha"], "^1.0"),
        (["plugins", 0, "name"], "A"),
        (["plugins", 0, "version"], "1.0"),
        (["plugins", 0, "type"], "plugin"),
        (["plugins", 0, "more"], 1),
        (["plugins", 0, "variants", 0, "tag"], ""),
        (["plugins", 0, "variants", 0, "manifest_size"], 0),
        (["plugins", 0, "variants", 0, "keyids"], ["x"]),
        (["plugins", 0, "targets"], {}),
        (["plugins", 0, "targets", "gpu", "fallback"], ""),
        (["plugins", 0, "requires", "beta"], 1),
        (["resolution", "exclude-newer"], "2026-01-31"),
        (["more"], 1),
    ],
)
def test_a_wrong_lock_is_refused_by_both(place: list[Any], value: Any) -> None:
    wrong = json.loads(GOLDEN)
    inner = wrong
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value

    assert not is_lock(wrong)
    assert broken(wrong, LOCK) != []

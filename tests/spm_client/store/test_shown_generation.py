"""The generation of a listing is what the strict reader has, and refused as that one refuses it."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given

from manifests.canonical import canonical_bytes
from manifests.devices import parse_affinity
from manifests.lockfile import Bindings, Generation
from runtime.generation import current_generation
from spm_client.store.shown_generation import shown_generation
from tests.manifests.builders import CREATED, UNHURRIED, generations, installed, refused

BOUND = Bindings(affinity=parse_affinity(["cuda:0"]))
GENERATION = Generation(
    number=1, registry="team.example", created=CREATED, plugins=(installed(bindings=BOUND, registry="other.example"),)
)


def keep(root: Path, data: bytes, *, current: bytes = b"000001\n") -> None:
    (root / "generations").mkdir(exist_ok=True)
    (root / "generations" / "000001.json").write_bytes(data)
    (root / "current").write_bytes(current)


@pytest.mark.property
@UNHURRIED
@given(generations())
def test_a_generation_is_shown_as_it_is_written(generation: Generation) -> None:
    with TemporaryDirectory() as folder:
        keep(Path(folder), generation.to_bytes())

        assert shown_generation(Path(folder)) == json.loads(generation.to_bytes())


def test_a_link_that_leads_nowhere_is_not_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(tmp_path / "nowhere")

    assert refused(lambda: shown_generation(tmp_path)) == refused(lambda: current_generation(tmp_path))


def test_nothing_is_shown_of_a_new_store(tmp_path: Path) -> None:
    shown = shown_generation(tmp_path)

    assert (shown["number"], shown["plugins"]) == (0, [])


@pytest.mark.parametrize("current", [b"000001", b"1\n", b"000_01\n", b"000002\n", b"000001\n\n", b"", b"\xff" * 7])
def test_what_current_says_is_read_as_strictly(tmp_path: Path, current: bytes) -> None:
    keep(tmp_path, GENERATION.to_bytes(), current=current)

    if current == b"000001":
        assert shown_generation(tmp_path)["number"] == 1
    else:
        assert refused(lambda: shown_generation(tmp_path)) == refused(lambda: current_generation(tmp_path))


@pytest.mark.parametrize("name", ["current", "generations/000001.json"])
def test_a_link_or_a_pipe_is_refused(tmp_path: Path, name: str) -> None:
    keep(tmp_path, GENERATION.to_bytes())
    (tmp_path / name).rename(tmp_path / "elsewhere")
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")

    assert refused(lambda: shown_generation(tmp_path)) == f"{tmp_path / name} is a symbolic link, the store has none"
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert refused(lambda: shown_generation(tmp_path)) == refused(lambda: current_generation(tmp_path))


def changed(**members: Any) -> bytes:
    return canonical_bytes(json.loads(GENERATION.to_bytes()) | members)


def changed_plugin(**members: Any) -> bytes:
    (plugin,) = json.loads(GENERATION.to_bytes())["plugins"]
    return changed(plugins=[{name: value for name, value in (plugin | members).items() if value is not None}])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        GENERATION.to_bytes() + b"\n",
        GENERATION.to_bytes()[:-1],
        changed(_type="spm.generation/2"),
        changed(number="1"),
        changed(number=True),
        changed(registry=1),
        changed(more=1),
        changed(plugins={}),
        changed(plugins=[1]),
        *(changed_plugin(**{name: None}) for name in ("name", "version", "type", "keyids", "requested", "requires")),
        *(changed_plugin(**{name: 1}) for name in ("name", "release", "keyids", "requested", "fallback", "bindings")),
        changed_plugin(keyids=[1]),
        changed_plugin(requires=[None]),
        changed_plugin(registry="../x"),
        changed_plugin(registry=["x"]),
        changed_plugin(bindings={"affinity": "cpu"}),
        changed_plugin(bindings={"affinity": [1]}),
        changed_plugin(bindings={"batch_policy": 1}),
        changed_plugin(bindings={"batch_policy": {}}),
        changed_plugin(more="x"),
    ],
)
def test_a_file_that_is_not_well_is_refused_as_the_strict_reader_does(tmp_path: Path, data: bytes) -> None:
    keep(tmp_path, data)

    assert refused(lambda: shown_generation(tmp_path)) == refused(lambda: current_generation(tmp_path))

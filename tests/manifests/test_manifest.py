"""The signed document: what is written reads back, every other spelling and value is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from manifests.canonical import canonical_bytes
from manifests.errors import NotCanonical, TooBig, TypeMismatch
from manifests.manifest import MAX_FILES, Manifest
from manifests.names import PluginName
from manifests.parts import FileEntry, Requires, TensorSpec, Variant
from manifests.ranges import Range
from manifests.versions import Version
from tests.manifests.builders import (
    DIGEST,
    FILE,
    UNHURRIED,
    holds_or_refuses,
    manifest,
    manifests,
    refused,
    with_flipped_bytes,
    with_one_hostile_value,
)

GOLDEN = (
    '{"_type":"spm.manifest/1","capabilities":{"env":[],"exec":false,"network":false,"processes":0,"read":[],"write":[]},'
    '"created":"2026-01-31T12:00:00Z","entry":"audio_encoder:factory","files":[{"mode":"r","path":"encoder.py",'
    f'"sha256":"{DIGEST}","size":7}}],"inputs":[],"license":"MIT","name":"audio-encoder","outputs":[],'
    '"publisher":"audio-team","registry":"team.example","requires":{},"seedance_version":">=2.0.0,<3",'
    '"summary":"Turns speech into vectors","type":"ext","version":"2.0.5"}'
)


def test_signed_bytes_are_these() -> None:
    assert manifest().to_bytes() == GOLDEN.encode()
    assert Manifest.from_bytes(GOLDEN.encode()) == manifest()


@pytest.mark.property
@UNHURRIED
@given(manifests)
def test_manifest_reads_back_from_value_and_bytes(made: Manifest) -> None:
    assert Manifest.from_dict(made.to_dict()).to_dict() == made.to_dict()
    assert Manifest.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    assert Manifest.from_bytes(made.to_bytes()) == made
    assert Manifest.from_bytes(made.to_bytes()).to_bytes() == made.to_bytes()
    assert hash(Manifest.from_bytes(made.to_bytes())) == hash(made)


@pytest.mark.property
@UNHURRIED
@given(manifests.flatmap(lambda made: with_flipped_bytes(made.to_bytes())))
def test_any_bytes_are_a_manifest_or_refused(data: bytes) -> None:
    holds_or_refuses(lambda: Manifest.from_bytes(data))


@pytest.mark.property
@UNHURRIED
@given(manifests.flatmap(lambda made: with_one_hostile_value(made.to_dict())))
def test_any_value_is_a_manifest_or_refused(value: Any) -> None:
    holds_or_refuses(lambda: Manifest.from_dict(value))


@pytest.mark.parametrize("member", sorted(manifest().to_dict()))
@pytest.mark.parametrize("value", [None, True, 7, [], {}, [[]], {"a": []}, "x" * 5000, ["\ud800"]])
def test_member_of_another_type_is_refused_or_read(member: str, value: Any) -> None:
    holds_or_refuses(lambda: Manifest.from_dict(manifest().to_dict() | {member: value}))


@pytest.mark.parametrize(
    "member",
    ["_type", "registry", "publisher", "created", "files", "name", "version", "type", "summary", "license", "entry"],
)
def test_member_that_is_missing_is_told(member: str) -> None:
    value = {name: inner for name, inner in manifest().to_dict().items() if name != member}

    assert refused(lambda: Manifest.from_dict(value), TypeMismatch) == f"the manifest is refused: `{member}` is missing"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"_type": "spm.manifest/2"}, "`_type`: 'spm.manifest/2' is not one of `spm.manifest/1`"),
        ({"registry": "Team"}, "`registry`: 'Team' is not a registry id"),
        ({"registry": "a."}, "`registry`: 'a.' is not a registry id"),
        (
            {"created": "2026-02-30T12:00:00Z"},
            "`created`: '2026-02-30T12:00:00Z' is not a UTC time such as 2026-01-31T12:00:00Z",
        ),
        ({"type": "CORE"}, "`type`: 'CORE' is not one of `core`, `ext`"),
        ({"type": ["core"]}, "`type`: \"['core']\" is not one of `core`, `ext`"),
        ({"entry": "m:f()"}, "`entry`: 'm:f()' is not `module:factory`"),
        ({"entry": "m"}, "`entry`: 'm' is not `module:factory`"),
        ({"entry": "m.:f"}, "`entry`: 'm.:f' is not `module:factory`"),
        ({"seedance_version": []}, "`seedance_version`: a range is text of at most 256 characters, not '[]'"),
        ({"requires": []}, "`requires`: '[]' is not a table"),
        ({"requires": {"plugin": {}}}, "`requires`: `plugin` is not a known member"),
        (
            {"batch_policy": None},
            "`batch_policy`: batch_policy is `adaptive`, `static`, `none`, or a table with `mode`",
        ),
        ({"device_affinity": "cuda"}, "`device_affinity`: 'cuda' is not a list of at most 16 items"),
        ({"memory_fraction": 1}, "`memory_fraction`: '1' is not plain text of 1 to 4096 characters"),
        ({"install": "make"}, "`install` is not a known member"),
        ({"files": []}, "`files` is empty"),
        ({"files": {}}, "`files`: '{}' is not a list of at most 4096 items"),
    ],
)
def test_wrong_member_is_refused(changes: dict[str, Any], message: str) -> None:
    value = manifest().to_dict() | changes

    assert refused(lambda: Manifest.from_dict(value), TypeMismatch) == f"the manifest is refused: {message}"


def file(path: str) -> FileEntry:
    return replace(FILE, path=path)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["b", "a"], "`files` is not sorted by path"),
        (["a", "a"], "the paths 'a' and 'a' are one file where case is folded"),
        (["A", "a"], "the paths 'A' and 'a' are one file where case is folded"),
        (["a", "a/b"], "the path 'a' is both a file and a folder of 'a/b'"),
        (
            ["../a"],
            "`files`: item 0: `path`: the path '../a' is refused: each part is 1 to 200 characters of "
            "A-Z a-z 0-9 . _ + - and is neither `.` nor `..`",
        ),
    ],
)
def test_file_table_that_cannot_be_laid_out_is_refused(paths: list[str], message: str) -> None:
    value = manifest(files=tuple(map(file, paths))).to_dict()

    assert refused(lambda: Manifest.from_dict(value), TypeMismatch) == f"the manifest is refused: {message}"


def test_files_are_bounded_in_number() -> None:
    table = tuple(file(f"{place:05}") for place in range(MAX_FILES + 1))

    assert len(Manifest.from_dict(manifest(files=table[:-1]).to_dict()).files) == MAX_FILES
    assert "is not a list of at most 4096 items" in refused(lambda: Manifest.from_dict(manifest(files=table).to_dict()))


def test_manifest_beyond_its_bound_is_not_parsed() -> None:
    assert refused(lambda: Manifest.from_bytes(b"{" * ((1 << 20) + 1)), TooBig) == (
        "the manifest has 1048577 bytes, more than the 1048576 allowed"
    )


def test_names_that_mean_two_things_are_refused() -> None:
    spec = TensorSpec(name="x", dtype="float32", shape=(-1,))
    itself = Requires(plugins=((PluginName("audio-encoder"), Range.parse("^2")),))
    value = manifest(inputs=(spec, spec), outputs=(spec,), requires=itself).to_dict()

    assert refused(lambda: Manifest.from_dict(value), TypeMismatch) == (
        "the manifest is refused: `inputs` has the name `x` twice; `requires.plugins` names the plugin itself"
    )


def test_floats_are_not_signed() -> None:
    data = canonical_bytes(manifest().to_dict()).replace(b'"size":7', b'"size":7.5')

    assert refused(lambda: Manifest.from_bytes(data), NotCanonical) == (
        "the manifest has the number '7.5'; only integers are allowed"
    )


def test_release_is_the_version_and_the_tag_of_its_variant() -> None:
    assert manifest().release == "2.0.5"
    assert manifest(variant=Variant(os="linux", cpu="x86_64")).release == "2.0.5+linux-x86_64"
    assert manifest(version=Version.parse("1.0.0+a"), variant=Variant()).release == "1.0.0+a+any"


def test_size_is_that_of_all_files() -> None:
    assert manifest(files=(FILE, file("z"))).size == 14

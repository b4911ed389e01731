"""Every example's manifest.yaml compiles, and says what the example is there to show."""

from pathlib import Path

import pytest

from manifests.author import compile_manifest
from manifests.manifest import Manifest
from manifests.parts import FileEntry
from manifests.target import Target, TorchFacts
from tests.examples.plugin_trees import EXAMPLES

SOURCES = sorted(path.parent for path in EXAMPLES.rglob("manifest.yaml"))
HOST = Target(
    os="linux",
    cpu="x86_64",
    python="3.11.7",
    contract="2.0.5",
    devices=(),
    torch=TorchFacts(version="2.13.0+cpu"),
)
FILE = FileEntry(path="plugin.py", size=0, sha256="0" * 64, mode="r")


def compiled(source: Path) -> Manifest:
    return compile_manifest(
        (source / "manifest.yaml").read_bytes(),
        registry="team.example",
        publisher="audio-team",
        created="2026-01-31T12:00:00Z",
        files=(FILE,),
        host=HOST,
    )


def find(name: str, version: str) -> Manifest:
    manifests = [compiled(source) for source in SOURCES]
    return next(found for found in manifests if (found.name, str(found.version)) == (name, version))


def test_these_releases_are_there() -> None:
    releases = sorted((str(m.name), str(m.version), m.type.value) for m in map(compiled, SOURCES))

    assert releases == [
        ("audio-encoder", "1.4.0", "ext"),
        ("audio-encoder", "2.0.4", "ext"),
        ("audio-encoder", "2.0.5", "ext"),
        ("fused-gelu", "1.0.0", "core"),
        ("legacy-audio-encoder", "0.9.0", "ext"),
        ("log-mel", "1.2.0", "ext"),
    ]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.relative_to(EXAMPLES)))
def test_a_compiled_manifest_reads_back_from_its_bytes(source: Path) -> None:
    manifest = compiled(source)

    assert Manifest.from_bytes(manifest.to_bytes()) == manifest


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source.relative_to(EXAMPLES)))
def test_the_entry_is_a_module_of_the_plugins_tree(source: Path) -> None:
    module = compiled(source).entry.partition(":")[0]

    assert (source / "plugin" / f"{module}.py").is_file()


def test_no_example_asks_for_more_than_computing() -> None:
    for manifest in map(compiled, SOURCES):
        assert manifest.capabilities == type(manifest.capabilities)()


def test_audio_encoder_requires_log_mel_from_2_0_on() -> None:
    required = {
        version: [(name, wanted.text) for name, wanted in find("audio-encoder", version).requires.plugins]
        for version in ("1.4.0", "2.0.4", "2.0.5")
    }

    assert required == {"1.4.0": [], "2.0.4": [("log-mel", "^1.0")], "2.0.5": [("log-mel", "^1.0")]}


def test_the_legacy_plugin_waives_all_three_traps_in_writing() -> None:
    manifest = find("legacy-audio-encoder", "0.9.0")

    assert [trap for trap, _ in manifest.waivers] == ["affinity-unbound", "batch-policy-missing", "range-unbounded"]
    assert [str(device) for device in manifest.device_affinity or ()] == ["npu:7", "cpu"]
    assert not manifest.seedance_version.has_upper_bound
    assert manifest.batch_policy is None


def test_fused_gelu_is_a_build_for_the_packing_machine() -> None:
    variant = find("fused-gelu", "1.0.0").variant

    assert variant is not None
    assert (variant.os, variant.cpu) == ("linux", "x86_64")
    assert variant.torch is not None

"""`spm pack` and `spm sign` where nothing but the folder is named: the one key that fits is taken, a choice never."""

from pathlib import Path

import pytest

from tests.spm_client.cli.conftest import Spm
from tests.spm_client.workflows.sources import write_source


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_source(tmp_path / "tone")


def key(spm: Spm, role: str, name: str) -> None:
    assert spm("keys", "new", "--role", role, "--name", name, "--no-passphrase").code == 0


def test_the_publisher_and_the_key_of_the_plugins_class_are_taken(spm: Spm, source: Path) -> None:
    key(spm, "core", "platform")
    key(spm, "ext", "audio")

    packed = spm("pack", source, "--registry-id", "team.example", "--json")
    signed = spm("sign", packed.document["path"], "--json")

    assert packed.document["publisher"] == "audio"
    assert signed.document["role"] == "ext"
    assert signed.document["signatures"] == ["dist/tone-1.0.0/manifest.jws"]


@pytest.mark.parametrize(
    ("keys", "known"),
    [
        ([], "you have no ext key"),
        ([("core", "platform")], "you have no ext key"),
        ([("ext", "audio"), ("ext", "video")], "your ext keys speak for `audio`, `video`"),
    ],
)
def test_without_one_publisher_it_must_be_named(
    spm: Spm, source: Path, keys: list[tuple[str, str]], known: str
) -> None:
    for role, name in keys:
        key(spm, role, name)

    told = spm("pack", source, "--registry-id", "team.example")

    assert told.code == 2
    assert told.err == f"error[usage]: the publisher must be named: {known}\n  hint: add `--publisher NAME`\n"
    assert not Path("dist").exists()


def test_a_publisher_is_called_one_in_its_refusal(spm: Spm, source: Path) -> None:
    told = spm("pack", source, "--registry-id", "team.example", "--publisher", "My_Team")

    assert told.err == (
        "error[usage]: 'My_Team' is not a publisher's name: names are lower-case words of a-z and 0-9 joined by single "
        "hyphens, 64 characters at most\n"
    )


def test_a_choice_of_keys_is_refused_and_so_is_none(spm: Spm, source: Path) -> None:
    packed = spm("pack", source, "--registry-id", "team.example", "--publisher", "audio", "--json").document["path"]
    none = spm("sign", packed)
    for name in ("one", "two"):
        assert spm("keys", "new", "--role", "ext", "--name", name, "--publisher", "audio", "--no-passphrase").code == 0

    several = spm("sign", packed)

    assert none.err == (
        "error[usage]: none of your keys may sign the ext plugin `tone`\n"
        "  hint: make one with `spm keys new`, or name it with `--key`\n"
    )
    assert several.err == ("error[usage]: the key must be named: `one`, `two` would all do\n  hint: add `--key NAME`\n")
    assert not list(Path(packed).glob("manifest.jws"))

"""`spm rollback --list`: generations newest first, as wide as the terminal, and what is not known of the oldest."""

from pathlib import Path

import pytest

from manifests.lockfile import Generation, InstalledEntry
from tests.manifests.builders import CREATED, installed
from tests.spm_client.cli.conftest import Spm

NAMES = ("audio-encoder", "gelu", "log-mel", "mel", "sampler", "video-mixer", "voice", "wave")


def keep(root: Path, number: int, *plugins: InstalledEntry) -> None:
    generation = Generation(number=number, registry="team.example", created=CREATED, plugins=plugins)
    (root / "generations").mkdir(exist_ok=True)
    (root / "generations" / f"{number:06d}.json").write_bytes(generation.to_bytes())
    (root / "current").write_text(f"{number:06d}\n")


def changes(text: str) -> list[str]:
    return [line.partition("Z  ")[2] for line in text.splitlines()[1:] if line[0] != " "]


def test_what_was_before_the_oldest_was_freed(spm: Spm, tmp_path: Path) -> None:
    keep(tmp_path, 9, installed("mel"))

    told = spm("rollback", "--list", "--root", tmp_path)

    assert (told.code, told.err) == (0, "")
    assert changes(told.out)[0].startswith("1 plugin; what was before was freed  current")


def test_what_was_before_is_damaged(spm: Spm, tmp_path: Path) -> None:
    keep(tmp_path, 9, installed("mel"))
    keep(tmp_path, 10, installed("mel"))
    (tmp_path / "generations" / "000009.json").write_text("{")

    told = spm("rollback", "--list", "--root", tmp_path)

    assert changes(told.out)[0].startswith("1 plugin; what was before is damaged  current")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            "",
            "+ audio-encoder 1.0.0, + gelu 1.0.0, + log-mel 1.0.0, + mel 1.0.0, + sampler 1.0.0, + video-mixer 1.0.0 "
            "and 2 more",
        ),
        ("140", "+ audio-encoder 1.0.0, + gelu 1.0.0, + log-mel 1.0.0 and 5 more"),
        ("100", "+ audio-encoder 1.0.0 and 7 more"),
        ("60", "+ audio-encoder 1.0.0 and 7 more"),
    ],
)
def test_few_changes_are_shown_where_there_is_little_room(
    spm: Spm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str, expected: str
) -> None:
    keep(tmp_path, 1)
    keep(tmp_path, 2, *map(installed, NAMES))
    monkeypatch.setenv("COLUMNS", columns)

    told = spm("rollback", "--list", "--root", tmp_path)

    assert changes(told.out)[0].partition("  ")[0] == expected
    if columns in {"100", "140"}:
        assert max(map(len, told.out.splitlines())) <= int(columns)

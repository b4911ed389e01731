"""A root that is no store: what only reads or cleans refuses it and makes no folder; names near an installed one."""

from pathlib import Path

import pytest

from tests.manifests.builders import installed
from tests.spm_client.cli.conftest import Spm
from tests.spm_client.cli.test_list_command import keep


@pytest.mark.parametrize(
    "command",
    [["gc"], ["gc", "--dry-run"], ["uninstall", "mel"], ["rollback"], ["rollback", "--list"]],
    ids=lambda command: "-".join(command),
)
def test_a_mistyped_root_is_refused_and_not_made(spm: Spm, tmp_path: Path, command: list[str]) -> None:
    told = spm(*command, "--root", tmp_path / "e9")

    assert (told.code, told.out) == (26, "")
    assert told.err == (
        f"error[conf-missing]: `{tmp_path}/e9` is no store of spm: it has no loader.conf, and nothing was ever "
        "installed in it\n"
        "  hint: check `--root` and `SPM_ROOT`; a store begins with a loader.conf, and `spm install` makes the rest\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_listing_says_that_there_is_no_store(spm: Spm, tmp_path: Path) -> None:
    told = spm("list", "--root", tmp_path / "e9")

    assert (told.code, told.out) == (0, f"nothing is installed in {tmp_path}/e9\n")
    assert told.err == "note: there is no store there\n"


def test_a_store_without_loader_conf_is_cleaned(spm: Spm, tmp_path: Path) -> None:
    keep(tmp_path)

    assert spm("gc", "--root", tmp_path).out == "nothing to free\n"


def test_a_misspelt_installed_name_is_refused_with_the_one_that_was_meant(spm: Spm, tmp_path: Path) -> None:
    keep(tmp_path, installed("mel"))

    told = spm("uninstall", "mell", "--root", tmp_path)

    assert (told.code, told.out) == (10, "")
    assert told.err == "error[not-found]: `mell` is not installed\n  hint: did you mean `mel`?\n"


GRAMMAR = (
    "is not a plugin name: names are lower-case words of a-z and 0-9 joined by single hyphens, 64 characters at most"
)


@pytest.mark.parametrize(
    "command", [["uninstall"], ["verify"], ["run", "--input", "x.json"]], ids=lambda words: words[0]
)
def test_an_installed_plugin_is_named_without_its_registry(spm: Spm, tmp_path: Path, command: list[str]) -> None:
    told = spm(*command, "px.example/lens", "--root", tmp_path)

    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"error[usage]: 'px.example/lens' {GRAMMAR}\n"
        "  hint: an installed plugin is named without its registry: `lens`\n"
    )


@pytest.mark.parametrize("asked", ["lens==1.2.0", "px.example/lens==1.2.0"])
def test_a_release_to_be_described_is_named_by_an_option(spm: Spm, tmp_path: Path, asked: str) -> None:
    told = spm("info", asked, "--root", tmp_path)

    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"error[usage]: 'lens==1.2.0' {GRAMMAR}\n"
        f"  hint: `spm info {asked.partition('==')[0]} --version 1.2.0` describes one release\n"
    )

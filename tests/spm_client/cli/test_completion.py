"""Completion: the scripts sourced in real shells, asked as a Tab asks, for commands, actions, options and names."""

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TypeGuard

import pytest

from manifests.lockfile import Generation, InstalledEntry
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.versions import Version
from spm_client.cli.main import COMMANDS
from spm_client.cli.shell_words import FILES, FOLDERS, INSTALLED, LOCKED, NOTHING, REQUIRED, TARGETS, Place, places
from tests.spm_client.cli.conftest import Spm

BASH = """
source "$HOME/spm.bash"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_spm
# An element is what a Tab inserts: one with many words in it would show here.
for word in "${COMPREPLY[@]}"; do printf '%s\\n' "${word//$'\\n'/+}"; done
"""
# Outside a widget the parameters of one are ordinary, and what would add matches prints them.
ZSH = """
compdef() { }
_describe() { for word in "${(@P)@[-1]}"; do print -r -- "${word%%:*}"; done }
compadd() { shift; print -rl -- "$@" }
_files() { print -r -- "FILES $@" }
compset() { PREFIX=${PREFIX#*=} }
source "$HOME/spm.zsh"
words=("$@"); CURRENT=$#; PREFIX=$words[-1]
_spm | while read -r word; do [[ $word == $PREFIX* || $word == FILES* || $PREFIX == *= ]] && print -r -- $word; done
true
"""
FISH = """
source $HOME/spm.fish
complete -C (string join ' ' -- $argv)
"""
COMMON = ["--help", "--json", "--root"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a store in which two plugins are installed, as far as its generation says."""
    root = tmp_path_factory.mktemp("store")
    entries = tuple(
        InstalledEntry(
            name=PluginName(name),
            version=Version.parse("1.0.0"),
            release="1.0.0",
            manifest_sha256="aa" * 32,
            type=PluginType.EXT,
            keyids=("bb" * 32,),
            requested=True,
            requires=(),
        )
        for name in ("audio-encoder", "log-mel")
    )
    made = Generation(number=1, registry="team.example", created="2026-01-31T12:00:00Z", plugins=entries)
    (root / "generations").mkdir()
    (root / "generations" / "000001.json").write_bytes(made.to_bytes())
    (root / "current").write_text("000001\n")
    for shell in ("bash", "zsh", "fish"):
        (root / f"spm.{shell}").write_text(import_module(f"spm_client.cli.shell_{shell}").script(places(COMMANDS)))
    return root


def asked(shell: str, program: str, root: Path, *words: str, store: Path | None = None) -> list[str]:
    """Return what a shell offers for the last of these words, in the folder `root`."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    begin = {
        "bash": ("--norc", "-c", program, "bash"),
        "zsh": ("-f", "-c", program, "zsh"),
        "fish": ("-N", "-c", program),
    }
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [shell, *begin[shell], *words],
        cwd=root,
        env={"PATH": path, "HOME": str(root), "SPM_ROOT": str(store or root), "LANG": "C.UTF-8", "TERM": "dumb"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return sorted({line.partition("\t")[0].removesuffix("/") for line in done.stdout.splitlines()} - {""})


def program(shell: str) -> str:
    return {"bash": BASH, "zsh": ZSH, "fish": FISH}[shell]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["spm", "inst"], ["install"]),
        (["spm", "un"], ["uninstall"]),
        (["spm", "--root", "/x y", "keys", "e"], ["export"]),
        (["spm", "keys", "export", "--format", ""], ["jwk", "pem"]),
        (["spm", "keys", "--js"], ["--json"]),
        (["spm", "search", "--batch", "a"], ["adaptive"]),
        (["spm", "search", "--lim"], ["--limit"]),
        (["spm", "uninstall", ""], ["audio-encoder", "log-mel"]),
        (["spm", "run", "--input", "x", "lo"], ["log-mel"]),
        (["spm", "verify", "log-mel", "au"], ["audio-encoder"]),
        (["spm", "completion", "f"], ["fish"]),
        (["spm", "nonsense", "--nonsense"], []),
    ],
)
def test_a_shell_offers_what_can_follow(shell: str, root: Path, words: list[str], expected: list[str]) -> None:
    if shell == "fish":
        words = [word.replace(" ", "\\ ") for word in words]

    assert asked(shell, program(shell), root, *words) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_offered(shell: str, root: Path) -> None:
    assert asked(shell, program(shell), root, "spm", "") == sorted(COMMANDS)


def test_files_and_folders_are_offered_where_they_are_meant(root: Path) -> None:
    folder = root / "a b"
    folder.mkdir(exist_ok=True)
    (root / "a.json").touch()

    assert asked("bash", BASH, root, "spm", "info", "--target", "a") == ["a b", "a.json"]
    assert asked("bash", BASH, root, "spm", "pack", "a") == ["a b"]
    assert asked("bash", BASH, root, "spm", "info", "--target", "=", "a") == ["a b", "a.json"]
    assert asked("bash", BASH, root, "spm", "info", "--target", "=") == sorted(os.listdir(root))
    assert asked("zsh", ZSH, root, "spm", "info", "--target", "a") == ["FILES"]
    assert asked("zsh", ZSH, root, "spm", "pack", "a") == ["FILES -"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project that requires a plugin and names two targets; it has no lock."""
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "spm.toml").write_text(
        '[project]\nname = "demo"\n\n[requirements]\nlog-mel = "^1.0"\n\n'
        '[targets]\ngpu-box = "targets/gpu.json"\nhere = "targets/here.json"\n'
    )
    return folder


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("sync", "--target", ""), ["gpu-box", "here"]),
        (("tree", "--target", "g"), ["gpu-box"]),
        (("why", "--target", ""), ["gpu-box", "here"]),
        (("remove", ""), ["log-mel"]),
        (("keys", "new", "--publisher", ""), []),
        (("init", "--target", ""), []),
    ],
)
def test_names_of_a_project_are_offered_where_it_is_named(
    shell: str, root: Path, project: Path, words: tuple[str, ...], expected: list[str]
) -> None:
    command = "keys new" if words[0] == "keys" else words[0]
    place = str(project).replace(" ", "\\ ") if shell == "fish" else str(project)
    given = ("--project", place) if "--project" in options_of(command) else ()

    assert asked(shell, program(shell), root, "spm", words[0], *given, *words[1:]) == expected


def test_each_list_of_words_is_offered_word_by_word(root: Path) -> None:
    for place in places(COMMANDS):
        path = place.path.split()
        lists = [(path, [one.name for one in place.options], "-")]
        lists += [(path, list(place.words), "")] if place.words else []
        lists += [([*path, one.name], one.value.split(), "") for one in place.options if is_words(one.value)]
        lists += [(path, place.argument.split(), "")] if is_words(place.argument) else []
        for before, words, begun in lists:
            assert asked("bash", BASH, root, "spm", *before, begun) == sorted(set(words))


def is_words(value: str | None) -> TypeGuard[str]:
    return bool(value) and not str(value).startswith("@")


def options_of(path: str) -> set[str]:
    return {one.name for place in places(COMMANDS) if place.path == path for one in place.options}


def test_a_file_of_any_name_is_offered_by_its_name(root: Path, tmp_path: Path) -> None:
    for name in ("a *", "a $(touch made)", "a'b"):
        (tmp_path / name).touch()

    offered = BASH.replace("COMP_WORDS=", f'cd "{tmp_path}"; COMP_WORDS=')

    assert asked("bash", offered, root, "spm", "info", "--target", "a") == ["a $(touch made)", "a *", "a'b"]
    assert sorted(os.listdir(tmp_path)) == ["a $(touch made)", "a *", "a'b"]


def test_another_store_s_names_are_offered_where_it_is_named(root: Path, tmp_path: Path) -> None:
    words = ["spm", "--root", str(root), "uninstall", ""]

    for shell in ("bash", "zsh", "fish"):
        assert asked(shell, program(shell), root, *words, store=tmp_path) == ["audio-encoder", "log-mel"]
        assert asked(shell, program(shell), root, "spm", "uninstall", "", store=tmp_path) == []


def test_the_script_is_printed_to_be_evaluated(root: Path) -> None:
    evaluated = BASH.replace('source "$HOME/spm.bash"', 'eval "$(spm completion bash)"')

    assert evaluated != BASH
    assert asked("bash", evaluated, root, "spm", "inst") == ["install"]


def test_names_are_printed_one_a_line(spm: Spm, root: Path, tmp_path: Path) -> None:
    assert spm("completion", "installed", "--root", root).out == "audio-encoder\nlog-mel\n"
    assert spm("completion", "installed", "--root", root, "--json").document == {"names": ["audio-encoder", "log-mel"]}
    assert spm("completion", "installed", "--root", tmp_path).out == ""


def test_names_of_a_project_are_printed_one_a_line(spm: Spm, root: Path, project: Path, tmp_path: Path) -> None:
    assert spm("completion", "targets", "--project", project).out == "gpu-box\nhere\n"
    assert spm("completion", "targets", "--project", project, "--json").document == {"targets": ["gpu-box", "here"]}
    assert spm("completion", "required", "--project", project).out == "log-mel\n"
    told = spm("completion", "locked", "--project", project)
    assert (told.code, told.err) == (
        26,
        f"error[lock-missing]: `{project}` has no spm.lock\n  hint: `spm lock` writes it\n",
    )


def test_a_shell_that_is_none_is_refused(spm: Spm) -> None:
    told = spm("completion", "tcsh")

    assert told.code == 2
    assert told.err == (
        "error[usage]: argument SHELL: invalid choice: 'tcsh' (choose from 'bash', 'zsh', 'fish', 'installed', "
        "'locked', 'required', 'targets')\n"
        "  hint: `spm completion --help` shows how it is used\n"
    )


def test_every_place_of_the_command_line_is_known() -> None:
    known = {place.path: place for place in places(COMMANDS)}

    assert {path.partition(" ")[0] for path in known} == {"", *COMMANDS}
    assert set(known["keys"].words) == {path.removeprefix("keys ") for path in known if path.startswith("keys ")}
    assert all({option.name for option in place.options} >= set(COMMON) for place in known.values())
    assert known["install"].argument == NOTHING
    assert known["uninstall"].argument == known["verify"].argument == INSTALLED
    assert (known["remove"].argument, known["why"].argument) == (REQUIRED, LOCKED)
    assert value(known["sync"], "--target") == value(known["tree"], "--target") == TARGETS
    assert value(known["pack"], "--publisher") == value(known["sign"], "--key") == NOTHING
    assert value(known["info"], "--target") == FILES
    assert value(known["info"], "--json") is None
    assert value(known["pack"], "--out") == FOLDERS


def value(place: Place, name: str) -> str | None:
    return next(option.value for option in place.options if option.name == name)

"""The command line: what is parsed, what is refused, and where words and JSON go."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from manifests.errors import SpmError, Unsatisfiable
from spm_client import __version__
from spm_client.cli.command import report
from spm_client.cli.main import COMMANDS
from spm_client.cli.session import Session
from tests.spm_client.cli.conftest import Spm

HELP = "`spm --help` shows how it is used"


@pytest.mark.parametrize("arguments", [["--version"], ["-V"], ["--version", "list"], ["--json", "--version"]])
def test_the_version_is_one_line(spm: Spm, arguments: list[str]) -> None:
    told = spm(*arguments)

    assert (told.code, told.out, told.err) == (0, f"spm {__version__}\n", "")


def test_spm_alone_asks_for_a_command(spm: Spm) -> None:
    told = spm()

    assert (told.code, told.out) == (2, "")
    assert told.err == f"error[usage]: the following arguments are required: COMMAND\n  hint: {HELP}\n"


@pytest.mark.parametrize(
    ("arguments", "word", "hint"),
    [
        (["instal", "x"], "instal", "did you mean `spm install`?"),
        (["unistall"], "unistall", "did you mean `spm uninstall`?"),
        (["frobnicate", "x"], "frobnicate", "`spm --help` lists the commands"),
        (["update"], "update", "did you mean `spm upgrade` of a project, or `spm install NAME`?"),
        (["rm", "mel"], "rm", "did you mean `spm uninstall`, or `spm remove` of a project?"),
        (["show", "mel"], "show", "did you mean `spm info`?"),
        (["view", "mel"], "view", "did you mean `spm info`?"),
        (["prune"], "prune", "did you mean `spm gc`?"),
        (["ls"], "ls", "did you mean `spm list`?"),
        (["i", "mel"], "i", "did you mean `spm install`?"),
        (["help"], "help", "did you mean `spm --help`?"),
        (["version"], "version", "did you mean `spm --version`?"),
        ([""], "", "`spm --help` lists the commands"),
        (["--root", "/nowhere", "lst"], "lst", "did you mean `spm list`?"),
        (["--root=/nowhere", "lst"], "lst", "did you mean `spm list`?"),
        (["--json", "lst"], "lst", "did you mean `spm list`?"),
    ],
)
def test_an_unknown_command_is_refused_with_a_near_one(spm: Spm, arguments: list[str], word: str, hint: str) -> None:
    told = spm(*arguments)

    assert told.code == 2
    assert told.err == f"error[usage]: `{word}` is not a command of spm\n  hint: {hint}\n"


@pytest.mark.parametrize(
    ("arguments", "message", "program"),
    [
        (["install"], "the following arguments are required: SPEC", "spm install"),
        (["uninstall"], "the following arguments are required: NAME", "spm uninstall"),
        (["info"], "the following arguments are required: NAME", "spm info"),
        (["pack"], "the following arguments are required: DIR", "spm pack"),
        (["sign"], "the following arguments are required: PACKED", "spm sign"),
        (["publish"], "the following arguments are required: PACKED", "spm publish"),
        (["yank"], "the following arguments are required: NAME==VERSION", "spm yank"),
        (["run", "x"], "the following arguments are required: --input/-i", "spm run"),
        (["keys", "new"], "the following arguments are required: --role", "spm keys new"),
        (
            ["keys", "new", "--role", "x"],
            "argument --role: invalid choice: 'x' (choose from 'core', 'ext', 'root')",
            "spm keys new",
        ),
        (["list", "x"], "unrecognized arguments: x", "spm list"),
        (["list", "--frobnicate"], "unrecognized arguments: --frobnicate", "spm list"),
        (["keys", "list", "x"], "unrecognized arguments: x", "spm keys list"),
        (["list", "--root"], "argument --root: expected one argument", "spm list"),
        (["install", "x", "--target"], "argument --target: expected one argument", "spm install"),
        (
            ["keys", "new", "--role", "ext", "--passphrase-fd", "x"],
            "argument --passphrase-fd: 'x' is not a whole number",
            "spm keys new",
        ),
        (["rollback", "--to", "x"], "argument --to: 'x' is not a whole number", "spm rollback"),
        (["rollback", "--to", "9" * 99], f"argument --to: '{'9' * 39} is not a whole number", "spm rollback"),
        (["gc", "--keep", "1.5"], "argument --keep: '1.5' is not a whole number", "spm gc"),
    ],
)
def test_a_line_that_cannot_be_parsed_is_refused(spm: Spm, arguments: list[str], message: str, program: str) -> None:
    told = spm(*arguments)

    assert (told.code, told.out) == (2, "")
    assert told.err == f"error[usage]: {message}\n  hint: `{program} --help` shows how it is used\n"


@pytest.mark.parametrize(
    ("arguments", "words", "meant"),
    [
        (["list", "--rot", "x"], "--rot x", "--root"),
        (["list", "--rot=x"], "--rot=x", "--root"),
        (["list", "--js"], "--js", "--json"),
        (["--jsn", "list"], "--jsn", "--json"),
        (["keys", "new", "--role", "ext", "--passphrase-df", "3"], "--passphrase-df 3", "--passphrase-fd"),
    ],
)
def test_an_unknown_option_is_refused_with_a_near_one(spm: Spm, arguments: list[str], words: str, meant: str) -> None:
    told = spm(*arguments)

    assert (told.code, told.out) == (2, "")
    assert told.err == f"error[usage]: unrecognized arguments: {words}\n  hint: did you mean `{meant}`?\n"


@pytest.mark.parametrize(
    ("arguments", "word", "hint"),
    [
        (["keys", "nwe"], "nwe", "did you mean `spm keys new`?"),
        (["keys", "frobnicate"], "frobnicate", "`spm keys --help` lists the actions"),
        (["keys", ""], "", "`spm keys --help` lists the actions"),
        (["bundle", "--json", "exprot"], "exprot", "did you mean `spm bundle export`?"),
    ],
)
def test_an_unknown_action_is_refused_with_a_near_one(spm: Spm, arguments: list[str], word: str, hint: str) -> None:
    told = spm(*arguments)

    assert told.code == 2
    assert told.err == f"error[usage]: `{word}` is not an action of `spm {arguments[0]}`\n  hint: {hint}\n"


@pytest.mark.parametrize("command", ["trust", "keys", "bundle", "target"])
def test_a_command_without_its_action_shows_its_help_and_is_refused(spm: Spm, command: str) -> None:
    told, shown, document = spm(command), spm(command, "--help"), spm(command, "--json")

    assert told.code == document.code == 2
    assert told.err == f"{shown.out}error[usage]: `spm {command}` needs one of its actions\n"
    assert (told.out, document.document["error"]["reason"]) == ("", "usage")


def test_the_root_may_stand_before_or_after_the_command_and_the_last_one_counts(spm: Spm, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"

    shown = [
        spm("--root", one, "list").out,
        spm(f"--root={one}", "list").out,
        spm("list", "--root", one).out,
        spm("list", f"--root={one}").out,
        spm("--root", two, "list", "--root", one).out,
        spm("list", "--root", two, "--root", one).out,
    ]

    assert set(shown) == {f"nothing is installed in {one}\n"}


def test_an_empty_root_is_refused(spm: Spm) -> None:
    told = spm("list", "--root", "")

    assert (told.code, told.err) == (2, "error[usage]: `--root` names no folder: it is empty\n")


def test_a_root_named_like_a_command_is_a_root(spm: Spm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert spm("--root", "install", "list").out == f"nothing is installed in {tmp_path / 'install'}\n"


def test_a_listing_changes_nothing_on_disk(spm: Spm, tmp_path: Path) -> None:
    told = spm("list", "--json", "--root", tmp_path / "store")

    assert told.document == {"generation": 0, "plugins": []}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [["--json", "sign", "x", "--key", "k"], ["sign", "x", "--key", "k", "--json"]])
def test_a_refusal_is_json_on_stdout_and_words_on_stderr(spm: Spm, tmp_path: Path, place: list[str]) -> None:
    told = spm(*place)

    message, hint = "`x` is not a packed plugin: it has no `manifest.json`", "make one with `spm pack DIR`"
    assert told.code == 2
    assert told.err == f"error[usage]: {message}\n  hint: {hint}\n"
    assert told.document == {"error": {"exit": 2, "reason": "usage", "message": message, "context": {}, "hint": hint}}


def test_a_line_that_cannot_be_parsed_is_json_too(spm: Spm) -> None:
    told = spm("instal", "--json")

    assert told.document["error"]["message"] == "`instal` is not a command of spm"


def test_json_inside_another_argument_is_not_the_option(spm: Spm) -> None:
    told = spm("yank", "x", "--reason=--json")

    assert (told.code, told.out) == (2, "")
    assert told.err == "error[usage]: 'x' does not name one release\n  hint: write `NAME==1.2.3`\n"


def test_a_store_without_a_configuration_says_where_one_comes_from(spm: Spm, tmp_path: Path) -> None:
    told = spm("info", "x", "--root", tmp_path)

    assert (told.code, told.out) == (26, "")
    assert told.err == (
        f"error[conf-missing]: {tmp_path / 'loader.conf'} is not there, and without it nothing says whom to trust\n"
        "  hint: get loader.conf from whoever runs your registry, and put it there\n"
    )


def test_what_the_system_says_of_a_user_s_file_is_a_refusal(spm: Spm, tmp_path: Path) -> None:
    told = spm("target", "probe", "--output", tmp_path / "nowhere" / "x.json")

    assert (told.code, told.err) == (
        2,
        f"error[usage]: `{tmp_path / 'nowhere' / 'x.json'}` cannot be used: No such file or directory\n",
    )


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_of_each_command_lists_its_options(spm: Spm, command: str) -> None:
    told = spm(command, "--help")

    summary = COMMANDS[command]
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"usage: spm {command} [-h] [--root DIR] [--json]")
    assert f"\n{summary[0].upper()}{summary[1:]}.\n" in told.out
    assert "  --root DIR" in told.out
    assert not [line for line in told.out.splitlines() if line.startswith("  -") and len(line.split(maxsplit=1)) < 2]


@pytest.mark.parametrize("action", ["new", "list", "show"])
def test_help_of_each_action_on_keys_lists_its_options(spm: Spm, action: str) -> None:
    told = spm("keys", action, "--help")

    assert (told.code, told.err) == (0, "")
    assert told.out.startswith(f"usage: spm keys {action} [-h] [--keys DIR] [--root DIR] [--json]")


def test_help_lists_every_command_with_its_summary(spm: Spm) -> None:
    told = spm("--help")

    assert told.code == 0
    for command, summary in COMMANDS.items():
        assert re.search(rf"^    {command} +{re.escape(summary)}$", told.out, re.MULTILINE)
    assert "Exit codes: 2 usage, 3 undecided" in told.out


def test_help_is_as_wide_as_the_terminal(spm: Spm, monkeypatch: pytest.MonkeyPatch) -> None:
    widths = {}
    for columns in ("60", "100", "160"):
        monkeypatch.setenv("COLUMNS", columns)
        widths[columns] = max(map(len, spm("run", "--help").out.splitlines()))

    assert 50 < widths["60"] <= 60 < widths["100"] <= 100 < widths["160"] <= 160


@pytest.mark.parametrize("columns", ["x", "0", "-1", ""])
def test_help_is_80_wide_where_nothing_says_how_wide(columns: str) -> None:
    environment = os.environ | {"COLUMNS": columns}
    done = subprocess.run(
        [*ENTRY, "run", "--help"], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )

    assert 70 < max(map(len, done.stdout.splitlines())) <= 80


ENTRY = [sys.executable, "-m", "spm_client.cli.main"]
REPOSITORY = Path(__file__).parents[3]


def test_the_version_imports_no_more_than_it_needs() -> None:
    code = "import sys; from spm_client.cli.main import main; main(['--version']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)

    loaded = done.stdout.partition("\n")[2]
    assert [name for name in ("argparse", "json", "urllib3", "torch", "yaml") if f"'{name}'" in loaded] == []


def test_a_reader_that_is_gone_is_no_traceback() -> None:
    reader, writer = os.pipe()
    os.close(reader)

    done = subprocess.run(
        [*ENTRY, "target", "probe"], cwd=REPOSITORY, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (141, "")


def test_bytes_that_are_no_text_are_refused_readably() -> None:
    word = b"inst\xff"
    done = subprocess.run([*ENTRY, word, "--json"], cwd=REPOSITORY, capture_output=True, check=False)

    assert done.returncode == 2
    assert done.stderr.startswith("error[usage]: `inst\ufffd` is not a command of spm\n".encode())
    assert json.loads(done.stdout)["error"]["message"] == "`inst\udcff` is not a command of spm"


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    (tmp_path / "störe").mkdir()
    done = subprocess.run(
        [*ENTRY, "list", "--root", str(tmp_path / "störe")],
        cwd=REPOSITORY,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == f"nothing is installed in {tmp_path}/st\\xf6re\n".encode()


def test_no_words_of_others_in_a_refusal_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    steering = "a\x1b[2Jb\x1b]0;c\x07d\re\u202ef\x9bg"
    refusal = SpmError(f"signed by {steering}\nand ü", reason=f"r{steering}", hint=steering)

    report(refusal, Session(is_json=True, environment={}))

    told = capsys.readouterr()
    shown = "a\ufffd[2Jb\ufffd]0;c\ufffdd\ufffde\ufffdf\ufffdg"
    assert told.err == f"error[r{shown}]: signed by {shown}\nand ü\n  hint: {shown}\n"
    assert json.loads(told.out)["error"]["hint"] == steering
    assert told.out.removesuffix("\n").isprintable()


def test_a_proof_is_shown_where_it_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    session = Session(is_json=False, environment={})
    session.is_explained = True
    steps = [{"step": 1, "text": "you want `mel` `*`"}, {"step": 2, "text": "so there is none", "from": [1, 1]}]

    code = report(Unsatisfiable("no set of releases", hint="ask for less", derivation=steps), session)

    assert (code, capsys.readouterr().err) == (
        10,
        "error[unsatisfiable]: no set of releases\n"
        "  1. you want `mel` `*`\n"
        "  2. so there is none (from 1 and 1)\n"
        "  hint: ask for less\n",
    )

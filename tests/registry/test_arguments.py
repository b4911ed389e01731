"""The command line of `spm-registry`: how it is refused, and what it says without its extra."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from registry.arguments import Parser, parser
from registry.cli import main

ROOT = Path(__file__).parents[2]
BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == BLOCK:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from registry.cli import main
sys.exit(main(sys.argv[1:]))
"""
COMMANDS = [
    ["init"],
    ["serve"],
    ["key", "list"],
    ["token", "list"],
    ["loader-conf"],
    ["backup", "there"],
    ["root", "show"],
    ["keyring", "show"],
]


@pytest.mark.parametrize(
    ("module", "command"),
    [
        *(("sqlalchemy", command) for command in COMMANDS),
        *(("alembic", command) for command in COMMANDS),
        ("tuf", ["root", "show"]),
        ("securesystemslib", ["root", "show"]),
        ("flask", ["serve"]),
        ("granian", ["serve"]),
    ],
)
def test_without_its_extra_it_says_what_to_install(module: str, command: list[str], tmp_path: Path) -> None:
    words = [sys.executable, "-c", f"BLOCK = {module!r}\n{BLOCKED}", *command, "--root", str(tmp_path / "r"), "--json"]

    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    message = f"spm-registry needs the extra `registry`: `{module}` is not installed"
    hint = "`pip install 'seedance-spm[registry]'`; in a checkout: `pip install '.[registry]'`"
    assert done.stderr == f"error[usage]: {message}\n  hint: {hint}\n"
    assert done.returncode == 2
    error = {"exit": 2, "reason": "usage", "message": message, "context": {}, "hint": hint}
    assert json.loads(done.stdout) == {"error": error}
    assert not (tmp_path / "r").exists()


def test_a_module_of_our_own_that_is_missing_is_a_fault_and_no_refusal() -> None:
    words = [sys.executable, "-c", f"BLOCK = 'keys'\n{BLOCKED}", "key", "list", "--root", "r"]

    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'keys'"


@pytest.mark.parametrize(
    ("words", "message", "prog"),
    [
        ([], "the following arguments are required: COMMAND", "spm-registry"),
        (["serve"], "the following arguments are required: --root", "spm-registry serve"),
        (["serve", "--root", "r", "--workers", "0"], "argument --workers: '0' is not a number from 1 on", None),
        (["serve", "--root", "r", "--workers", "x"], "argument --workers: 'x' is not a number from 1 on", None),
        (["key", "add", "--root", "r"], "the following arguments are required: FILE.pub", "spm-registry key add"),
        (["token", "revoke", "--root", "r"], "the following arguments are required: ID", "spm-registry token revoke"),
        (["init", "--root", "r", "--idea", "x"], "unrecognized arguments: --idea x", "spm-registry"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_command_line_is_refused_as_everything_is(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str, prog: str | None, as_json: bool
) -> None:
    code = main([*words, "--json"] if as_json else words)

    captured = capsys.readouterr()
    hint = f"`{prog or 'spm-registry serve'} --help` shows how it is used"
    assert captured.err == f"error[usage]: {message}\n  hint: {hint}\n"
    assert code == 2
    if as_json:
        error = {"exit": 2, "reason": "usage", "message": message, "context": {}, "hint": hint}
        assert json.loads(captured.out) == {"error": error}
    else:
        assert captured.out == ""


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_it_knows_its_version(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([flag])

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"spm-registry {project['version']}\n"


def _parsers(whole: Parser) -> list[Parser]:
    inner = [each for action in whole._actions if isinstance(action.choices, dict) for each in action.choices.values()]
    return [whole, *(deeper for each in inner for deeper in _parsers(each))]


def test_help_is_written_in_sentences() -> None:
    texts = [each.description for each in _parsers(parser())]
    texts += [action.help for each in _parsers(parser()) for action in each._actions if not action.choices]

    assert [text for text in texts if not text or not text[0].isupper() or not text.endswith(".")] == []


def test_a_reader_that_is_gone_ends_it_quietly(tmp_path: Path) -> None:
    made = f"{sys.executable} -m registry.cli init --root {tmp_path}/r"

    done = subprocess.run(
        ["bash", "-c", f"{made} | true; echo ${{PIPESTATUS[0]}}"], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stderr in ("", "The token is not stored and cannot be shown again.\n")
    assert done.stdout in ("0\n", "141\n")

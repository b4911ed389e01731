"""`spm run`: what it prints of a run, of a plugin's failure, and what it refuses before a worker starts."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from manifests.parts import TensorSpec
from tests.runtime.stores import BATCHED, Store
from tests.spm_client.cli.conftest import Spm, Told

TOKENS = TensorSpec(name="tokens", dtype="int64", shape=(-1,))
SPEECH = TensorSpec(name="speech", dtype="float32", shape=(-1, 4))
COLD = """
import sys

def make(context):
    def run(x):
        print("brr\\x1b[2J")
        print("shiver", file=sys.stderr)
        raise ValueError("too cold for me")
    return run
"""


class Runs:
    """A store, a file `x.json`, and `spm run` over them."""

    def __init__(self, spm: Spm, folder: Path) -> None:
        self._spm = spm
        self.folder = folder
        self.store = Store(folder / "store")
        (folder / "x.json").write_text("[[1, 2, 3, 4]]")

    def add(
        self,
        body: str,
        *,
        inputs: Sequence[TensorSpec] = (BATCHED,),
        outputs: Sequence[TensorSpec] = (BATCHED,),
    ) -> None:
        source = body if "\n" in body else f"def make(context):\n    return lambda *x: {body}\n"
        self.store.add("ben", source, inputs=inputs, outputs=outputs)

    def run(self, *arguments: str | Path) -> Told:
        return self._spm("--root", self.store.root, "run", "ben", "--input", self.folder / "x.json", *arguments)


@pytest.fixture
def runs(spm: Spm, tmp_path: Path) -> Runs:
    return Runs(spm, tmp_path)


def test_a_misspelt_name_is_refused_with_the_one_that_was_meant(runs: Runs, spm: Spm) -> None:
    runs.add("x[0]")

    told = spm("--root", runs.store.root, "run", "benn", "--input", runs.folder / "x.json")

    assert (told.code, told.out) == (10, "")
    assert told.err == (
        f"error[not-found]: `benn` is not installed in {runs.store.root}\n  hint: did you mean `ben`?\n"
    )


def test_outputs_are_printed_by_their_declared_names_and_the_file_that_was_written_is_named(runs: Runs) -> None:
    runs.add("x[0] * 2")

    told = runs.run("--output", runs.folder / "y.json")

    assert (told.code, told.err) == (0, "")
    assert told.out == f"ben ran on cpu\n  x  float32 [1, 4]  2 to 8, mean 5\nwrote {runs.folder}/y.json\n"
    assert json.loads((runs.folder / "y.json").read_text()) == [[2.0, 4.0, 6.0, 8.0]]


@pytest.mark.parametrize(
    ("body", "outputs", "lines"),
    [
        (
            "(x[0], x[0] + 1)",
            [SPEECH, BATCHED],
            ["speech  float32 [1, 4]  1 to 4, mean 2.5", "x  float32 [1, 4]  2 to 5, mean 3.5"],
        ),
        ("{'speech': x[0]}", [SPEECH], ["speech  float32 [1, 4]  1 to 4, mean 2.5"]),
        ("x[0]", [], ["output  float32 [1, 4]  1 to 4, mean 2.5"]),
        (
            "{'dtype': x[0], 'n\\x1b': ['\\x9b1m', None, 2]}",
            [],
            ["dtype  float32 [1, 4]  1 to 4, mean 2.5", 'n\\x1b[0]  "\\x9b1m"', "n\\x1b[1]  null", "n\\x1b[2]  2"],
        ),
    ],
)
def test_each_tensor_and_plain_value_has_a_line(
    runs: Runs, body: str, outputs: list[TensorSpec], lines: list[str]
) -> None:
    runs.add(body, outputs=outputs)

    assert runs.run().out.splitlines() == ["ben ran on cpu", *(f"  {line}" for line in lines)]


def test_numbers_of_a_json_file_become_the_declared_dtype(runs: Runs) -> None:
    runs.add("x[0]", inputs=[TOKENS], outputs=[TOKENS])
    (runs.folder / "x.json").write_text("[7, 8]")

    told = runs.run("--json").document

    assert told["outputs"] == {"dtype": "int64", "shape": [2], "min": 7.0, "mean": 7.5, "max": 8.0}


def test_input_that_is_not_as_declared_is_refused(runs: Runs) -> None:
    runs.add("x[0]")
    (runs.folder / "x.json").write_text("[[1, 2, 3]]")

    told = runs.run()

    assert (told.code, told.out) == (2, "")
    assert told.err == "error[usage]: `ben` takes `x` float32 [-1, 4], and got float32 [1, 3]\n"


def test_a_plugins_failure_is_told_with_what_it_printed_and_where_it_raised(runs: Runs) -> None:
    runs.add(COLD)

    told = runs.run()

    assert (told.code, told.out) == (43, "")
    assert told.err == (
        "the plugin printed:\n"
        "  brr\\x1b[2J\n"
        "  shiver\n"
        "the plugin's traceback:\n"
        "  Traceback (most recent call last):\n"
        '    File "/spm/plugins/ben/ben.py", line 8, in run\n'
        '      raise ValueError("too cold for me")\n'
        "  ValueError: too cold for me\n"
        "error[plugin-failed]: `ben` raised: ValueError: too cold for me\n"
    )


def test_with_json_the_failure_has_its_traceback_and_the_hint_where_it_is(runs: Runs) -> None:
    runs.add(COLD)

    error = runs.run("--json").document["error"]

    assert error["hint"] == "the plugin's traceback is in `context.traceback`"
    assert error["context"]["traceback"].endswith("ValueError: too cold for me\n")
    assert error["context"]["output"] == "brr\x1b[2J\nshiver\n"


def test_a_syntax_error_is_told_with_file_and_line(runs: Runs) -> None:
    runs.add("def make(context):\n    return (7\n")

    assert runs.run().err == (
        "the plugin's traceback:\n"
        '    File "/spm/plugins/ben/ben.py", line 2\n'
        "      return (7\n"
        "             ^\n"
        "  SyntaxError: '(' was never closed\n"
        "error[plugin-failed]: `ben` could not be loaded: SyntaxError: '(' was never closed (ben.py, line 2)\n"
    )


def test_what_a_dying_plugin_said_is_told_too(runs: Runs) -> None:
    runs.add("import os\n\ndef make(context):\n    print('out of luck')\n    os._exit(9)\n")

    told = runs.run()

    assert told.code == 43
    printed, _, refusal = told.err.partition("error[worker-died]: ")
    assert printed == "the plugin printed:\n  out of luck\n"
    assert refusal.endswith(") ended with status 9\n")


def test_a_call_that_takes_too_long_is_told_with_the_limit_and_the_option(runs: Runs) -> None:
    runs.add("__import__('time').sleep(600)")

    told = runs.run("--timeout", "0.5")

    assert told.code == 41
    assert told.err.startswith(
        "error[limit:call]: a call of `ben` took longer than the 0.5 s allowed, and its worker (pid "
    )
    assert told.err.endswith(") was ended\n  hint: raise it with `--timeout` (in Python: `Host(call_deadline=...)`)\n")


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "nan", "inf", "604801"])
def test_a_timeout_that_is_none_is_refused(runs: Runs, seconds: str) -> None:
    told = runs.run(f"--timeout={seconds}")

    assert (told.code, told.err) == (
        2,
        f"error[usage]: argument --timeout: {seconds!r} is not a time: more than 0 and at most 604800 seconds\n"
        "  hint: `spm run --help` shows how it is used\n",
    )


def test_an_output_that_could_not_be_written_is_refused_before_anything_runs(runs: Runs) -> None:
    runs.add("x[0]")

    told = runs.run("--output", runs.folder / "y.mp3")

    assert (told.code, told.err) == (
        2,
        f"error[usage]: `{runs.folder}/y.mp3` has an unsupported extension: the name must end in .json, .pt, .npy\n",
    )
    assert not (runs.store.root / "runs.jsonl").exists()

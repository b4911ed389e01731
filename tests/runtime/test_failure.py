"""A plugin's exception in words: one line, and a traceback of its own frames."""

import pytest

from runtime.failure import MAX_LINE, MAX_TRACEBACK, told_of


def raised(source: str) -> BaseException:
    """Return what a plugin of this source raises."""
    with pytest.raises(Exception) as failure:
        exec(compile(source, "/spm/plugins/cold/cold.py", "exec"), {})
    error = failure.value
    assert error.__traceback__ is not None
    # The frame of this function is not a plugin's, and not spm's own either.
    return error.with_traceback(error.__traceback__.tb_next)


def test_traceback_has_the_plugins_frames_only() -> None:
    told = told_of(raised("def call():\n    raise ValueError('too cold for me')\n\ncall()\n"))

    assert told == {
        "error": "ValueError: too cold for me",
        "traceback": "Traceback (most recent call last):\n"
        '  File "/spm/plugins/cold/cold.py", line 4, in <module>\n'
        '  File "/spm/plugins/cold/cold.py", line 2, in call\n'
        "ValueError: too cold for me\n",
    }


def test_frames_of_spm_and_of_importing_are_left_out_of_causes_too() -> None:
    source = (
        "import importlib\nfrom runtime.placement import place\ntry:\n    importlib.import_module('no_such_module')\n"
        "except ImportError as error:\n    place('x', None, None)\n"
    )

    told = told_of(raised(source))

    frames = [line.strip() for line in told["traceback"].splitlines() if line.startswith("  File")]
    assert frames == [
        'File "/spm/plugins/cold/cold.py", line 4, in <module>',
        'File "/spm/plugins/cold/cold.py", line 6, in <module>',
    ]


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = (1\n", "SyntaxError: '(' was never closed (cold.py, line 1)"),
        ("if 1:\nx\n", "IndentationError: expected an indented block after 'if' statement on line 1 (cold.py, line 2)"),
        ("raise KeyError('a')\n", "KeyError: 'a'"),
        ("error = ValueError('cold')\nerror.add_note('wear a coat')\nraise error\n", "ValueError: cold"),
        ("raise ValueError('first\\nsecond')\n", "ValueError: first\nsecond"),
        (
            "class Odd(Exception):\n    def __str__(self):\n        raise self\nraise Odd\n",
            "Odd: <exception str() failed>",
        ),
        ("raise ExceptionGroup('many', [ValueError('a')])\n", "ExceptionGroup: many (1 sub-exception)"),
    ],
)
def test_line_says_what_was_raised(source: str, line: str) -> None:
    assert told_of(raised(source))["error"].removeprefix("builtins.") == line


def test_what_is_told_is_bounded() -> None:
    told = told_of(raised("raise ValueError('x' * (1 << 20))"))

    assert (len(told["error"]), len(told["traceback"])) == (MAX_LINE, MAX_TRACEBACK)

"""argparse with spm's refusals: what may have been meant, and help as wide as the terminal. Knows no command."""

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from manifests.errors import UsageError

ACTION = "ACTION"
_COLUMNS = 80


class Help(argparse.HelpFormatter):
    """argparse's help. Left to find the terminal's width, that loads all compression libraries at each start."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"width": _columns() - 2, **options})


class Parser(argparse.ArgumentParser):
    """argparse, with its complaints as refusals of spm."""

    def __init__(self, *, allow_abbrev: bool = False, **options: Any) -> None:
        super().__init__(allow_abbrev=allow_abbrev, formatter_class=Help, **options)
        # The innermost parser of a line sets its own last, and refuses what is left over of it.
        self.set_defaults(parser=self)

    def parse_line(self, words: Sequence[str]) -> argparse.Namespace:
        """Return what the words say.

        Raises: UsageError, with what may have been meant.
        """
        options, left_over = self.parse_known_args(words)
        if left_over:
            raise options.parser.refusal_of(left_over)
        return options

    def refusal_of(self, left_over: Sequence[str]) -> UsageError:
        """Return the refusal of words that this parser has no use for."""
        written = next((word.partition("=")[0] for word in left_over if word.startswith("-")), "")
        near = nearest(written, self._option_string_actions)
        hint = f"did you mean `{near}`?" if near else self._usage_hint()
        return UsageError(f"unrecognized arguments: {' '.join(left_over)}", hint=hint)

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=self._usage_hint())

    def _usage_hint(self) -> str:
        return f"`{self.prog} --help` shows how it is used"

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.metavar == ACTION and action.choices is not None and value not in action.choices:
            near = nearest(value, action.choices)
            raise UsageError(
                f"`{value}` is not an action of `{self.prog}`",
                hint=f"did you mean `{self.prog} {near}`?" if near else f"`{self.prog} --help` lists the actions",
            )
        super()._check_value(action, value)


def whole(text: str) -> int:
    """Read a whole number, as `type=` of an argument."""
    if not re.fullmatch(r"-?[0-9]{1,30}", text):
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a whole number")
    return int(text)


def nearest(word: str, words: Iterable[str]) -> str | None:
    """Return the word that was probably meant."""
    import difflib

    return next(iter(difflib.get_close_matches(word, list(words), n=1)), None)


def _columns() -> int:
    """Return the width of the terminal: `COLUMNS`, else its own word."""
    with suppress(ValueError):
        if (named := int(os.environ.get("COLUMNS", ""))) > 0:
            return named
    with suppress(OSError):
        return os.get_terminal_size().columns or _COLUMNS
    return _COLUMNS

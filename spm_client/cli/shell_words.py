"""What can be typed after `spm`, read off the parsers of its commands, for shells to complete. Runs no command."""

import argparse
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spm_client.cli.command import add_common

FILES, FOLDERS, NOTHING = "@files", "@folders", ""
INSTALLED, LOCKED, REQUIRED, TARGETS = "@installed", "@locked", "@required", "@targets"
"""What may stand for a value, beside words: files, folders, what no shell knows, or names that `spm completion` prints:
of what is installed, what spm.lock has, what spm.toml requires, and the targets of spm.toml."""

_BY_METAVAR = {
    "BUNDLE": FILES,
    "DEVICE": "cpu cuda npu xpu mps",
    "DEVICES": "cpu cuda npu xpu mps",
    "DIR": FOLDERS,
    "FILE": FILES,
    "KEY": FILES,
    "MODE": "adaptive static none",
    "PACKED": FOLDERS,
    "PATH": FILES,
}
# What a NAME is, by the command or by the option that takes it; elsewhere it is new, or one that is to be fetched.
_NAMES = {
    "uninstall": INSTALLED,
    "verify": INSTALLED,
    "run": INSTALLED,
    "info": INSTALLED,
    "why": LOCKED,
    "upgrade": LOCKED,
    "remove": REQUIRED,
    "lock --upgrade-plugin": LOCKED,
    "sync --target": TARGETS,
    "tree --target": TARGETS,
    "why --target": TARGETS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option under one of its names; `value` None: it takes none."""

    name: str
    about: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A command line as far as its commands go, `spm` itself being empty: what may follow there."""

    path: str
    words: Mapping[str, str]
    """Commands or actions, with what they do."""
    options: tuple[Option, ...]
    argument: str
    """What an argument may be: words, or one of the signs above."""


def places(commands: Mapping[str, str]) -> tuple[Place, ...]:
    """Return every place, `spm` first, then command by command with its actions."""
    top = argparse.ArgumentParser(prog="spm")
    top.add_argument("--version", "-V", action="store_true", help="show the version and exit")
    add_common(top, default=None)
    first = Place(path="", words=dict(commands), options=tuple(_options(top, "")), argument=NOTHING)
    return (first, *(place for name in commands for place in _of(_parser(name), name)))


def valued(place: Place) -> list[str]:
    """Return the options there that take a value."""
    return [option.name for option in place.options if option.value is not None]


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"spm {name}")
    add_common(parser, default=argparse.SUPPRESS)
    importlib.import_module(f"spm_client.cli.{name}_command").configure(parser)
    return parser


def _of(parser: argparse.ArgumentParser, path: str) -> Iterator[Place]:
    actions = next((one for one in _actions(parser) if isinstance(one, argparse._SubParsersAction)), None)  # noqa: SLF001
    told = {one.dest: one.help or "" for one in actions._choices_actions} if actions else {}  # noqa: SLF001
    argument = next(_arguments(parser, path), NOTHING)
    yield Place(path=path, words=told, options=tuple(_options(parser, path)), argument=argument)
    for name in told:
        yield from _of(actions.choices[name], f"{path} {name}") if actions else ()


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    # argparse has no public way to tell what a parser takes.
    return parser._actions  # noqa: SLF001


def _options(parser: argparse.ArgumentParser, path: str) -> Iterator[Option]:
    for action in _actions(parser):
        if action.help != argparse.SUPPRESS:
            for name in action.option_strings:
                yield Option(
                    name=name,
                    about=action.help or "",
                    value=None if action.nargs == 0 else _value(action, f"{path} {name}"),
                )


def _arguments(parser: argparse.ArgumentParser, path: str) -> Iterator[str]:
    for action in _actions(parser):
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            yield _value(action, path)


def _value(action: argparse.Action, taker: str) -> str:
    if action.choices is not None:
        return " ".join(map(str, action.choices))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    return _NAMES.get(taker, NOTHING) if metavar == "NAME" else _BY_METAVAR.get(metavar, NOTHING)

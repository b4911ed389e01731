"""Parsing the command line, calling one command, translating refusals for the terminal. Knows no command's work."""

import argparse
import errno
import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from manifests.errors import LimitReached, SpmError, UsageError
from spm_client import __version__
from spm_client.cli.parser import ACTION, Parser, nearest
from spm_client.cli.session import Session
from spm_client.render import proof_lines, warn

ELSEWHERE = {
    "update": "`spm upgrade` of a project, or `spm install NAME`",
    "rm": "`spm uninstall`, or `spm remove` of a project",
    "delete": "`spm uninstall`, or `spm remove` of a project",
    "i": "`spm install`",
    "get": "`spm install`",
    "ls": "`spm list`",
    "show": "`spm info`",
    "view": "`spm info`",
    "find": "`spm search`",
    "prune": "`spm gc`",
    "clean": "`spm gc`",
    "autoremove": "`spm gc`",
    "undo": "`spm rollback`",
    "check": "`spm verify`, or `spm doctor`",
    "new": "`spm init`",
    "build": "`spm pack`",
    "freeze": "`spm lock`",
    "exec": "`spm run`",
    "help": "`spm --help`",
    "version": "`spm --version`",
}
"""What people of other tools type, by the word: npm, cargo, pip, apt and their like have these."""

# 128 and the signal's number, SIGINT and SIGPIPE, as shells have it.
INTERRUPTED, NO_READER = 130, 141


def run(arguments: list[str], commands: dict[str, str]) -> int:
    """Run one command line and return its exit code."""
    session = Session(is_json="--json" in arguments, environment=dict(os.environ))
    try:
        options = _parse(arguments, commands)
        session.root_named, session.is_json, session.is_explained = options.root, options.json, options.explain
        code = int(options.call(options, session) or 0)
        # A reader that is gone is found out here, not when Python ends.
        sys.stdout.flush()
        return code
    except SpmError as refusal:
        return report(refusal, session)
    except KeyboardInterrupt:
        print("\ninterrupted; what is installed is whole, and `spm list` shows it", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO_READER
    except OSError as error:
        return report(_of_system(error), session)


def _of_system(error: OSError) -> SpmError:
    """Return the refusal for what the operating system says of the user's own files; the store has its own words."""
    message = f"`{error.filename}` cannot be used: {error.strerror}" if error.filename is not None else str(error)
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO}:
        return LimitReached(message, reason="limit:io")
    return UsageError(message)


def report(refusal: SpmError, session: Session) -> int:
    """Print a refusal: JSON to stdout where it was asked for, words to stderr always."""
    if session.is_json:
        print(json.dumps(session.partial | refusal.to_dict()))
    warn(f"error[{refusal.reason}]: {refusal.message}")
    if session.is_explained:
        for line in proof_lines(refusal.context.get("derivation", [])):
            warn(line)
    if refusal.hint:
        warn(f"  hint: {refusal.hint}")
    return refusal.exit_code


def _parse(arguments: list[str], commands: dict[str, str]) -> argparse.Namespace:
    chosen = _command_in(arguments)
    if chosen is not None and chosen not in commands:
        raise UsageError(f"`{chosen}` is not a command of spm", hint=_meant(chosen, commands))
    return _parser(chosen, commands).parse_line(arguments)


def _meant(word: str, commands: dict[str, str]) -> str:
    """Return the hint to a word that is no command: what other tools call so, else the nearest there is."""
    meant = ELSEWHERE.get(word) or (f"`spm {near}`" if (near := nearest(word, commands)) else None)
    return f"did you mean {meant}?" if meant else "`spm --help` lists the commands"


def _command_in(arguments: list[str]) -> str | None:
    """Return the first word that is neither an option nor the folder after `--root`."""
    words = iter(arguments)
    for word in words:
        if word == "--root":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _parser(chosen: str | None, commands: dict[str, str]) -> Parser:
    parser = Parser(
        prog="spm",
        description="Install, verify and run signed compute plugins. Nothing lesser than what was asked for is taken "
        "silently.",
        epilog="Exit codes: 2 usage, 3 undecided, 10 resolution, 11 waste trap, 12 target, 20 signature, 21 key, "
        "22 revoked, 23 freshness, 24 history, 25 content, 26 configuration, 30 refused by the registry, "
        "31 registry unreachable, 40 to 43 runtime.",
    )
    parser.add_argument(
        "--version", "-V", action="version", version=f"spm {__version__}", help="show the version and exit"
    )
    add_common(parser, default=None)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    # The parsers of the other commands are not needed, and would cost a third of the start-up.
    for name, summary in commands.items() if chosen is None else [(chosen, commands[chosen])]:
        subparser = subparsers.add_parser(name, help=summary)
        if name == chosen:
            module = importlib.import_module(f"spm_client.cli.{name}_command")
            subparser.description = summary[0].upper() + summary[1:] + "."
            add_common(subparser, default=argparse.SUPPRESS)
            module.configure(subparser)
            subparser.set_defaults(call=module.run)
    return parser


def add_common(parser: argparse.ArgumentParser, *, default: object) -> None:
    is_top = default is None
    parser.add_argument(
        "--root", metavar="DIR", default=default, help="the store (default: $SPM_ROOT, else the user's)"
    )
    parser.add_argument(
        "--json", action="store_true", default=False if is_top else default, help="print JSON to stdout, refusals too"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        default=False if is_top else default,
        help="where there is no resolution, show the proof step by step",
    )


def add_actions(parser: argparse.ArgumentParser) -> Any:
    """Return where a command's actions are added; the command without one prints its help and is refused."""
    parser.set_defaults(action=_without_action(parser))
    return parser.add_subparsers(metavar=ACTION)


def add_action(actions: Any, name: str, summary: str, call: Callable[..., None]) -> argparse.ArgumentParser:
    """Add one of a command's actions, which `call` carries out."""
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    add_common(parser, default=argparse.SUPPRESS)
    parser.set_defaults(action=call)
    return parser


def _without_action(parser: argparse.ArgumentParser) -> Callable[..., None]:
    def refuse(_options: argparse.Namespace, _session: Session) -> None:
        raise action_missing(parser)

    return refuse


def action_missing(parser: argparse.ArgumentParser) -> UsageError:
    """Print a command's help, and return its refusal."""
    parser.print_help(sys.stderr)
    return UsageError(f"`{parser.prog}` needs one of its actions")

"""The arguments of `spm-registry`, and its help. Runs no command."""

import argparse
from pathlib import Path
from typing import Any, NoReturn

from manifests.errors import UsageError
from registry import __version__

DEFAULT_BIND = "127.0.0.1:8080"
Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse names its own return type so


class Parser(argparse.ArgumentParser):
    """argparse, with its complaints as refusals and its help in sentences."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, add_help=False, **options)
        self.add_argument("-h", "--help", action="help", help="Show this help and exit.")

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise UsageError(message, hint=f"`{self.prog} --help` shows how it is used")


def parser() -> Parser:
    """Return the parser of the whole command line; `module` is where a command's body is."""
    whole = Parser(prog="spm-registry", description="Run a private registry of seedance plugins.")
    version = f"spm-registry {__version__}"
    whole.add_argument("-V", "--version", action="version", version=version, help="Show the version and exit.")
    commands = whole.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_init, _add_serve, _add_key, _add_token, _add_loader_conf, _add_backup):
        add(commands)
    return whole


def _add_init(commands: "Commands[Parser]") -> None:
    command = _command(commands, "init", "Make a registry; print its admin token and its loader.conf.")
    command.add_argument("--id", help="The registry's id, inside every signed manifest (default: team.local).")
    command.add_argument("--url", help="Where clients reach it (default: http://127.0.0.1:8080).")


def _add_serve(commands: "Commands[Parser]") -> None:
    command = _command(commands, "serve", "Serve a registry until SIGTERM or SIGINT.")
    command.add_argument("--bind", default=DEFAULT_BIND, metavar="HOST:PORT", help=f"Default: {DEFAULT_BIND}.")
    command.add_argument("--workers", type=_at_least_one, default=1, metavar="N", help="Processes (default: 1).")
    command.add_argument("--log-requests", action="store_true", help="Log every request to standard error.")


def _add_key(commands: "Commands[Parser]") -> None:
    kinds = _group(commands, "key", "Say whose signatures this registry and its clients accept.")
    add = _command(kinds, "add", "Pin a public key in loader.conf.", "key_add")
    add.add_argument("file", type=Path, metavar="FILE.pub", help="Written by `spm keys new`.")
    add.add_argument("--names", nargs="+", default=[], metavar="PATTERN", help="Plugins that an ext key may sign.")
    _command(kinds, "list", "List the pinned keys.", "key_list")
    remove = _command(kinds, "remove", "Take a key out of loader.conf.", "key_remove")
    remove.add_argument("keyid", metavar="KEYID", help="As `spm-registry key list` shows it.")


def _add_token(commands: "Commands[Parser]") -> None:
    kinds = _group(commands, "token", "Make, list and revoke tokens.")
    new = _command(kinds, "new", "Make a token; it is shown once.", "token_new")
    new.add_argument(
        "--label", required=True, help="The person or machine; a name belongs to the label that published."
    )
    new.add_argument("--role", required=True, choices=("reader", "publisher", "admin"), help="What it may do.")
    new.add_argument("--names", nargs="+", default=[], metavar="PATTERN", help="Plugins that it may publish.")
    new.add_argument("--days", type=int, default=90, metavar="N", help="How long it lives (default: 90).")
    _command(kinds, "list", "List all tokens, never their text.", "token_list")
    revoke = _command(kinds, "revoke", "End a token's life now.", "token_revoke")
    revoke.add_argument("id", metavar="ID", help="As `spm-registry token list` shows it.")


def _add_loader_conf(commands: "Commands[Parser]") -> None:
    command = _command(commands, "loader-conf", "Print the loader.conf to hand to clients.")
    help_ = "Write it there instead, so that clients accept its mode."
    command.add_argument("--output", type=Path, metavar="FILE", help=help_)


def _add_backup(commands: "Commands[Parser]") -> None:
    command = _command(commands, "backup", "Make a whole second copy of a registry, also while it serves.")
    command.add_argument("directory", type=Path, metavar="DIR", help="A folder that is empty or does not exist yet.")


def _group(commands: "Commands[Parser]", name: str, description: str) -> "Commands[Parser]":
    group = commands.add_parser(name, help=description, description=description)
    return group.add_subparsers(required=True, metavar="COMMAND")


def _command(commands: "Commands[Parser]", name: str, description: str, module: str = "") -> Parser:
    command = commands.add_parser(name, help=description, description=description)
    command.add_argument("--root", required=True, type=Path, metavar="DIR", help="The registry's folder.")
    command.add_argument("--json", action="store_true", help="Print one JSON object to standard output, refusals too.")
    command.set_defaults(module=f"registry.commands.{module or name.replace('-', '_')}")
    return command


def _at_least_one(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a number from 1 on")
    return int(text)

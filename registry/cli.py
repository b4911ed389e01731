"""The `spm-registry` command: its arguments, and errors as people or programs read them. Does none of the work."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

from manifests.errors import SpmError, UsageError

DEFAULT_BIND = "127.0.0.1:8080"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    # The bodies are imported only now, so that `--help` needs neither flask nor sqlalchemy.
    body = cast(Callable[[argparse.Namespace], int], import_module(options.module).run)
    try:
        return body(options)
    except SpmError as error:
        return _refuse(error, as_json=options.json)
    except OSError as error:
        return _refuse(_unusable(error), as_json=options.json)
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="spm-registry", description="Run a private registry of seedance plugins.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_init, _add_serve, _add_key, _add_token, _add_loader_conf):
        add(commands)
    return parser


Commands = argparse._SubParsersAction  # noqa: SLF001 - argparse names its own return type so


def _add_init(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = _command(commands, "init", "make a registry, print its admin token and its loader.conf")
    command.add_argument("--id", help="the registry's id, inside every signed manifest (default: team.local)")
    command.add_argument("--url", help="where clients reach it (default: http://127.0.0.1:8080)")
    command.set_defaults(module="registry.commands.init")


def _add_serve(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = _command(commands, "serve", "serve a registry until SIGTERM or SIGINT")
    command.add_argument("--bind", default=DEFAULT_BIND, metavar="HOST:PORT", help=f"(default: {DEFAULT_BIND})")
    command.add_argument("--workers", type=_at_least_one, default=1, metavar="N", help="processes (default: 1)")
    command.set_defaults(module="registry.commands.serve")


def _add_key(commands: "Commands[argparse.ArgumentParser]") -> None:
    key = commands.add_parser("key", help="say whose signatures this registry and its clients accept")
    command = _command(key.add_subparsers(required=True, metavar="COMMAND"), "add", "pin a public key in loader.conf")
    command.add_argument("file", type=Path, metavar="FILE.pub", help="written by `spm keys new`")
    command.add_argument("--names", nargs="+", default=[], metavar="PATTERN", help="plugins an ext key may sign")
    command.set_defaults(module="registry.commands.key_add")


def _add_token(commands: "Commands[argparse.ArgumentParser]") -> None:
    token = commands.add_parser("token", help="make, list and revoke tokens")
    kinds = token.add_subparsers(required=True, metavar="COMMAND")
    new = _command(kinds, "new", "make a token; it is shown once")
    new.add_argument("--label", required=True, help="the person or machine; names belong to the label that published")
    new.add_argument("--role", required=True, choices=("reader", "publisher", "admin"))
    new.add_argument("--names", nargs="+", default=[], metavar="PATTERN", help="plugins it may publish")
    new.add_argument("--days", type=int, default=90, metavar="N", help="how long it lives (default: 90)")
    new.set_defaults(module="registry.commands.token_new")
    listing = _command(kinds, "list", "list all tokens, never their text")
    listing.set_defaults(module="registry.commands.token_list")
    revoke = _command(kinds, "revoke", "end a token's life now")
    revoke.add_argument("id", help="as `spm-registry token list` shows it")
    revoke.set_defaults(module="registry.commands.token_revoke")


def _add_loader_conf(commands: "Commands[argparse.ArgumentParser]") -> None:
    command = _command(commands, "loader-conf", "print the loader.conf to hand to clients")
    command.set_defaults(module="registry.commands.loader_conf")


def _command(commands: "Commands[argparse.ArgumentParser]", name: str, description: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=description, description=description)
    command.add_argument("--root", required=True, type=Path, metavar="DIR", help="the registry's folder")
    command.add_argument("--json", action="store_true", help="print one JSON object to stdout")
    return command


def _at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _unusable(error: OSError) -> SpmError:
    where = f"{error.filename}: " if error.filename else ""
    return UsageError(f"{where}{error.strerror or error}", hint="check the path and who may use it")


def _refuse(error: SpmError, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(error.to_dict(), ensure_ascii=False, default=str))
    print(f"error[{error.reason}]: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {error.hint}", file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())

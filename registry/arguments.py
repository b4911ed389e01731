"""The arguments of `spm-registry`, and its help. Runs no command."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from manifests import fields
from manifests.errors import SpmError, UsageError
from registry import __version__

DEFAULT_BIND = "127.0.0.1:8080"
_KEY_HELP = "Its id, of which the first 8 digits may do, or its `.pub` file."
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_KEYID = re.compile(r"[0-9a-f]{8,64}")
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
    for add in (_add_init, _add_root, _add_keyring, _add_serve, _add_key, _add_token, _add_loader_conf, _add_backup):
        add(commands)
    _command(commands, "upgrade", "Bring a registry of an older spm-registry to this one's schema; stop it before.")
    return whole


def _add_init(commands: "Commands[Parser]") -> None:
    command = _command(commands, "init", "Make a registry; print its admin token and its loader.conf.")
    command.add_argument("--id", help="The registry's id, inside every signed manifest (default: team.local).")
    command.add_argument("--url", help="Where clients reach it (default: http://127.0.0.1:8080).")


def _add_root(commands: "Commands[Parser]") -> None:
    kinds = _group(commands, "root", "Make and change the root of trust, which offline keys sign.")
    init = _edit(kinds, "init", "Draft the first root.", "root_init")
    init.add_argument("files", nargs="+", type=Path, metavar="PUB", help="Made by `spm keys new --role root`.")
    help_ = "How many of these keys must sign (default: 1)."
    init.add_argument("--threshold", type=_at_least_one, default=1, metavar="N", help=help_)
    help_ = "Over how many files the index is spread, for ever (default: 64)."
    init.add_argument("--bins", type=_at_least_one, metavar="N", help=help_)
    add = _edit(kinds, "add-key", "Let one more key sign the root.", "root_add_key")
    add.add_argument("file", type=Path, metavar="PUB", help="Made by `spm keys new --role root`.")
    remove = _edit(kinds, "remove-key", "Take a key out of the root.", "root_remove_key")
    remove.add_argument("keyid", type=_key, metavar="KEYID", help=_KEY_HELP)
    rotate = _edit(kinds, "rotate", "Sign the root anew: for another year, threshold or online key.", "root_rotate")
    rotate.add_argument(
        "--threshold", type=_at_least_one, metavar="N", help="How many root keys must sign from now on."
    )
    rotate.add_argument("--online", action="store_true", help="Replace the key that signs while the registry runs.")
    _add_signing(kinds)
    _command(kinds, "discard", "Drop the draft; what is adopted stays.", "root_discard")


def _add_signing(kinds: "Commands[Parser]") -> None:
    sign = _command(kinds, "sign", "Sign the draft, and adopt it once enough keys have.", "root_sign", is_rooted=False)
    sign.add_argument(
        "keys", nargs="*", type=Path, metavar="KEY", help="Private key files; none to adopt what is signed."
    )
    help_ = "A copy of the draft's folder: to sign without a registry, or with `--root` to take its signatures from."
    _add_places(sign, help_)
    help_ = "Sign only what follows the adopted root with this SHA-256, as `root show` and loader.conf have it."
    sign.add_argument("--root-sha256", type=_digest, metavar="HEX", help=help_)
    _add_passphrase(sign)
    show = _command(kinds, "show", "Show the root, and what a draft lacks.", "root_show", is_rooted=False)
    _add_places(show.add_mutually_exclusive_group(required=True), "A copy of the draft's folder, without a registry.")


def _add_keyring(commands: "Commands[Parser]") -> None:
    kinds = _group(commands, "keyring", "Say by root keys whose plugins clients load; they fetch it by themselves.")
    _command(kinds, "show", "Show the keys and the revocations.", "keyring_show")
    add = _edit(kinds, "add", "Let clients load what a key signs.", "keyring_add")
    add.add_argument("file", type=Path, metavar="PUB", help="Written by `spm keys new`.")
    add.add_argument("--names", nargs="+", default=[], metavar="PATTERN", help="Plugins that an ext key may sign.")
    help_ = "When it ends: a moment such as 2027-01-31T12:00:00Z, or a date for its last second."
    add.add_argument("--expires", type=_end, metavar="MOMENT", help=help_)
    remove = _edit(kinds, "remove", "Take a key out of the keyring.", "keyring_remove")
    remove.add_argument("keyid", type=_key, metavar="KEYID", help=_KEY_HELP)
    revoke = _edit(kinds, "revoke", "Revoke a key, wherever it is pinned.", "keyring_revoke")
    revoke.add_argument("keyid", type=_key, metavar="KEYID", help=_KEY_HELP)
    help_ = "A retired key keeps what it signed before; a compromised one keeps nothing."
    revoke.add_argument("--reason", required=True, choices=("retired", "compromised"), help=help_)
    help_ = "When it was retired: a moment, or a date for its start (default: now)."
    revoke.add_argument("--since", type=_start, metavar="MOMENT", help=help_)
    revoke.add_argument("--unknown", action="store_true", help="Also a key that this registry has never met.")
    manifest = _edit(kinds, "revoke-manifest", "Take back one signed variant.", "keyring_revoke_manifest")
    manifest.add_argument("sha256", type=_digest, metavar="SHA256", help="The digest of its manifest.")
    manifest.add_argument("--unknown", action="store_true", help="Also one that was not published here.")
    threshold = _edit(kinds, "threshold", "Say how many core keys must sign a core plugin.", "keyring_threshold")
    threshold.add_argument("number", type=_at_least_one, metavar="N", help="From 1 to the number of core keys.")


def _edit(commands: "Commands[Parser]", name: str, description: str, module: str) -> Parser:
    command = _command(commands, name, description, module)
    help_ = "Sign at once with this private root key; may be given again."
    command.add_argument("--sign", action="append", default=[], type=Path, metavar="KEY", help=help_)
    _add_passphrase(command)
    return command


def _add_passphrase(command: Parser) -> None:
    help_ = "Read passphrases from file descriptor N, a line for each encrypted key (default: ask)."
    command.add_argument("--passphrase-fd", type=int, metavar="N", help=help_)


def _add_places(command: "argparse._ActionsContainer", draft_help: str) -> None:
    command.add_argument("--root", type=Path, metavar="DIR", help="The registry's folder.")
    command.add_argument("--draft", type=Path, metavar="DIR", help=draft_help)


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


def _command(
    commands: "Commands[Parser]", name: str, description: str, module: str = "", *, is_rooted: bool = True
) -> Parser:
    command = commands.add_parser(name, help=description, description=description)
    if is_rooted:
        command.add_argument("--root", required=True, type=Path, metavar="DIR", help="The registry's folder.")
    command.add_argument("--json", action="store_true", help="Print one JSON object to standard output, refusals too.")
    command.set_defaults(module=f"registry.commands.{module or name.replace('-', '_')}")
    return command


def _at_least_one(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a number from 1 on")
    return int(text)


def _start(text: str) -> str:
    return _read(fields.moment, f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text)


def _end(text: str) -> str:
    return _read(fields.moment, f"{text}T23:59:59Z" if _DATE.fullmatch(text) else text)


def _key(text: str) -> str:
    if not text.endswith(".pub") and not _KEYID.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r:.80} is neither a key id, whole or from 8 of its digits on, nor a `.pub` file"
        )
    return text


def _digest(text: str) -> str:
    return _read(fields.sha256, text)


def _read(read: Callable[[str], str], text: str) -> str:
    try:
        return read(text)
    except SpmError as error:
        raise argparse.ArgumentTypeError(error.message) from error

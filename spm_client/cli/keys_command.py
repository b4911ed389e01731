"""`spm keys`."""

import argparse
from collections.abc import Callable
from typing import Any

from keys.key_files import KeyRole, PublicKeyFile, list_keys, load_public, new_key
from keys.keyring import loader_block
from spm_client.adapters.config import keys_folder
from spm_client.cli import passphrase
from spm_client.cli.command import add_common
from spm_client.cli.session import Session
from spm_client.render import table


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    new = _action(actions, "new", "make a key pair", _new)
    new.add_argument("--role", required=True, choices=["core", "ext"], help="the class of plugins that it signs")
    new.add_argument("--name", metavar="NAME", help="the name of its files (default: the role)")
    new.add_argument("--publisher", metavar="NAME", help="whose key it is (default: its name)")
    new.add_argument("--no-passphrase", action="store_true", help="leave the private key unencrypted")
    passphrase.add_option(new)
    _action(actions, "list", "show the keys in the folder", _list)
    show = _action(actions, "show", "show one public key, and the lines of loader.conf that trust it", _show)
    show.add_argument("name", metavar="NAME", help="a key in the folder")
    show.add_argument("--names", metavar="PATTERN", nargs="+", help="plugins that an ext key may sign (default: all)")


def _action(actions: Any, name: str, summary: str, call: Callable[..., None]) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."
    )
    parser.add_argument("--keys", metavar="DIR", help="where keys lie (default: the user's configuration folder)")
    add_common(parser, default=argparse.SUPPRESS)
    parser.set_defaults(action=call)
    return parser


def run(options: argparse.Namespace, session: Session) -> int:
    options.action(options, session)
    return 0


def _new(options: argparse.Namespace, session: Session) -> None:
    folder = keys_folder(options.keys, session.environment)
    name = options.name or options.role
    secret = None
    if not options.no_passphrase:
        secret = passphrase.read(options.passphrase_fd, f"Passphrase for the new key `{name}`: ", is_new=True)
    public = new_key(folder, name, KeyRole(options.role), options.publisher or name, secret)
    files = {"private_key": str(folder / f"{name}.key"), "public_key_file": str(folder / f"{name}.pub")}
    session.emit(_as_dict(public) | files)
    if not session.is_json:
        print(f"made the {public.role.value} key `{name}` of `{public.publisher}` in {folder}")
        print(f"  keyid   {public.keyid}")
        print(f"  private {name}.key (keep it), public {name}.pub (hand it to the registry's administrator)")


def _list(options: argparse.Namespace, session: Session) -> None:
    keys = list_keys(keys_folder(options.keys, session.environment))
    session.emit({"keys": [_as_dict(public) for public in keys]})
    if not session.is_json:
        rows = [(public.name, public.role.value, public.publisher, public.keyid) for public in keys]
        print(
            table(("NAME", "ROLE", "PUBLISHER", "KEYID"), rows)
            if rows
            else "there are no keys yet: `spm keys new` makes one"
        )


def _show(options: argparse.Namespace, session: Session) -> None:
    public = load_public(keys_folder(options.keys, session.environment) / f"{options.name}.pub")
    names = options.names or (["*"] if public.role is KeyRole.EXT else [])
    block = loader_block(public, tuple(names))
    session.emit({**_as_dict(public), "loader_conf": block})
    if not session.is_json:
        print(public.public_key_pem.decode())
        print(block)


def _as_dict(public: PublicKeyFile) -> dict[str, Any]:
    return {
        "name": public.name,
        "role": public.role.value,
        "publisher": public.publisher,
        "keyid": public.keyid,
        "public_key": public.public_key_pem.decode(),
    }

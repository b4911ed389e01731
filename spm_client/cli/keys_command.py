"""`spm keys`."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from keys.key_files import (
    KeyRole,
    PublicKeyFile,
    is_encrypted,
    list_keys,
    load_public,
    new_key,
    read_public_pem,
    to_jwk,
    write_public,
)
from keys.keyring import loader_block
from keys.public_key import keyid_of_pem
from manifests.errors import ConfigPermissions, UsageError
from spm_client.adapters.config import keys_folder
from spm_client.cli import passphrase
from spm_client.cli.command import add_actions, add_common
from spm_client.cli.session import Session
from spm_client.render import table


def configure(parser: argparse.ArgumentParser) -> None:
    actions = add_actions(parser)
    new = _action(actions, "new", "make a key pair", _new)
    new.add_argument(
        "--role",
        required=True,
        choices=["core", "ext", "root"],
        help="the class of plugins that it signs; `root`: a registry's root of trust",
    )
    new.add_argument("--name", metavar="NAME", help="the name of its files (default: the role)")
    new.add_argument("--publisher", metavar="NAME", help="whose key it is (default: its name)")
    new.add_argument("--no-passphrase", action="store_true", help="leave the private key unencrypted")
    passphrase.add_option(new)
    _action(actions, "list", "show the keys in the folder", _list)
    show = _action(actions, "show", "show one public key, and the lines of loader.conf that trust it", _show)
    show.add_argument("name", metavar="NAME", help="a key in the folder")
    show.add_argument("--names", metavar="PATTERN", nargs="+", help="plugins that an ext key may sign (default: all)")
    export = _action(actions, "export", "write one public key as other tools read it", _export)
    export.add_argument("name", metavar="NAME", help="a key in the folder")
    export.add_argument("--format", choices=["pem", "jwk"], default="pem", help="how it is written (default: pem)")
    export.add_argument("--output", "-o", metavar="FILE", help="write it to a new file (default: standard output)")
    fingerprint = _action(
        actions, "fingerprint", "print the id of one public key, to compare with its owner", _fingerprint
    )
    fingerprint.add_argument(
        "key", metavar="NAME|FILE", help="a key in the folder, else a .pub file or a public key in PEM"
    )


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
    folder = keys_folder(options.keys, session.environment)
    keys = [(public, _private(folder / f"{public.name}.key")) for public in list_keys(folder)]
    session.emit({"keys": [_as_dict(public) | {"private": private} for public, private in keys]})
    if not session.is_json:
        rows = [(public.name, public.role.value, public.publisher, private, public.keyid) for public, private in keys]
        print(
            table(("NAME", "ROLE", "PUBLISHER", "PRIVATE KEY", "KEYID"), rows)
            if rows
            else "there are no keys yet: `spm keys new` makes one"
        )


def _private(path: Path) -> str:
    """Tell how the private half lies there; what is wrong with it is for whoever uses it to refuse."""
    if not path.exists():
        return "absent"
    try:
        return "encrypted" if is_encrypted(path) else "unencrypted"
    except ConfigPermissions:
        return "open to others"
    except UsageError:
        return "unreadable"


def _show(options: argparse.Namespace, session: Session) -> None:
    public = load_public(keys_folder(options.keys, session.environment) / f"{options.name}.pub")
    names = options.names or (["*"] if public.role is KeyRole.EXT else [])
    block = None if public.role is KeyRole.ROOT and not names else loader_block(public, tuple(names))
    session.emit({**_as_dict(public), "loader_conf": block})
    if not session.is_json:
        print(public.public_key_pem.decode())
        print(block or f"a root key signs no plugins: give it to `spm-registry root init {public.name}.pub`")


def _export(options: argparse.Namespace, session: Session) -> None:
    public = load_public(keys_folder(options.keys, session.environment) / f"{options.name}.pub")
    text = public.public_key_pem.decode() if options.format == "pem" else _jwk(public)
    if options.output:
        write_public(Path(options.output), text.encode())
    session.emit({**_as_dict(public), "format": options.format, "text": text, "output": options.output})
    if not session.is_json:
        print(f"wrote the public key `{public.name}` to {options.output}" if options.output else text.rstrip("\n"))


def _jwk(public: PublicKeyFile) -> str:
    return json.dumps({**to_jwk(public.public_key_pem), "kid": public.keyid}, sort_keys=True) + "\n"


def _fingerprint(options: argparse.Namespace, session: Session) -> None:
    path = _found(options.key, keys_folder(options.keys, session.environment))
    keyid = keyid_of_pem(read_public_pem(path))
    session.emit({"keyid": keyid, "path": str(path)})
    if not session.is_json:
        print(keyid)


def _found(key: str, folder: Path) -> Path:
    named = folder / f"{key}.pub"
    if "/" not in key and named.exists():
        return named
    if not Path(key).exists():
        raise UsageError(
            f"there is no key `{key}` in {folder}, and no file of that name",
            hint="`spm keys list` shows the keys there",
        )
    return Path(key)


def _as_dict(public: PublicKeyFile) -> dict[str, Any]:
    return {
        "name": public.name,
        "role": public.role.value,
        "publisher": public.publisher,
        "keyid": public.keyid,
        "public_key": public.public_key_pem.decode(),
    }

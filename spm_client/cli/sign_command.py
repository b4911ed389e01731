"""`spm sign`."""

import argparse
from pathlib import Path

from keys.key_files import is_encrypted, load_private, load_public
from spm_client.adapters.config import keys_folder
from spm_client.cli import passphrase
from spm_client.cli.session import Session
from spm_client.workflows.packed import PackedFolder
from spm_client.workflows.sign import sign


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("packed", nargs="+", metavar="PACKED", help="folders that `spm pack` made")
    parser.add_argument("--key", required=True, metavar="NAME", help="the key to sign with")
    parser.add_argument("--keys", metavar="DIR", help="where keys lie (default: the user's configuration folder)")
    passphrase.add_option(parser)


def run(options: argparse.Namespace, session: Session) -> int:
    folder = keys_folder(options.keys, session.environment)
    public = load_public(folder / f"{options.key}.pub")
    private_path = folder / f"{options.key}.key"
    secret = None
    if is_encrypted(private_path):
        secret = passphrase.read(options.passphrase_fd, f"Passphrase for the key `{options.key}`: ")
    private = load_private(private_path, secret)
    signed = [sign(PackedFolder.read(Path(packed)), public, private) for packed in options.packed]
    session.emit({"keyid": public.keyid, "role": public.role.value, "signatures": [str(path) for path in signed]})
    if not session.is_json:
        for path in signed:
            print(f"signed {path.parent.name} as {public.role.value} with {public.keyid[:16]}…: {path}")
    return 0

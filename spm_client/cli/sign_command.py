"""`spm sign`."""

import argparse
from pathlib import Path

from keys.key_files import PublicKeyFile, is_encrypted, list_keys, load_private, load_public
from manifests.errors import UsageError
from spm_client.adapters.config import keys_folder
from spm_client.cli import passphrase
from spm_client.cli.session import Session
from spm_client.workflows.packed import PackedFolder
from spm_client.workflows.sign import may_sign, sign


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("packed", nargs="+", metavar="PACKED", help="folders that `spm pack` made")
    parser.add_argument("--key", metavar="NAME", help="the key to sign with (default: the only one that fits)")
    parser.add_argument("--keys", metavar="DIR", help="where keys lie (default: the user's configuration folder)")
    passphrase.add_option(parser)


def run(options: argparse.Namespace, session: Session) -> int:
    packed = [PackedFolder.read(Path(folder)) for folder in options.packed]
    folder = keys_folder(options.keys, session.environment)
    public = load_public(folder / f"{options.key}.pub") if options.key else _only_key(folder, packed)
    private_path = folder / f"{public.name}.key"
    secret = None
    if is_encrypted(private_path):
        secret = passphrase.read(options.passphrase_fd, f"Passphrase for the key `{public.name}`: ")
    private = load_private(private_path, secret)
    signed = [sign(one, public, private) for one in packed]
    session.emit({"keyid": public.keyid, "role": public.role.value, "signatures": [str(path) for path in signed]})
    if not session.is_json:
        for path in signed:
            print(f"signed {path.parent.name} as {public.role.value} with `{public.name}` {public.keyid[:16]}…: {path}")
    return 0


def _only_key(folder: Path, packed: list[PackedFolder]) -> PublicKeyFile:
    """Return the one key that may sign all these manifests.

    Raises: UsageError when there is none, or a choice.
    """
    fitting = [key for key in list_keys(folder) if all(may_sign(key, one.manifest) for one in packed)]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        wanted = " and ".join(sorted({f"the {one.manifest.type.value} plugin `{one.manifest.name}`" for one in packed}))
        raise UsageError(
            f"none of your keys may sign {wanted}", hint="make one with `spm keys new`, or name it with `--key`"
        )
    names = ", ".join(f"`{key.name}`" for key in fitting)
    raise UsageError(f"the key must be named: {names} would all do", hint="add `--key NAME`")

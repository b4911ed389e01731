"""The key a store signs its receipts with: made when first needed, never replaced. Signs nothing itself."""

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from keys.key_files import load_private
from keys.public_key import MAX_PEM_BYTES, pem_of
from manifests.errors import ConfigSyntax, SpmError, UsageError
from runtime.generation import read_bounded
from spm_client.store.layout import Layout, sync_folder, write_file, write_scratch

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


def host_key(layout: Layout, scratch: "Path") -> "EllipticCurvePrivateKey":
    """Return the store's host key; where it has none yet, make one. Its public half lies beside it, for all to read.

    Raises: ConfigPermissions when others may use the key; ConfigSyntax when one half is lost, damaged or not the
    other's.
    """
    if not os.path.lexists(layout.host_key):
        _make(layout, scratch)
    private_key = _read(layout)
    public_pem = pem_of(private_key.public_key())
    if not os.path.lexists(layout.host_public_key):
        write_file(layout.host_public_key, public_pem, scratch=scratch)
    elif _public_pem(layout) != public_pem:
        raise _unfit(layout, f"{layout.host_public_key} is not the public half of {layout.host_key}")
    return private_key


def _make(layout: Layout, scratch: "Path") -> None:
    if os.path.lexists(layout.host_public_key):
        raise _unfit(layout, f"{layout.host_public_key} is there, but {layout.host_key} is not")
    made = write_scratch(_new_pem(), scratch=scratch, mode=0o600)
    with suppress(FileExistsError):  # another command has just made it
        os.link(made, layout.host_key)
    made.unlink()
    sync_folder(layout.root)


def _new_pem() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _read(layout: Layout) -> "EllipticCurvePrivateKey":
    try:
        return load_private(layout.host_key, None)
    except UsageError as error:
        raise _unfit(layout, error.message) from error


def _public_pem(layout: Layout) -> bytes:
    try:
        return read_bounded(layout.host_public_key, MAX_PEM_BYTES)
    except SpmError as error:
        raise _unfit(layout, error.message) from error


def _unfit(layout: Layout, why: str) -> ConfigSyntax:
    return ConfigSyntax(
        f"the host key of the store `{layout.root}` cannot be used: {why}",
        hint=f"restore it, or remove `{layout.host_key}` and `{layout.host_public_key}` and run `spm verify`: it makes "
        "a new one and renews every receipt",
        path=str(layout.host_key),
    )

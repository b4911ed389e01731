"""The registry's online key, which signs bins, snapshot and timestamp. Its file is private; signs nothing here.

`online.key` holds one private key in PEM, or two while a root that names another is on its way: the newest stands last.
Which of them signs is what the adopted root says, so that a crash before its adoption changes nothing.
"""

import re
from typing import TYPE_CHECKING

from keys.public_key import keyid_of
from manifests.errors import AlgorithmRefused, ConfigError
from registry.storage.site import Site, write_private_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from securesystemslib.signer import CryptoSigner, SSlibKey

_PEM = re.compile(rb"-----BEGIN PRIVATE KEY-----\n.+?\n-----END PRIVATE KEY-----\n", re.DOTALL)


def new_online_pem() -> bytes:
    """Make a P-256 key; return it as the file keeps it."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private_key = ec.generate_private_key(ec.SECP256R1())
    return private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def newest_online_key(site: Site) -> "SSlibKey":
    """Return the public key that the next root is to name.

    Raises:
        ConfigError: the file holds none.
    """
    signers = _signers(site)
    if not signers:
        raise ConfigError(f"{site.online_key} holds no private key", hint="put it back from a backup")
    return signers[-1].public_key


def add_online_key(site: Site, in_use: str) -> "SSlibKey":
    """Make another key and put it last; return its public half. The one in use stays unless it is lost, others go."""
    kept = [signer.private_bytes for signer in _signers(site) if signer.public_key.keyid == in_use]
    write_private_file(site.online_key, b"".join((*kept, new_online_pem())))
    return newest_online_key(site)


def drop_earlier_online_keys(site: Site, in_use: str) -> bool:
    """Remove the keys before the one in use, which no later root will name; tell whether there were any."""
    signers = _signers(site)
    place = next((place for place, signer in enumerate(signers) if signer.public_key.keyid == in_use), 0)
    if place:
        write_private_file(site.online_key, b"".join(signer.private_bytes for signer in signers[place:]))
    return place > 0


def tidy_online_keys(site: Site) -> None:
    """Remove the keys that an adoption was to remove, if it was cut short."""
    if len(_PEM.findall(site.online_key.read_bytes())) < 2:
        return
    from registry.services.signed_index import online_keyid

    with site.database.writing() as records:
        # So that no other command adds a key meanwhile.
        records.await_turn()
        drop_earlier_online_keys(site, online_keyid(records))


def signer_with(site: Site, keyid: str) -> "CryptoSigner":
    """Return the signer with this key id.

    Raises:
        ConfigError: the file does not hold it.
    """
    for signer in _signers(site):
        if signer.public_key.keyid == keyid:
            return signer
    raise ConfigError(
        f"{site.online_key} does not hold the online key {keyid} that the adopted root names",
        hint="put it back from a backup; where it is lost, name a new one with `spm-registry root rotate --online`",
    )


def _signers(site: Site) -> "tuple[CryptoSigner, ...]":
    from securesystemslib.signer import CryptoSigner, SSlibKey

    signers = []
    for pem in _PEM.findall(site.online_key.read_bytes()):
        private_key = _private_key(site, pem)
        public_key = private_key.public_key()
        signers.append(CryptoSigner(private_key, SSlibKey.from_crypto(public_key, keyid=keyid_of(public_key))))
    return tuple(signers)


def _private_key(site: Site, pem: bytes) -> "EllipticCurvePrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private_key = load_pem_private_key(pem, None)
    except ValueError as error:
        raise ConfigError(
            f"{site.online_key} holds a private key that cannot be read", hint="put it back from a backup"
        ) from error
    if not isinstance(private_key, EllipticCurvePrivateKey) or not isinstance(private_key.curve, SECP256R1):
        raise AlgorithmRefused(f"{site.online_key} holds a key that is not P-256, the only kind that spm signs with")
    return private_key

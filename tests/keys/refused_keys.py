"""Public keys in PEM that no document may pin, each with the reason. Knows no document."""

import base64
import hashlib

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from keys.public_key import pem_of_spki, spki_of_pem
from tests.keys.builders import CORE, pem, private

_PEM, _SPKI = Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
_SHAPE, _OFF = "its DER is not that of an uncompressed P-256 point", "its point is not on the curve"


def _off_the_curve() -> bytes:
    der = bytearray(spki_of_pem(pem(CORE)))
    der[-1] ^= 1
    return pem_of_spki(bytes(der))


def _beyond_the_field() -> bytes:
    """Return a key whose x is no element of the field, so that a reader who reduces it would see another point."""
    der = spki_of_pem(pem(CORE))
    return pem_of_spki(der[:27] + b"\xff" * 32 + der[59:])


def _compressed() -> bytes:
    point = private(CORE).public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    return pem_of_spki(bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + point)


REFUSED_KEYS: dict[str, tuple[bytes, str]] = {
    "P-384": (ec.derive_private_key(5, ec.SECP384R1()).public_key().public_bytes(_PEM, _SPKI), _SHAPE),
    "secp256k1": (ec.derive_private_key(5, ec.SECP256K1()).public_key().public_bytes(_PEM, _SPKI), _SHAPE),
    "RSA": (rsa.generate_private_key(65537, 2048).public_key().public_bytes(_PEM, _SPKI), _SHAPE),
    "compressed": (_compressed(), _SHAPE),
    "off the curve": (_off_the_curve(), _OFF),
    "beyond the field": (_beyond_the_field(), _OFF),
}
HINT = "write the key with `openssl pkey -pubin -in KEY -pubout -outform PEM -ec_conv_form uncompressed`"


def problem(name: str) -> str:
    """Return what a document's reader says of the key."""
    return f"the public key is not an EC P-256 key in PEM: {REFUSED_KEYS[name][1]} ({HINT})"


def digest(name: str) -> str:
    """Return what would be the key's id, if it were a key that has one."""
    body = b"".join(REFUSED_KEYS[name][0].splitlines()[1:-1])
    return hashlib.sha256(base64.b64decode(body)).hexdigest()

"""P-256 public keys: their one PEM form, key ids and roles. Says nothing of who is trusted.

A key is known by its material: the SubjectPublicKeyInfo of an uncompressed P-256 point has one DER spelling of
91 bytes. That form, and that its point is on the curve, is checked here without `cryptography`, whose import start-up
would feel.
"""

import base64
import binascii
import enum
import hashlib
import re
from typing import TYPE_CHECKING, NewType

from manifests.errors import AlgorithmRefused

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

KeyId = NewType("KeyId", str)

MAX_PEM_BYTES = 1024
KEYID_PATTERN = re.compile(r"[0-9a-f]{64}")

_BEGIN, _END = b"-----BEGIN PUBLIC KEY-----\n", b"-----END PUBLIC KEY-----"
_SPKI_PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
_POINT_BYTES = 64
# SEC 2, 2.4.2: y^2 = x^3 - 3x + b over the field of p.
_P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
_HINT = "write the key with `openssl pkey -pubin -in KEY -pubout -outform PEM -ec_conv_form uncompressed`"


class KeyRole(enum.Enum):
    """The one thing that a key may sign: plugins of a class, or the root of a registry's trust."""

    CORE = "core"
    EXT = "ext"
    ROOT = "root"


def spki_of_pem(public_key_pem: bytes) -> bytes:
    """Return the SubjectPublicKeyInfo DER in the PEM text of a P-256 key.

    Raises: AlgorithmRefused for any other kind of key, and for any other spelling of this one.
    """
    if len(public_key_pem) > MAX_PEM_BYTES:
        raise _not_p256(f"it has {len(public_key_pem)} bytes, more than the {MAX_PEM_BYTES} allowed")
    der = _decoded_body(public_key_pem.strip())
    if not der.startswith(_SPKI_PREFIX) or len(der) != len(_SPKI_PREFIX) + _POINT_BYTES:
        raise _not_p256("its DER is not that of an uncompressed P-256 point")
    if not _is_on_curve(der[len(_SPKI_PREFIX) :]):
        raise _not_p256("its point is not on the curve")
    if pem_of_spki(der).strip() != public_key_pem.strip():
        raise _not_p256("it is not in the usual PEM form of 64 columns")
    return der


def pem_of_spki(der: bytes) -> bytes:
    """Return the one PEM form of a SubjectPublicKeyInfo."""
    body = base64.b64encode(der)
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    return _BEGIN + b"\n".join(lines) + b"\n" + _END + b"\n"


def keyid_of_pem(public_key_pem: bytes) -> KeyId:
    """Return the key id of a key in PEM: the hex SHA-256 of its SubjectPublicKeyInfo DER."""
    return KeyId(hashlib.sha256(spki_of_pem(public_key_pem)).hexdigest())


def keyid_of(public_key: "EllipticCurvePublicKey") -> KeyId:
    """Return the key id of a loaded key: the hex SHA-256 of its SubjectPublicKeyInfo DER."""
    return KeyId(hashlib.sha256(spki_of_pem(pem_of(public_key))).hexdigest())


def pem_of(public_key: "EllipticCurvePublicKey") -> bytes:
    """Return a loaded key in PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return public_key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def to_jwk(public_key_pem: bytes) -> dict[str, str]:
    """Return a key in PEM as the public JWK that JOSE tools read."""
    point = spki_of_pem(public_key_pem)[len(_SPKI_PREFIX) :]
    x, y = (base64.urlsafe_b64encode(half).rstrip(b"=").decode() for half in (point[:32], point[32:]))
    return {"alg": "ES256", "crv": "P-256", "kty": "EC", "use": "sig", "x": x, "y": y}


def load_public_key(public_key_pem: bytes) -> "EllipticCurvePublicKey":
    """Return the key ready to verify with.

    Raises: AlgorithmRefused unless it is a P-256 key in its usual PEM form, with its point on the curve.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    point = spki_of_pem(public_key_pem)[len(_SPKI_PREFIX) - 1 :]
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)


def _is_on_curve(point: bytes) -> bool:
    x, y = int.from_bytes(point[:32], "big"), int.from_bytes(point[32:], "big")
    return x < _P and y < _P and (y * y - (x * x * x - 3 * x + _B)) % _P == 0


def _decoded_body(pem: bytes) -> bytes:
    if not (pem.startswith(_BEGIN) and pem.endswith(_END)):
        raise _not_p256("it is not one PEM block of the type PUBLIC KEY")
    try:
        return base64.b64decode(pem[len(_BEGIN) : -len(_END)].replace(b"\n", b""), validate=True)
    except binascii.Error as error:
        raise _not_p256("its body is not base64") from error


def _not_p256(why: str) -> AlgorithmRefused:
    return AlgorithmRefused(f"the public key is not an EC P-256 key in PEM: {why}", hint=_HINT)

"""Core signatures: ASN.1 DER ECDSA P-256/SHA-256 over the DSSE encoding of a manifest. Knows no keyring."""

from typing import TYPE_CHECKING

from keys.public_key import load_public_key
from manifests.errors import AlgorithmRefused, SignatureInvalid, SignatureMalformed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

PAYLOAD_TYPE = b"application/vnd.spm.manifest.core+json;v=1"
MAX_SIGNATURE_BYTES = 72

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def pae(manifest_bytes: bytes) -> bytes:
    """Return the bytes a core key signs: DSSE pre-authentication encoding, so that no other document fits them."""
    return b"DSSEv1 %d %b %d %b" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE, len(manifest_bytes), manifest_bytes)


def sign(private_key: "EllipticCurvePrivateKey", manifest_bytes: bytes) -> bytes:
    """Return the low-S DER signature of a core manifest."""
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    return encode_dss_signature(*sign_low_s(private_key, pae(manifest_bytes)))


def verify(public_key_pem: bytes, manifest_bytes: bytes, signature: bytes) -> None:
    """Accept a core signature over these manifest bytes, or raise as `verify_raw` does."""
    verify_raw(public_key_pem, pae(manifest_bytes), signature)


def verify_raw(public_key_pem: bytes, message: bytes, signature: bytes) -> None:
    """Accept a DER ECDSA P-256/SHA-256 signature over exactly these bytes.

    Raises: AlgorithmRefused unless the key is a P-256 key; SignatureMalformed unless the signature is strict DER;
    SignatureInvalid when it is not this key's over this message.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA256

    _require_bytes(public_key_pem=public_key_pem, message=message, signature=signature)
    public_key = load_public_key(public_key_pem)
    _refuse_malformed(signature)
    try:
        public_key.verify(signature, message, ECDSA(SHA256()))
    except InvalidSignature as error:
        raise SignatureInvalid(
            f"the signature does not fit these {len(message)} bytes and this key: "
            "the bytes were changed after signing, or another key signed them"
        ) from error


def require_low_s(signature: bytes) -> None:
    """Accept the one spelling of a DER signature that spm writes: n - s would verify as well.

    Raises: SignatureMalformed.
    """
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    _, s = decode_dss_signature(signature)
    refuse_high_s(s)


def refuse_high_s(s: int) -> None:
    """Refuse an s above half of the curve's order.

    Raises: SignatureMalformed.
    """
    if s > P256_ORDER // 2:
        raise SignatureMalformed(
            "the signature has an s above half of the curve's order, and a publish takes the low spelling alone",
            hint="sign it again with `spm sign`",
        )


def _require_bytes(**given: object) -> None:
    for name, value in given.items():
        if not isinstance(value, bytes):
            raise SignatureMalformed(f"{name} is of the type {type(value).__name__}, not bytes")


def sign_low_s(private_key: "EllipticCurvePrivateKey", message: bytes) -> tuple[int, int]:
    """Return r and the smaller of s and n - s, so that one signing gives one accepted spelling.

    Raises: AlgorithmRefused unless the key is a P-256 key.
    """
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    if not isinstance(private_key.curve, SECP256R1):
        raise AlgorithmRefused(
            f"the private key is on the curve {private_key.curve.name}, but spm signs with P-256 only"
        )
    r, s = decode_dss_signature(private_key.sign(message, ECDSA(SHA256())))
    return r, min(s, P256_ORDER - s)


def _refuse_malformed(signature: bytes) -> None:
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

    # The library refuses BER slack by itself; writing the numbers again makes that our own rule too.
    try:
        is_strict = encode_dss_signature(*decode_dss_signature(signature)) == signature
    except ValueError:
        is_strict = False
    if not is_strict or len(signature) > MAX_SIGNATURE_BYTES:
        raise SignatureMalformed(
            f"the signature of {len(signature)} bytes is not a strict DER ECDSA P-256 signature "
            f"of {MAX_SIGNATURE_BYTES} bytes at most"
        )

"""Public keys: one PEM form, the key id, the JWK."""

import hashlib
import json
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwcrypto.jwk import JWK

from keys.public_key import keyid_of, keyid_of_pem, load_public_key, pem_of_spki, spki_of_pem, to_jwk
from manifests.errors import AlgorithmRefused
from tests.keys.builders import CORE, pem, private

HINT = "write the key with `openssl pkey -pubin -in KEY -pubout -outform PEM -ec_conv_form uncompressed`"
PREFIX = "the public key is not an EC P-256 key in PEM: "


OTHER_KEYS: dict[str, PublicKeyTypes] = {
    "p384": ec.derive_private_key(5, ec.SECP384R1()).public_key(),
    "secp256k1": ec.derive_private_key(5, ec.SECP256K1()).public_key(),
    "rsa": rsa.generate_private_key(65537, 1024).public_key(),
    "ed25519": ed25519.Ed25519PrivateKey.generate().public_key(),
}


def test_key_id_is_the_digest_of_the_der_that_the_library_writes() -> None:
    public = private(CORE).public_key()
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

    assert keyid_of(public) == keyid_of_pem(pem(CORE)) == hashlib.sha256(der).hexdigest()
    assert spki_of_pem(pem(CORE)) == der
    assert pem_of_spki(der) == pem(CORE)


def test_loaded_key_is_the_key_in_the_pem() -> None:
    assert load_public_key(pem(CORE)).public_numbers() == private(CORE).public_key().public_numbers()


def test_jwk_is_read_by_jwcrypto_as_the_same_key() -> None:
    jwk = JWK(**to_jwk(pem(CORE)))

    assert jwk.export_to_pem() == pem(CORE)
    assert json.loads(jwk.export_public()) == to_jwk(pem(CORE))


def test_surrounding_white_space_is_no_part_of_the_key() -> None:
    assert keyid_of_pem(b"\n " + pem(CORE) + b"\n\n") == keyid_of_pem(pem(CORE))


@pytest.mark.parametrize("kind", OTHER_KEYS)
def test_another_kind_of_key_is_refused(kind: str) -> None:
    other = OTHER_KEYS[kind].public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    with pytest.raises(AlgorithmRefused) as caught:
        spki_of_pem(other)

    assert caught.value.message == PREFIX + "its DER is not that of an uncompressed P-256 point"
    assert caught.value.hint == HINT


def test_compressed_point_is_refused() -> None:
    point = private(CORE).public_key().public_bytes(Encoding.X962, PublicFormat.CompressedPoint)
    der = bytes.fromhex("3039301306072a8648ce3d020106082a8648ce3d030107032200") + point

    with pytest.raises(AlgorithmRefused) as caught:
        spki_of_pem(pem_of_spki(der))

    assert caught.value.message == PREFIX + "its DER is not that of an uncompressed P-256 point"


def test_point_off_the_curve_is_refused() -> None:
    der = bytearray(spki_of_pem(pem(CORE)))
    der[-1] ^= 1

    with pytest.raises(AlgorithmRefused) as caught:
        load_public_key(pem_of_spki(bytes(der)))

    assert caught.value.message == PREFIX + "its point is not on the curve"


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (b"", "it is not one PEM block of the type PUBLIC KEY"),
        (b"-----BEGIN PUBLIC KEY-----", "it is not one PEM block of the type PUBLIC KEY"),
        (pem(CORE).replace(b"PUBLIC", b"PRIVATE"), "it is not one PEM block of the type PUBLIC KEY"),
        (pem(CORE) + pem(CORE), "its body is not base64"),
        (pem(CORE).replace(b"MFkw", b"MF*w"), "its body is not base64"),
        (pem(CORE).replace(b"\n", b"\r\n"), "it is not one PEM block of the type PUBLIC KEY"),
        (pem(CORE).replace(b"\nMFkw", b"\nMF\nkw"), "it is not in the usual PEM form of 64 columns"),
        (pem(CORE) * 9, "it has 1602 bytes, more than the 1024 allowed"),
    ],
)
def test_another_spelling_of_the_key_is_refused(broken: bytes, why: str) -> None:
    with pytest.raises(AlgorithmRefused) as caught:
        spki_of_pem(broken)

    assert caught.value.message == PREFIX + why


@pytest.mark.parametrize("module", ["keys.keyring", "keys.verified", "keys.key_files", "keys.ext_signature"])
def test_importing_the_room_loads_no_cryptography(module: str) -> None:
    probe = (
        f"import sys, {module}; print([name for name in sys.modules if name in ('jwcrypto', 'cryptography', 'torch')])"
    )

    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)

    assert result.stdout == "[]\n"

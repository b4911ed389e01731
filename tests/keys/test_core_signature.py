"""Core signatures: DER ECDSA P-256 over the DSSE encoding."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from hypothesis import given
from hypothesis import strategies as st

from keys.core_signature import P256_ORDER, pae, sign, verify, verify_raw
from manifests.errors import AlgorithmRefused, SignatureInvalid, SignatureMalformed, SpmError
from tests.keys.builders import CORE, CORE_TWO, UNHURRIED, manifest, pem, private

DATA = manifest().to_bytes()
SIGNATURE = sign(private(CORE), DATA)


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def test_signed_bytes_are_the_dsse_encoding() -> None:
    assert pae(b'{"a":1}') == b'DSSEv1 42 application/vnd.spm.manifest.core+json;v=1 7 {"a":1}'


def test_own_signature_is_accepted() -> None:
    verify(pem(CORE), DATA, SIGNATURE)
    verify_raw(pem(CORE), pae(DATA), SIGNATURE)


@pytest.mark.property
@UNHURRIED
@given(data=st.binary(max_size=200))
def test_signer_emits_low_s_and_the_verifier_accepts_it(data: bytes) -> None:
    signature = sign(private(CORE), data)

    assert decode_dss_signature(signature)[1] <= P256_ORDER // 2
    verify(pem(CORE), data, signature)


def test_other_half_of_s_is_still_valid_when_verified() -> None:
    r, s = decode_dss_signature(SIGNATURE)

    verify(pem(CORE), DATA, encode_dss_signature(r, P256_ORDER - s))


def test_signature_over_the_bare_manifest_is_no_core_signature() -> None:
    bare = private(CORE).sign(DATA, ec.ECDSA(SHA256()))

    verify_raw(pem(CORE), DATA, bare)
    with pytest.raises(SignatureInvalid):
        verify(pem(CORE), DATA, bare)


@pytest.mark.property
@UNHURRIED
@given(bit=st.integers(0, len(DATA) * 8 - 1))
def test_any_flipped_bit_of_the_manifest_is_refused(bit: int) -> None:
    with pytest.raises(SignatureInvalid):
        verify(pem(CORE), flipped(DATA, bit), SIGNATURE)


def test_any_flipped_bit_of_the_signature_is_refused() -> None:
    for bit in range(len(SIGNATURE) * 8):
        with pytest.raises((SignatureInvalid, SignatureMalformed)):
            verify(pem(CORE), DATA, flipped(SIGNATURE, bit))


@pytest.mark.property
@UNHURRIED
@given(signature=st.binary(max_size=100))
def test_bytes_that_are_no_der_are_malformed(signature: bytes) -> None:
    with pytest.raises(SpmError) as caught:
        verify(pem(CORE), DATA, signature)

    assert caught.value.exit_code == 20


def test_another_key_is_refused_with_a_message_that_says_both_causes() -> None:
    with pytest.raises(SignatureInvalid) as caught:
        verify_raw(pem(CORE_TWO), b"abc", SIGNATURE)

    assert caught.value.message == (
        "the signature does not fit these 3 bytes and this key: "
        "the bytes were changed after signing, or another key signed them"
    )
    assert (caught.value.exit_code, caught.value.reason) == (20, "sig-invalid")


@pytest.mark.parametrize(
    "signature",
    [
        b"",
        SIGNATURE[:-1],
        SIGNATURE + b"\0",
        SIGNATURE.hex().encode(),
        b"\x30\x81" + SIGNATURE[1:],
        encode_dss_signature(1 << 300, 1 << 300),
    ],
    ids=["empty", "truncated", "trailing byte", "hex", "BER length", "longer than 72 bytes"],
)
def test_anything_but_strict_der_is_malformed(signature: bytes) -> None:
    with pytest.raises(SignatureMalformed) as caught:
        verify(pem(CORE), DATA, signature)

    assert caught.value.message == (
        f"the signature of {len(signature)} bytes is not a strict DER ECDSA P-256 signature of 72 bytes at most"
    )
    assert (caught.value.exit_code, caught.value.reason) == (20, "sig-malformed")


def test_key_on_another_curve_neither_signs_nor_verifies() -> None:
    private_key = ec.derive_private_key(7, ec.SECP384R1())

    with pytest.raises(AlgorithmRefused) as caught:
        sign(private_key, DATA)

    assert caught.value.message == "the private key is on the curve secp384r1, but spm signs with P-256 only"

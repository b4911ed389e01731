"""Ext signatures: the strict front end, the pinned key, the signature."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.core_signature import P256_ORDER, sign_low_s
from keys.ext_signature import MAX_TOKEN_BYTES, read_header, sign, verify_compact, verify_manifest_token
from keys.public_key import KeyId, to_jwk
from manifests.errors import (
    AlgorithmRefused,
    HeaderRefused,
    KeyUnknown,
    SignatureInvalid,
    SignatureMalformed,
    SpmError,
)
from tests.keys.builders import CORE, EXT, STRANGER, UNHURRIED, keyid, manifest, pem, private, refusal_of

DATA = manifest().to_bytes()
TOKEN = sign(private(EXT), keyid(EXT), DATA)
JWK = to_jwk(pem(EXT))
HEADER = {"alg": "ES256", "kid": str(keyid(EXT)), "typ": "spm-ext-manifest+jws"}


def encode(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def token(header: bytes | dict[str, Any], payload: bytes = DATA) -> bytes:
    """Return a token whose signature is right, so that only its header can be the reason to refuse it."""
    header = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    signed = encode(header) + b"." + encode(payload)
    r, s = sign_low_s(private(EXT), signed)
    return signed + b"." + encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


def parts(data: bytes = TOKEN) -> list[bytes]:
    return data.split(b".")


def token_with_signature(signature: bytes) -> bytes:
    header, payload, _ = parts()
    return b".".join([header, payload, encode(signature)])


def test_own_token_carries_the_manifest_and_names_its_key() -> None:
    assert verify_manifest_token(TOKEN, pem(EXT)) == DATA
    assert verify_compact(TOKEN, JWK) == DATA
    assert read_header(TOKEN) == keyid(EXT)


def test_header_is_the_documented_bytes() -> None:
    header = base64.urlsafe_b64decode(parts()[0] + b"==")

    assert header == b'{"alg":"ES256","kid":"%b","typ":"spm-ext-manifest+jws"}' % keyid(EXT).encode()


def test_signer_emits_low_s() -> None:
    signature = base64.urlsafe_b64decode(parts()[2] + b"==")

    assert int.from_bytes(signature[32:], "big") <= P256_ORDER // 2


def test_signer_refuses_the_id_of_another_key() -> None:
    with pytest.raises(KeyUnknown) as caught:
        sign(private(EXT), keyid(CORE), DATA)

    assert caught.value.message == f"the private key has the id {keyid(EXT)}, not '{keyid(CORE)}'"


@pytest.mark.property
@UNHURRIED
@given(payload=st.binary(max_size=300))
def test_any_payload_makes_the_round_trip(payload: bytes) -> None:
    assert verify_manifest_token(sign(private(EXT), keyid(EXT), payload), pem(EXT)) == payload


@pytest.mark.property
@UNHURRIED
@given(bit=st.integers(0, len(TOKEN) * 8 - 1))
def test_any_flipped_bit_of_the_token_is_refused(bit: int) -> None:
    changed = bytearray(TOKEN)
    changed[bit // 8] ^= 1 << (bit % 8)

    with pytest.raises(SpmError) as caught:
        verify_manifest_token(bytes(changed), pem(EXT))

    assert caught.value.exit_code in {20, 21}


@pytest.mark.property
@UNHURRIED
@given(bit=st.integers(0, 64 * 8 - 1))
def test_any_flipped_bit_of_the_signature_is_invalid(bit: int) -> None:
    header, payload, signature = parts()
    raw = bytearray(base64.urlsafe_b64decode(signature + b"=="))
    raw[bit // 8] ^= 1 << (bit % 8)

    with pytest.raises(SignatureInvalid):
        verify_compact(b".".join([header, payload, encode(bytes(raw))]), JWK)


@pytest.mark.property
@UNHURRIED
@given(
    place=st.integers(0, len(TOKEN)),
    length=st.integers(0, 8),
    inserted=st.one_of(st.binary(max_size=8), st.text(alphabet="ABab01-_.=+/ {}\n", max_size=8).map(str.encode)),
)
def test_any_edit_of_the_token_ends_in_a_refusal_and_no_other_error(place: int, length: int, inserted: bytes) -> None:
    changed = TOKEN[:place] + inserted + TOKEN[place + length :]

    refusal = refusal_of(lambda: verify_compact(changed, JWK))

    assert (refusal is None) is (changed == TOKEN)
    assert refusal is None or refusal.exit_code == 20


TEXT = 'ABab01 "\\\n\0é\u2028\ud800'
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=TEXT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet=TEXT, max_size=5), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.property
@UNHURRIED
@given(header=st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk"]), JSON | st.just("ES256")))
def test_only_well_formed_es256_headers_pass(header: dict[str, Any]) -> None:
    well_formed = (
        header.get("alg") == "ES256"
        and set(header) <= {"alg", "kid", "typ"}
        and all(isinstance(value, str) for value in header.values())
        and len(json.dumps(header, separators=(",", ":"))) <= 512
    )

    refusal = refusal_of(lambda: verify_compact(token(header), JWK))

    assert (refusal is None) is well_formed
    assert refusal is None or refusal.exit_code == 20


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (b"", "the token has 1 segments, a JWS Compact token has exactly 3"),
        (b"a.b", "the token has 2 segments, a JWS Compact token has exactly 3"),
        (TOKEN + b".", "the token has more than 3 segments, a JWS Compact token has exactly 3"),
        (TOKEN + b"=", "the token's signature is not canonical base64url"),
        (TOKEN + b"\n", "the token's signature is not canonical base64url"),
        (b" " + TOKEN, "the token's header is not canonical base64url"),
        (TOKEN.replace(b".", b".\xff", 1), "the token's payload is not canonical base64url"),
        (TOKEN[:-1] + b"_", "the token's signature is not canonical base64url"),
        (token_with_signature(b"\0" * 63), "the token's signature has 84 characters, an ES256 signature has 86"),
        (TOKEN + b"AAAA", "the token's signature has 90 characters, an ES256 signature has 86"),
        (b"a" * (MAX_TOKEN_BYTES + 1), "the token has 1398885 bytes, more than the 1398884 allowed"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value,
)
def test_misshapen_token_is_malformed(changed: bytes, message: str) -> None:
    with pytest.raises(SignatureMalformed) as caught:
        verify_compact(changed, JWK)

    assert (caught.value.message, caught.value.reason) == (message, "sig-malformed")


@pytest.mark.parametrize(
    "alg", ["none", "None", "HS256", "RS256", "ES256K", "ES384", "EdDSA", "es256", None, 7, ["ES256"]]
)
def test_any_other_algorithm_is_refused_before_the_signature_is_looked_at(alg: object) -> None:
    unsigned = encode(json.dumps({"alg": alg}).encode()) + b"." + encode(DATA) + b"."

    with pytest.raises(AlgorithmRefused) as caught:
        verify_compact(unsigned, JWK)

    assert caught.value.message == f"the token's algorithm is {alg!r}, only ES256 is accepted"


def test_header_without_an_algorithm_is_refused() -> None:
    with pytest.raises(AlgorithmRefused) as caught:
        verify_compact(token(b"{}"), JWK)

    assert caught.value.message == "the token's algorithm is None, only ES256 is accepted"


@pytest.mark.parametrize("member", ["jwk", "jku", "x5c", "x5u", "x5t", "crit", "b64", "zip", "cty", "ALG"])
@pytest.mark.parametrize("value", ["", [], False, {}])
def test_member_outside_the_closed_set_is_refused_whatever_it_says(member: str, value: object) -> None:
    with pytest.raises(HeaderRefused) as caught:
        verify_compact(token({"alg": "ES256", member: value}), JWK)

    assert caught.value.message == f"the token's header has the member '{member}', only alg, kid and typ are accepted"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b'{"alg":"none","alg":"ES256"}', "the token's header has the member 'alg' twice"),
        (b'{"alg":"ES256","\\u0061lg":"ES256"}', "the token's header has the member 'alg' twice"),
        (b'{"alg":"ES256","kid":{"a":1,"a":2}}', "the token's header has the member 'a' twice"),
        (b'{"alg":"ES256","kid":1.5}', "the token's header has the number '1.5', its members must be text"),
        (b'{"alg":"ES256","kid":NaN}', "the token's header has the number 'NaN', its members must be text"),
        (b'{"alg":"ES256","kid":-Infinity}', "the token's header has the number '-Infinity', its members must be text"),
        (b'{"alg":"ES256","kid":3}', "the token's header has 3 as `kid`, it must be text"),
        (b'{"alg":"ES256","typ":null}', "the token's header has None as `typ`, it must be text"),
        (b'\xef\xbb\xbf{"alg":"ES256"}', "the token's header is not UTF-8 JSON"),
        ('{"alg":"ES256"}'.encode("utf-16"), "the token's header is not UTF-8 JSON"),
        (b'{"alg":"ES256","kid":"\xff"}', "the token's header is not UTF-8 JSON"),
        (b'{"alg":"ES256"} {}', "the token's header is not UTF-8 JSON"),
        (b"[" * 512, "the token's header is not UTF-8 JSON"),
        (b'["ES256"]', "the token's header is not a JSON object"),
        (b'"ES256"', "the token's header is not a JSON object"),
        (b'{"alg":"ES256","kid":"' + b"a" * 500 + b'"}', "the token's header has 524 bytes, more than the 512 allowed"),
    ],
)
def test_ill_formed_header_is_refused(header: bytes, message: str) -> None:
    with pytest.raises(HeaderRefused) as caught:
        verify_compact(token(header), JWK)

    assert (caught.value.message, caught.value.reason) == (message, "header-refused")


def test_message_shows_what_a_hostile_header_says_without_its_control_characters() -> None:
    with pytest.raises(HeaderRefused) as caught:
        verify_compact(token({"alg": "ES256", "\x1b[2J\u202e\ud800" + "x" * 200: ""}), JWK)

    assert caught.value.message == (
        "the token's header has the member '\\x1b[2J\\u202e\\ud800"
        + "x" * 60
        + "..., only alg, kid and typ are accepted"
    )
    json.dumps(caught.value.to_dict()).encode()


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"alg": "ES256"}, "the token's `kid` is None, it must be a key id of 64 hexadecimal digits"),
        (HEADER | {"kid": "../a"}, "the token's `kid` is '../a', it must be a key id of 64 hexadecimal digits"),
        (HEADER | {"typ": "JWT"}, "the token's `typ` is 'JWT', it must be 'spm-ext-manifest+jws'"),
        (dict(reversed(HEADER.items())), "the token's header is not in RFC 8785 canonical form"),
        (json.dumps(HEADER).encode(), "the token's header is not in RFC 8785 canonical form"),
    ],
)
def test_manifest_token_has_exactly_the_header_that_spm_writes(header: bytes | dict[str, str], message: str) -> None:
    changed = token(header)

    assert verify_compact(changed, JWK) == DATA
    for refused in (lambda: verify_manifest_token(changed, pem(EXT)), lambda: read_header(changed)):
        with pytest.raises(HeaderRefused) as caught:
            refused()
        assert caught.value.message == message


def test_upper_case_key_id_is_refused() -> None:
    with pytest.raises(HeaderRefused):
        read_header(token(HEADER | {"kid": keyid(EXT).upper()}))


def test_token_of_another_key_is_not_verified_with_the_pinned_one() -> None:
    with pytest.raises(KeyUnknown) as caught:
        verify_manifest_token(TOKEN, pem(STRANGER))

    assert caught.value.message == (
        f"the token is signed by the key {keyid(EXT)}, not by the pinned key {keyid(STRANGER)}"
    )


def test_signature_by_another_key_under_the_pinned_name_is_invalid() -> None:
    header, payload, _ = parts()
    r, s = sign_low_s(private(STRANGER), header + b"." + payload)
    forged = b".".join([header, payload, encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))])

    with pytest.raises(SignatureInvalid) as caught:
        verify_manifest_token(forged, pem(EXT))

    assert caught.value.message == (
        "the token's signature does not fit its header and payload and this key: "
        "they were changed after signing, or another key signed them"
    )


@pytest.mark.parametrize("numbers", [(0, 0), (0, 1), (1, 0), (P256_ORDER, P256_ORDER), (P256_ORDER, 1)])
def test_numbers_outside_the_group_are_invalid(numbers: tuple[int, int]) -> None:
    header, payload, _ = parts()
    r, s = numbers

    with pytest.raises(SignatureInvalid):
        verify_compact(b".".join([header, payload, encode(r.to_bytes(32, "big") + s.to_bytes(32, "big"))]), JWK)


def test_private_part_of_the_pinned_key_is_ignored() -> None:
    assert verify_compact(TOKEN, JWK | {"d": "not even base64url"}) == DATA


@pytest.mark.parametrize("operations", [["verify"], ["sign", "verify"]])
def test_pinned_key_that_says_it_may_verify_is_used(operations: list[str]) -> None:
    assert verify_compact(TOKEN, JWK | {"key_ops": operations}) == DATA


OFF_CURVE = "the pinned key is not a P-256 public key: its point is not on the curve"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kty": "oct"}, "the pinned key has the `kty` 'oct', it must be 'EC'"),
        ({"kty": "RSA"}, "the pinned key has the `kty` 'RSA', it must be 'EC'"),
        ({"crv": "P-384"}, "the pinned key has the `crv` 'P-384', it must be 'P-256'"),
        ({"crv": ["P-256"]}, "the pinned key has the `crv` ['P-256'], it must be 'P-256'"),
        ({"alg": "ES384"}, "the pinned key has the `alg` 'ES384', it must be 'ES256'"),
        ({"use": "enc"}, "the pinned key has the `use` 'enc', it must be 'sig'"),
        ({"key_ops": ["sign"]}, "the pinned key has the `key_ops` ['sign'], they must include 'verify'"),
        ({"key_ops": "verify"}, "the pinned key has the `key_ops` 'verify', they must include 'verify'"),
        ({"x": None}, "the pinned key has the `x` None, it must be 32 bytes in base64url"),
        ({"y": "AAAA"}, "the pinned key has the `y` 'AAAA', it must be 32 bytes in base64url"),
        ({"x": JWK["y"]}, OFF_CURVE),
        ({"x": "A" * 43, "y": "A" * 43}, OFF_CURVE),
        ({"x": "_" * 43}, OFF_CURVE),
    ],
)
def test_pinned_key_that_may_not_verify_es256_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(AlgorithmRefused) as caught:
        verify_compact(TOKEN, JWK | change)

    assert (caught.value.message, caught.value.reason) == (message, "alg-refused")


def test_empty_key_is_refused() -> None:
    with pytest.raises(AlgorithmRefused) as caught:
        verify_compact(TOKEN, {})

    assert caught.value.message == "the pinned key has the `kty` None, it must be 'EC'"


def test_token_at_the_size_bound_is_accepted_and_its_payload_is_whole() -> None:
    payload = b"x" * (1 << 20)

    assert verify_manifest_token(sign(private(EXT), KeyId(keyid(EXT)), payload), pem(EXT)) == payload

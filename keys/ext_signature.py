"""Ext signatures: JWS Compact with ES256 and one pinned key. Knows no keyring.

A token passes these steps in order, each a refusal of its own:
1. length, three segments, canonical base64url                          sig-malformed
2. a JSON object of 512 bytes at most, without duplicates or floats     header-refused
3. `alg` is ES256                                                       alg-refused
4. no members but `alg`, `kid` and `typ`, all text                      header-refused
5. a signature of 86 characters                                         sig-malformed
6. for a manifest: exactly the header that spm writes                   header-refused
7. the pinned key is a P-256 key that may verify ES256                  alg-refused
8. the signature                                                        sig-invalid
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from keys.core_signature import refuse_high_s, sign_low_s
from keys.public_key import KEYID_PATTERN, KeyId, keyid_of, keyid_of_pem, to_jwk
from keys.shown import shown
from manifests.errors import AlgorithmRefused, HeaderRefused, KeyUnknown, SignatureInvalid, SignatureMalformed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

TOKEN_TYPE = "spm-ext-manifest+jws"
MAX_HEADER_BYTES = 512
MAX_PAYLOAD_BYTES = 1 << 20
MAX_TOKEN_BYTES = (MAX_HEADER_BYTES + MAX_PAYLOAD_BYTES) * 4 // 3 + 100

_ALGORITHM = "ES256"
_MEMBERS = ("alg", "kid", "typ")
_SIGNATURE_CHARACTERS = 86
_COORDINATE = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    header_bytes: bytes
    header: Mapping[str, str]
    payload: bytes


def sign(private_key: "EllipticCurvePrivateKey", keyid: KeyId, manifest_bytes: bytes) -> bytes:
    """Return the token that carries an ext manifest and its low-S signature.

    Raises: KeyUnknown when `keyid` is not the id of this private key.
    """
    own_keyid = keyid_of(private_key.public_key())
    if keyid != own_keyid:
        raise KeyUnknown(
            f"the private key has the id {own_keyid}, not {shown(keyid)}", keyid=own_keyid, expected=str(keyid)
        )
    signed = _base64url(_header_bytes(keyid)) + b"." + _base64url(manifest_bytes)
    r, s = sign_low_s(private_key, signed)
    return signed + b"." + _base64url(r.to_bytes(32, "big") + s.to_bytes(32, "big"))


def verify_compact(token: bytes, public_jwk: Mapping[str, Any]) -> bytes:
    """Return the payload of an ES256 token signed by the one pinned key. Private members of the key are ignored.

    Raises: SignatureMalformed, HeaderRefused, AlgorithmRefused or SignatureInvalid, in the order of the steps above.
    """
    if not isinstance(token, bytes):
        raise SignatureMalformed(f"the token is of the type {type(token).__name__}, not bytes")
    if not isinstance(public_jwk, Mapping):
        raise AlgorithmRefused(f"the key is of the type {type(public_jwk).__name__}, not a JWK")
    parsed = _parse(token)
    _check_signature(token, public_jwk)
    return parsed.payload


def verify_manifest_token(token: bytes, public_key_pem: bytes) -> bytes:
    """Return the manifest bytes in a token signed by the pinned key, with exactly the header that spm writes.

    Raises: as `verify_compact`; KeyUnknown when the token names another key than the pinned one.
    """
    parsed = _parse(token)
    keyid, pinned = _manifest_keyid(parsed), keyid_of_pem(public_key_pem)
    if keyid != pinned:
        raise KeyUnknown(f"the token is signed by the key {keyid}, not by the pinned key {pinned}", keyid=keyid)
    _check_signature(token, to_jwk(public_key_pem))
    return parsed.payload


def require_low_s(token: bytes) -> None:
    """Accept the one spelling of a verified token's signature that spm writes.

    Raises: SignatureMalformed.
    """
    signature = base64.urlsafe_b64decode(token.rpartition(b".")[2] + b"==")
    refuse_high_s(int.from_bytes(signature[32:], "big"))


def read_header(token: bytes) -> KeyId:
    """Return the id of the key that a manifest token names, unverified, after every check of its shape."""
    return _manifest_keyid(_parse(token))


def _parse(token: bytes) -> _Token:
    if len(token) > MAX_TOKEN_BYTES:
        raise SignatureMalformed(f"the token has {len(token)} bytes, more than the {MAX_TOKEN_BYTES} allowed")
    segments = token.split(b".", 3)
    if len(segments) != 3:
        raise SignatureMalformed(
            f"the token has {'more than 3' if len(segments) > 3 else len(segments)} segments, "
            "a JWS Compact token has exactly 3"
        )
    header_bytes, payload, _ = map(_decoded, ("header", "payload", "signature"), segments)
    header = _read_members(header_bytes)
    if len(segments[2]) != _SIGNATURE_CHARACTERS:
        raise SignatureMalformed(
            f"the token's signature has {len(segments[2])} characters, an ES256 signature has {_SIGNATURE_CHARACTERS}"
        )
    return _Token(header_bytes=header_bytes, header=header, payload=payload)


def _decoded(what: str, segment: bytes) -> bytes:
    try:
        value = base64.b64decode(segment + b"=" * (-len(segment) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        value = None
    # Padding, the other alphabet and spare bits all decode; only the one spelling encodes back to itself.
    if value is None or _base64url(value) != segment:
        raise SignatureMalformed(f"the token's {what} is not canonical base64url")
    return value


def _read_members(data: bytes) -> Mapping[str, str]:
    header = _read_json(data)
    if header.get("alg") != _ALGORITHM:
        raise AlgorithmRefused(
            f"the token's algorithm is {shown(header.get('alg'))}, only {_ALGORITHM} is accepted",
            alg=shown(header.get("alg")),
        )
    unknown = sorted(set(header) - set(_MEMBERS))
    if unknown:
        raise HeaderRefused(
            f"the token's header has the member {shown(unknown[0])}, only alg, kid and typ are accepted",
            member=shown(unknown[0]),
        )
    for name, value in header.items():
        if not isinstance(value, str):
            raise HeaderRefused(f"the token's header has {shown(value)} as `{name}`, it must be text", member=name)
    return header


def _read_json(data: bytes) -> dict[str, Any]:
    if len(data) > MAX_HEADER_BYTES:
        raise HeaderRefused(f"the token's header has {len(data)} bytes, more than the {MAX_HEADER_BYTES} allowed")
    try:
        header = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_members_once,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
        )
    except (ValueError, RecursionError) as error:
        raise HeaderRefused("the token's header is not UTF-8 JSON") from error
    if not isinstance(header, dict):
        raise HeaderRefused("the token's header is not a JSON object")
    return header


def _members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise HeaderRefused(f"the token's header has the member {shown(name)} twice", member=shown(name))
        members[name] = value
    return members


def _refuse_number(text: str) -> NoReturn:
    raise HeaderRefused(f"the token's header has the number {shown(text)}, its members must be text")


def _manifest_keyid(parsed: _Token) -> KeyId:
    keyid = parsed.header.get("kid")
    if keyid is None or not KEYID_PATTERN.fullmatch(keyid):
        raise HeaderRefused(f"the token's `kid` is {shown(keyid)}, it must be a key id of 64 hexadecimal digits")
    if parsed.header.get("typ") != TOKEN_TYPE:
        raise HeaderRefused(f"the token's `typ` is {shown(parsed.header.get('typ'))}, it must be '{TOKEN_TYPE}'")
    if parsed.header_bytes != _header_bytes(KeyId(keyid)):
        raise HeaderRefused("the token's header is not in RFC 8785 canonical form")
    return KeyId(keyid)


def _header_bytes(keyid: KeyId) -> bytes:
    return f'{{"alg":"{_ALGORITHM}","kid":"{keyid}","typ":"{TOKEN_TYPE}"}}'.encode()


def _check_signature(token: bytes, public_jwk: Mapping[str, Any]) -> None:
    from jwcrypto.common import JWException
    from jwcrypto.jwk import JWK
    from jwcrypto.jws import JWS

    point = _public_members(public_jwk)
    try:
        key = JWK(**point)
        key.get_op_key("verify")
    except (JWException, ValueError) as error:
        raise AlgorithmRefused("the pinned key is not a P-256 public key: its point is not on the curve") from error
    jws = JWS()
    jws.allowed_algs = [_ALGORITHM]
    try:
        jws.deserialize(token.decode("ascii"))
        jws.verify(key)
    except JWException as error:
        raise SignatureInvalid(
            "the token's signature does not fit its header and payload and this key: "
            "they were changed after signing, or another key signed them"
        ) from error


def _public_members(public_jwk: Mapping[str, Any]) -> dict[str, str]:
    _require_member(public_jwk, "kty", "EC")
    _require_member(public_jwk, "crv", "P-256")
    for name, needed in (("alg", _ALGORITHM), ("use", "sig")):
        if name in public_jwk:
            _require_member(public_jwk, name, needed)
    operations = public_jwk.get("key_ops", ["verify"])
    if not isinstance(operations, list | tuple) or "verify" not in operations:
        raise AlgorithmRefused(f"the pinned key has the `key_ops` {shown(operations)}, they must include 'verify'")
    return {"kty": "EC", "crv": "P-256", "x": _coordinate(public_jwk, "x"), "y": _coordinate(public_jwk, "y")}


def _require_member(public_jwk: Mapping[str, Any], name: str, needed: str) -> None:
    value = public_jwk.get(name)
    if value != needed:
        raise AlgorithmRefused(f"the pinned key has the `{name}` {shown(value)}, it must be '{needed}'")


def _coordinate(public_jwk: Mapping[str, Any], name: str) -> str:
    value = public_jwk.get(name)
    if not isinstance(value, str) or not _COORDINATE.fullmatch(value):
        raise AlgorithmRefused(f"the pinned key has the `{name}` {shown(value)}, it must be 32 bytes in base64url")
    return value


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")

"""A verifier written from docs/reference/writing-a-verifier.md alone: up to the manifest's form. Imports no spm."""

import base64
import hashlib
import json
import re
from typing import Any, NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

SPKI = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
P = 2**256 - 2**224 + 2**192 + 2**96 - 1
B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
Key = tuple[str, bytes]


class PageRefusal(Exception):
    def __init__(self, step: int, reason: str) -> None:
        super().__init__(step, reason)
        self.step, self.reason = step, reason


def require(fact: object, step: int, reason: str) -> None:
    if not fact:
        raise PageRefusal(step, reason)


def verify_as_documented(vector: dict[str, Any]) -> None:
    asked, data = vector["asked"], base64.b64decode(vector["manifest"])
    signatures = {name: base64.b64decode(text) for name, text in vector["signatures"].items()}
    keys, threshold = read_keyring(vector["keyring"])  # step 0
    require(hashlib.sha256(data).hexdigest() == asked["manifest_sha256"], 1, "digest")
    require(len(data) <= 1 << 20, 1, "too-big")
    kind = class_of(signatures)  # step 2
    if kind == "ext":
        require(payload_of(signatures["manifest.jws"], keys) == data, 3, "sig-invalid")
    else:
        check_core(signatures, data, keys, threshold)
    require_canonical(data)  # step 4, without the members


# Step 0


def read_keyring(keyring: dict[str, Any]) -> tuple[dict[str, Key], int]:
    keys: dict[str, Key] = {}
    for role, entries in (("core", keyring["core"]["keys"]), ("ext", keyring["ext"])):
        for entry in entries:
            check_entry(entry, role)
            require(entry["keyid"] not in keys, 0, "type")
            keys[entry["keyid"]] = (role, point_of(entry))
    threshold, pinned = keyring["core"]["threshold"], len(keyring["core"]["keys"])
    require(type(threshold) is int and 1 <= threshold <= 1024, 0, "type")
    require(threshold <= pinned or not pinned, 0, "type")
    return keys, threshold


def check_entry(entry: dict[str, Any], role: str) -> None:
    needed = {"keyid", "public_key"} | ({"publisher", "names"} if role == "ext" else set())
    known = needed | {"expires"} | ({"capabilities"} if role == "ext" else set())
    require(needed <= set(entry) <= known, 0, "type")
    if role == "ext":
        names = entry["names"]
        require(names and all(re.fullmatch(r"[a-z0-9*?-]{1,64}", name) for name in names), 0, "type")


def point_of(entry: dict[str, Any]) -> bytes:
    pem = entry["public_key"].strip(" \t\r\n\v\f").encode()
    body = b"".join(pem.split(b"\n")[1:-1])
    require(re.fullmatch(rb"[A-Za-z0-9+/]+={0,2}", body) and len(body) % 4 == 0, 0, "type")
    der = base64.b64decode(body)
    lines = [base64.b64encode(der)[start : start + 64] for start in (0, 64)]
    require(pem == b"\n".join([b"-----BEGIN PUBLIC KEY-----", *lines, b"-----END PUBLIC KEY-----"]), 0, "type")
    require(len(der) == 91 and der.startswith(SPKI), 0, "type")
    x, y = int.from_bytes(der[27:59], "big"), int.from_bytes(der[59:], "big")
    require(x < P and y < P and (y * y - x**3 + 3 * x - B) % P == 0, 0, "type")
    require(entry["keyid"] == hashlib.sha256(der).hexdigest(), 0, "type")
    return der[26:]


# Steps 2 and 3


def class_of(signatures: dict[str, bytes]) -> str:
    require(signatures, 2, "unsigned")
    require(len(signatures) <= 64, 2, "sig-malformed")
    named = re.compile(r"manifest\.jws|manifest\.sig\.[0-9a-f]{64}")
    require(all(named.fullmatch(name) for name in signatures), 2, "sig-malformed")
    if "manifest.jws" not in signatures:
        return "core"
    require(len(signatures) == 1, 2, "wrong-class")
    return "ext"


def check_core(signatures: dict[str, bytes], data: bytes, keys: dict[str, Key], threshold: int) -> None:
    keyids = sorted(name.removeprefix("manifest.sig.") for name in signatures)
    pinned = [keyid for keyid in keyids if keyid in keys]
    require(pinned, 3, "key-unknown")
    message = b"DSSEv1 42 application/vnd.spm.manifest.core+json;v=1 %d " % len(data) + data
    for keyid in pinned:
        role, point = keys[keyid]
        require(role == "core", 3, "key-role")
        check_signature(point, message, *numbers_of(signatures["manifest.sig." + keyid]))
    require(len(pinned) >= threshold, 3, "threshold-short")


def numbers_of(der: bytes) -> tuple[int, int]:
    require(8 <= len(der) <= 72 and der[0] == 0x30 and der[1] == len(der) - 2, 3, "sig-malformed")
    r, rest = integer_of(der[2:])
    s, rest = integer_of(rest)
    require(not rest, 3, "sig-malformed")
    return r, s


def integer_of(der: bytes) -> tuple[int, bytes]:
    require(len(der) >= 3 and der[0] == 2 and 1 <= der[1] <= len(der) - 2, 3, "sig-malformed")
    octets = der[2 : 2 + der[1]]
    require(octets[0] < 0x80, 3, "sig-malformed")
    require(octets[0] or len(octets) == 1 or octets[1] >= 0x80, 3, "sig-malformed")
    return int.from_bytes(octets, "big"), der[2 + der[1] :]


def check_signature(point: bytes, message: bytes, r: int, s: int) -> None:
    key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)
    try:
        key.verify(encode_dss_signature(r, s), message, ECDSA(SHA256()))
    except InvalidSignature as error:
        raise PageRefusal(3, "sig-invalid") from error


def payload_of(token: bytes, keys: dict[str, Key]) -> bytes:
    require(len(token) <= 1_398_884 and token.count(b".") == 2, 3, "sig-malformed")
    header, payload, signature = (decoded(segment) for segment in token.split(b"."))
    kid = check_header(header, len(token.rpartition(b".")[2]))
    require(kid in keys, 3, "key-unknown")
    role, point = keys[kid]
    require(role == "ext", 3, "key-role")
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    check_signature(point, token.rpartition(b".")[0], r, s)
    return payload


def decoded(segment: bytes) -> bytes:
    require(re.fullmatch(rb"[A-Za-z0-9_-]*", segment) and len(segment) % 4 != 1, 3, "sig-malformed")
    value = base64.urlsafe_b64decode(segment + b"=" * (-len(segment) % 4))
    require(base64.urlsafe_b64encode(value).rstrip(b"=") == segment, 3, "sig-malformed")
    return value


def check_header(header: bytes, signature_characters: int) -> str:
    require(len(header) <= 512, 3, "header-refused")
    members = read_object(header, 3, "header-refused")
    require(members.get("alg") == "ES256", 3, "alg-refused")
    require(set(members) <= {"alg", "kid", "typ"}, 3, "header-refused")
    require(all(isinstance(value, str) for value in members.values()), 3, "header-refused")
    require(signature_characters == 86, 3, "sig-malformed")
    kid = members.get("kid", "")
    require(re.fullmatch(r"[0-9a-f]{64}", kid), 3, "header-refused")
    written = f'{{"alg":"ES256","kid":"{kid}","typ":"spm-ext-manifest+jws"}}'
    require(header == written.encode(), 3, "header-refused")
    return str(kid)


# Step 4


def require_canonical(data: bytes) -> None:
    manifest = read_object(data, 4, "non-canonical")
    check_values(manifest, 0)
    try:
        is_canonical = written_anew(manifest).encode() == data
    except UnicodeEncodeError:
        is_canonical = False
    require(is_canonical, 4, "non-canonical")


def check_values(value: Any, level: int) -> None:
    require(level <= 32 and (type(value) is not int or abs(value) < 2**53), 4, "non-canonical")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        check_values(one, level + 1)


def written_anew(value: Any) -> str:
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return "{" + ",".join(f"{written_anew(name)}:{written_anew(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written_anew, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def read_object(data: bytes, step: int, reason: str) -> dict[str, Any]:
    def refuse(_: str) -> NoReturn:
        raise PageRefusal(step, reason)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        require(len(dict(pairs)) == len(pairs), step, reason)
        return dict(pairs)

    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=once, parse_float=refuse, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise PageRefusal(step, reason) from error
    require(isinstance(value, dict), step, reason)
    return dict(value)

"""Tokens of every shape in RFC 8725's list and around it, each with the refusal that it has to end in.

Where a shape has a signature, it is right under the algorithm that the header names, so that only the shape is wrong.
"""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hmac import HMAC

from keys.core_signature import P256_ORDER, sign_low_s
from keys.ext_signature import MAX_TOKEN_BYTES, TOKEN_TYPE, sign
from keys.public_key import spki_of_pem, to_jwk
from manifests.errors import AlgorithmRefused, HeaderRefused, SignatureInvalid, SignatureMalformed, SpmError
from tests.keys.builders import EXT, STRANGER, keyid, manifest, pem, private

DATA = manifest().to_bytes()
KEYID = str(keyid(EXT))
HEADER = {"alg": "ES256", "kid": KEYID, "typ": TOKEN_TYPE}
TOKEN = sign(private(EXT), keyid(EXT), DATA)
HEAD, PAYLOAD, SIGNATURE = TOKEN.split(b".")

INVALID = (
    "the token's signature does not fit its header and payload and this key: "
    "they were changed after signing, or another key signed them"
)
NOT_JSON = "the token's header is not UTF-8 JSON"
NOT_CANONICAL = "the token's header is not in RFC 8785 canonical form"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A token and its refusal. `is_manifest_rule` tells that a general ES256 verifier may accept it."""

    name: str
    token: bytes
    kind: type[SpmError]
    message: str
    is_manifest_rule: bool = False


def encode(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def compact(header: object) -> bytes:
    return json.dumps(header, separators=(",", ":")).encode()


def raw(r: int, s: int) -> bytes:
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def signed(header: bytes | dict[str, Any], payload: bytes = DATA, number: int = EXT) -> bytes:
    header = header if isinstance(header, bytes) else compact(header)
    signing = encode(header) + b"." + encode(payload)
    return signing + b"." + encode(raw(*sign_low_s(private(number), signing)))


def with_signature(signature: bytes) -> bytes:
    return HEAD + b"." + PAYLOAD + b"." + encode(signature)


def cases(url: str) -> dict[str, Case]:
    """Return all cases by name; `url` is where headers say that keys can be fetched."""
    made = (*algorithms(), *members(url), *json_texts(), *header_rules(url), *shapes(), *base64_slack(), *signatures())
    found = {case.name: case for case in made}
    assert len(found) == len(made)
    return found


def algorithms() -> Iterator[Case]:
    def refused(name: str, token: bytes, alg: object) -> Case:
        message = f"the token's algorithm is {alg!r}, only ES256 is accepted"
        return Case(name=name, token=token, kind=AlgorithmRefused, message=message)

    for alg in ("none", "None", "NONE", "nOnE"):
        unsigned = encode(compact(HEADER | {"alg": alg})) + b"." + PAYLOAD + b"."
        yield refused(f"alg {alg} unsigned", unsigned, alg)
        yield refused(f"alg {alg} signed", signed(HEADER | {"alg": alg}), alg)
    others: list[object] = ["", "es256", "ES256 ", " ES256", "ES256\0", "SHA256withECDSA", None, True, 256, ["ES256"]]
    for value in others:
        yield refused(f"alg {value!r}", signed(HEADER | {"alg": value}), value)
    yield refused("alg missing", signed({"kid": KEYID, "typ": TOKEN_TYPE}), None)
    for alg, signer in SIGNERS.items():
        signing = encode(compact(HEADER | {"alg": alg})) + b"." + PAYLOAD
        yield refused(f"alg {alg}", signing + b"." + encode(signer(signing)), alg)
    for alg, algorithm in (("HS256", hashes.SHA256()), ("HS384", hashes.SHA384()), ("HS512", hashes.SHA512())):
        for name, secret in SECRETS.items():
            yield refused(f"{alg} keyed by our {name}", keyed(alg, algorithm, secret), alg)


def keyed(alg: str, algorithm: hashes.HashAlgorithm, secret: bytes) -> bytes:
    signing = encode(compact(HEADER | {"alg": alg})) + b"." + PAYLOAD
    mac = HMAC(secret, algorithm)
    mac.update(signing)
    return signing + b"." + encode(mac.finalize())


SPKI = spki_of_pem(pem(EXT))
SECRETS = {
    "PEM": pem(EXT),
    "PEM without its last line feed": pem(EXT).strip(),
    "DER": SPKI,
    "point": SPKI[-65:],
    "JWK": compact(to_jwk(pem(EXT))),
    "shortest JWK": compact({name: to_jwk(pem(EXT))[name] for name in ("crv", "kty", "x", "y")}),
    "key id": KEYID.encode(),
    "nothing": b"",
}


def ecdsa(curve: ec.EllipticCurve, size: int, algorithm: hashes.HashAlgorithm) -> Callable[[bytes], bytes]:
    key = ec.derive_private_key(7, curve)

    def signer(message: bytes) -> bytes:
        r, s = decode_dss_signature(key.sign(message, ec.ECDSA(algorithm)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")

    return signer


RSA = rsa.generate_private_key(65537, 2048)
SIGNERS: dict[str, Callable[[bytes], bytes]] = {
    "ES256K": ecdsa(ec.SECP256K1(), 32, hashes.SHA256()),
    "ES384": ecdsa(ec.SECP384R1(), 48, hashes.SHA384()),
    "ES512": ecdsa(ec.SECP521R1(), 66, hashes.SHA512()),
    "RS256": lambda message: RSA.sign(message, padding.PKCS1v15(), hashes.SHA256()),
    "PS256": lambda message: RSA.sign(message, padding.PSS(padding.MGF1(hashes.SHA256()), 32), hashes.SHA256()),
    "EdDSA": ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32)).sign,
}


def members(url: str) -> Iterator[Case]:
    own = to_jwk(pem(STRANGER))
    for name, value in (
        ("jwk", own),
        ("jku", url),
        ("x5u", url),
        ("x5c", [base64.b64encode(SPKI).decode()]),
        ("x5t", "AAAA"),
        ("x5t#S256", "AAAA"),
        ("cty", "JWT"),
        ("zip", "DEF"),
        ("zip", None),
        ("crit", ["kid"]),
        ("crit", ["exp"]),
        ("crit", []),
        ("crit", None),
        ("b64", True),
        ("b64", False),
        ("url", url),
        ("ALG", "ES256"),
        ("", ""),
    ):
        message = f"the token's header has the member {name!r}, only alg, kid and typ are accepted"
        header = HEADER | {name: value}
        number = STRANGER if name == "jwk" else EXT
        label = f"member {name} {json.dumps(value)[:20]}"
        yield Case(name=label, token=signed(header, number=number), kind=HeaderRefused, message=message)
    header = HEADER | {"b64": False, "crit": ["b64"]}
    message = "the token's header has the member 'b64', only alg, kid and typ are accepted"
    yield Case(name="member b64 false critical", token=signed(header), kind=HeaderRefused, message=message)
    bare = encode(compact(header)) + b".$" + b"." + encode(raw(*sign_low_s(private(EXT), b"$")))
    message = "the token's payload is not canonical base64url"
    yield Case(name="payload not encoded", token=bare, kind=SignatureMalformed, message=message)


def json_texts() -> Iterator[Case]:
    text = compact(HEADER).decode()

    def refused(name: str, header: bytes, message: str = NOT_JSON) -> Case:
        return Case(name=f"header {name}", token=signed(header), kind=HeaderRefused, message=message)

    yield refused("alg twice", text.replace("{", '{"alg":"none",', 1).encode(), twice("alg"))
    yield refused("alg twice escaped", text.replace("{", '{"\\u0061lg":"none",', 1).encode(), twice("alg"))
    yield refused("kid twice", text.replace('"kid"', '"kid":"x","kid"').encode(), twice("kid"))
    yield refused("member twice deeper", text.replace("}", ',"jwk":{"x":1,"x":2}}').encode(), twice("x"))
    for number in ("NaN", "Infinity", "-Infinity", "1.5", "1e400"):
        message = f"the token's header has the number '{number}', its members must be text"
        yield refused(number, text.replace(f'"{KEYID}"', number).encode(), message)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"):
        yield refused(encoding, text.encode(encoding))
    for encoding in ("utf-32", "utf-32-le", "utf-32-be"):
        yield refused(encoding, '{"alg":"ES256"}'.encode(encoding))
    yield refused("Latin-1", text.replace("jws", "jw\xff").encode("latin-1"))
    yield refused("half of a surrogate pair", text.encode().replace(b"jws", b"jw\xed\xa0\x80"))
    yield refused("unclosed deep nesting", b"[" * 512)
    yield refused("deep nesting", b"[" * 256 + b"]" * 256, "the token's header is not a JSON object")
    nested = f"the token's header has {'[' * 80}... as `typ`, it must be text"
    yield refused("deep nesting in a member", compact(HEADER).replace(TYP, b"[" * 150 + b"]" * 150), nested)
    for header in (b'["ES256"]', b'"ES256"', b"null", b"7"):
        yield refused(header.decode(), header, "the token's header is not a JSON object")
    for name, header in (
        ("empty", b""),
        ("trailing comma", text.replace("}", ",}").encode()),
        ("two objects", text.encode() * 2),
        ("single quotes", text.replace('"', "'").encode()),
        ("comment", b"/**/" + text.encode()),
        ("NUL after", text.encode() + b"\0"),
    ):
        yield refused(name, header)
    long = compact(HEADER | {"typ": "x" * 500})
    yield refused("too long", long, f"the token's header has {len(long)} bytes, more than the 512 allowed")


TYP = b'"spm-ext-manifest+jws"'


def twice(name: str) -> str:
    return f"the token's header has the member '{name}' twice"


def header_rules(url: str) -> Iterator[Case]:
    def refused(name: str, header: bytes | dict[str, Any], message: str, *, is_manifest_rule: bool = True) -> Case:
        token = signed(header)
        return Case(name=name, token=token, kind=HeaderRefused, message=message, is_manifest_rule=is_manifest_rule)

    for name, kid in {
        "empty": "",
        "in upper case": KEYID.upper(),
        "cut short": KEYID[:16],
        "one digit longer": KEYID + "0",
        "of other letters": "g" * 64,
        "as a path": "../../dev/null",
        "as SQL": "x' OR '1'='1",
        "as a URL": url,
        "with a line feed": KEYID + "\n",
    }.items():
        message = f"the token's `kid` is {kid!r}, it must be a key id of 64 hexadecimal digits"
        yield refused(f"kid {name}", HEADER | {"kid": kid}, message)
    for value in (7, [KEYID], {"kid": KEYID}, None, True):
        shown = ascii(value) if len(ascii(value)) <= 80 else f"{ascii(value)[:80]}..."
        message = f"the token's header has {shown} as `kid`, it must be text"
        yield refused(f"kid {value!r:.10}", HEADER | {"kid": value}, message, is_manifest_rule=False)
    missing = "the token's `kid` is None, it must be a key id of 64 hexadecimal digits"
    yield refused("kid missing", {"alg": "ES256", "typ": TOKEN_TYPE}, missing)
    for typ in ("JWT", TOKEN_TYPE.upper(), f"application/{TOKEN_TYPE}", ""):
        message = f"the token's `typ` is {typ!r}, it must be '{TOKEN_TYPE}'"
        yield refused(f"typ {typ!r}", HEADER | {"typ": typ}, message)
    missing = f"the token's `typ` is None, it must be '{TOKEN_TYPE}'"
    yield refused("typ missing", {"alg": "ES256", "kid": KEYID}, missing)
    for name, header in (
        ("spaces", json.dumps(HEADER).encode()),
        ("order", compact(dict(reversed(HEADER.items())))),
        ("space after", compact(HEADER) + b" "),
        ("line feed before", b"\n" + compact(HEADER)),
        ("needless escape", compact(HEADER).replace(b'"typ"', b'"\\u0074yp"')),
    ):
        yield refused(f"not canonical: {name}", header, NOT_CANONICAL)


def malformed(name: str, token: bytes, message: str) -> Case:
    return Case(name=name, token=token, kind=SignatureMalformed, message=message)


def not_base64url(name: str, token: bytes, segment: str) -> Case:
    return malformed(name, token, f"the token's {segment} is not canonical base64url")


def shapes() -> Iterator[Case]:
    one = {"protected": HEAD.decode(), "signature": SIGNATURE.decode()}
    fields = {"payload": PAYLOAD.decode()}
    for name, token, found in (
        ("empty", b"", "1"),
        ("one segment", HEAD, "1"),
        ("two segments", HEAD + b"." + PAYLOAD, "2"),
        ("four segments", TOKEN + b".", "more than 3"),
        ("JWE", TOKEN + b".AA.AA", "more than 3"),
        ("JSON flattened", json.dumps(fields | one).encode(), "1"),
        ("JSON general", json.dumps(fields | {"signatures": [one]}).encode(), "1"),
        ("raw payload", HEAD + b"." + DATA + b"." + SIGNATURE, "more than 3"),
    ):
        yield malformed(name, token, f"the token has {found} segments, a JWS Compact token has exactly 3")
    with_periods = json.dumps(fields | one | {"header": {"kid": "a.b.c"}}).encode()
    yield not_base64url("JSON with two periods", with_periods, "header")
    long = b"a" * (MAX_TOKEN_BYTES + 1)
    yield malformed("too long", long, "the token has 1398885 bytes, more than the 1398884 allowed")
    yield Case(name="detached", token=HEAD + b".." + SIGNATURE, kind=SignatureInvalid, message=INVALID)
    other = HEAD + b"." + encode(b"{}") + b"." + SIGNATURE
    yield Case(name="another payload", token=other, kind=SignatureInvalid, message=INVALID)


def base64_slack() -> Iterator[Case]:
    header = compact(HEADER | {"typ": "x" * next(n for n in range(9) if len(compact(HEADER | {"typ": "x" * n})) % 3)})
    payload = next(DATA + b"x" * n for n in range(3) if (len(DATA) + n) % 3)
    segments = signed(header, payload).split(b".")
    for place, segment in enumerate(("header", "payload", "signature")):
        text = segments[place]

        def token(changed: bytes, place: int = place) -> bytes:
            return b".".join([*segments[:place], changed, *segments[place + 1 :]])

        yield not_base64url(f"padded {segment}", token(text + b"=" * (-len(text) % 4)), segment)
        yield not_base64url(f"needless padding of the {segment}", token(text + b"===="), segment)
        yield not_base64url(f"spare bits in the {segment}", token(text[:-1] + following(text[-1:])), segment)
        for name, spaced in (("space", b" "), ("tab", b"\t"), ("line feed", b"\n"), ("CR LF", b"\r\n"), ("NUL", b"\0")):
            yield not_base64url(f"{name} before the {segment}", token(spaced + text), segment)
            yield not_base64url(f"{name} within the {segment}", token(text[:8] + spaced + text[8:]), segment)
            yield not_base64url(f"{name} after the {segment}", token(text + spaced), segment)
        yield not_base64url(f"other alphabet + in the {segment}", token(b"+" + text[1:]), segment)
        yield not_base64url(f"other alphabet / in the {segment}", token(b"/" + text[1:]), segment)
        yield not_base64url(f"lone character in the {segment}", token(text[: len(text) // 4 * 4] + b"A"), segment)
        yield not_base64url(f"letter beyond ASCII in the {segment}", token(b"\xc3\xa9" + text[2:]), segment)


def following(character: bytes) -> bytes:
    """Return the character of the next value: it sets a spare bit where the last one has spare bits."""
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return alphabet[alphabet.index(character) + 1 :][:1]


def signatures() -> Iterator[Case]:
    right = base64.urlsafe_b64decode(SIGNATURE + b"==")
    r, s = int.from_bytes(right[:32], "big"), int.from_bytes(right[32:], "big")
    der = encode_dss_signature(1 << 255 | r, 1 << 254 | s)
    for name, signature, characters in (
        ("nothing", b"", 0),
        ("63 bytes", right[:-1], 84),
        ("65 bytes", right + b"\0", 87),
        ("65 bytes, zero before", b"\0" + right, 87),
        ("66 bytes, 33 a number", b"\0" + right[:32] + b"\0" + right[32:], 88),
        ("96 bytes", bytes(96), 128),
        ("twice", right * 2, 171),
        ("DER", der, len(encode(der))),
        ("a kilobyte", bytes(1024), 1366),
    ):
        message = f"the token's signature has {characters} characters, an ES256 signature has 86"
        yield malformed(f"signature of {name}", with_signature(signature), message)
    for name, numbers in {
        "0, 0": (0, 0),
        "0, s": (0, s),
        "r, 0": (r, 0),
        "1, 1": (1, 1),
        "n, n": (P256_ORDER, P256_ORDER),
        "n, s": (P256_ORDER, s),
        "r, n": (r, P256_ORDER),
        "s, r": (s, r),
        "n - r, s": (P256_ORDER - r, s),
        "the largest": (2**256 - 1, 2**256 - 1),
    }.items():
        token = with_signature(raw(*numbers))
        yield Case(name=f"numbers {name}", token=token, kind=SignatureInvalid, message=INVALID)
    yield Case(name="by a stranger", token=signed(HEADER, number=STRANGER), kind=SignatureInvalid, message=INVALID)

"""Receipts as values: their bytes, their signature, and all that is not taken for one."""

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from keys.public_key import keyid_of, pem_of
from keys.receipts import MAX_ENVELOPE_BYTES, PAYLOAD_TYPE, Receipt, may_use_receipt, sign, verify
from keys.tree import BIG_FILE_BYTES, FileStamp
from manifests.canonical import canonical_bytes
from manifests.errors import SpmError
from manifests.parts import MAX_FILE_BYTES, FileEntry
from tests.keys.builders import UNHURRIED, manifest, refusal_of

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = ec.generate_private_key(ec.SECP256R1())
PEM = pem_of(KEY.public_key())
SHA = "ab" * 32
STAMP = FileStamp(dev=65024, inode=2**63 + 5, size=BIG_FILE_BYTES + 1, mtime_ns=-1, ctime_ns=1769860800_123456789)
RECEIPT = Receipt(manifest_sha256=SHA, files={"data/weights.bin": STAMP, "data/more.bin": replace(STAMP, inode=7)})
SEALED = sign(KEY, RECEIPT)

numbers = st.integers(-(2**63), 2**64 - 1)
stamps = st.builds(
    FileStamp,
    dev=numbers,
    inode=numbers,
    size=st.integers(BIG_FILE_BYTES + 1, MAX_FILE_BYTES),
    mtime_ns=numbers,
    ctime_ns=numbers,
)
receipts = st.builds(
    Receipt,
    manifest_sha256=st.just(SHA),
    files=st.dictionaries(st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8}){0,2}", fullmatch=True), stamps, max_size=4),
)


def told(data: bytes, pem: bytes = PEM, sha256: str = SHA) -> tuple[int, str, str]:
    refusal = refusal_of(lambda: verify(pem, data, sha256))
    assert refusal is not None
    return refusal.exit_code, refusal.reason, refusal.message


def with_payload(change: Callable[[dict[str, Any]], object], key: ec.EllipticCurvePrivateKey = KEY) -> bytes:
    """Return a receipt whose document was changed before the host key signed it."""

    class Changed(Receipt):
        def to_bytes(self) -> bytes:
            document = json.loads(RECEIPT.to_bytes())
            change(document)
            return canonical_bytes(document)

    return sign(key, Changed(manifest_sha256=SHA, files={}))


def with_envelope(change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a signed receipt whose envelope was changed afterwards."""
    envelope = json.loads(SEALED)
    change(envelope)
    return canonical_bytes(envelope)


@pytest.mark.property
@UNHURRIED
@given(receipts)
def test_a_receipt_comes_back_as_it_was(receipt: Receipt) -> None:
    assert Receipt.from_bytes(receipt.to_bytes()) == receipt
    assert verify(PEM, sign(KEY, receipt), SHA) == receipt


def test_the_document_is_canonical_json_with_long_numbers_as_text() -> None:
    assert RECEIPT.to_bytes() == (
        b'{"_type":"spm.receipt/1","files":['
        b'{"ctime_ns":"1769860800123456789","dev":"65024","inode":"7","mtime_ns":"-1","path":"data/more.bin","size":1048577},'
        b'{"ctime_ns":"1769860800123456789","dev":"65024","inode":"9223372036854775813","mtime_ns":"-1",'
        b'"path":"data/weights.bin","size":1048577}],"manifest":"' + SHA.encode() + b'"}'
    )


def test_another_key_or_manifest_is_not_this_one_s() -> None:
    other = pem_of(OTHER_KEY.public_key())

    assert told(SEALED, pem=other) == (
        21,
        "key-unknown",
        f"the receipt says it is signed by the key '{keyid_of(KEY.public_key())}', which is not this store's host key",
    )
    assert told(SEALED, sha256="cd" * 32) == (
        24,
        "mix",
        f"the receipt is for the manifest sha256:{SHA}, not for sha256:{'cd' * 32}",
    )


def test_another_key_s_signature_under_this_key_s_id_is_refused() -> None:
    forged = json.loads(sign(OTHER_KEY, RECEIPT))
    forged["signatures"][0]["keyid"] = keyid_of(KEY.public_key())

    size = len(RECEIPT.to_bytes()) + len(f"DSSEv1 35 {PAYLOAD_TYPE} 000 ")
    assert told(canonical_bytes(forged)) == (
        20,
        "sig-invalid",
        f"the signature does not fit these {size} bytes and this key: "
        "the bytes were changed after signing, or another key signed them",
    )


def test_an_edited_receipt_is_refused() -> None:
    edited = RECEIPT.to_bytes().replace(b'"inode":"7"', b'"inode":"8"')

    sealed = with_envelope(lambda envelope: envelope.update(payload=b64encode(edited).decode()))

    assert told(sealed)[:2] == (20, "sig-invalid")


ENVELOPES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no payload": lambda one: one.pop("payload"),
    "more members": lambda one: one.update(more=1),
    "another type": lambda one: one.update(payloadType="application/vnd.spm.manifest.core+json;v=1"),
    "no signature": lambda one: one.update(signatures=[]),
    "two signatures": lambda one: one.update(signatures=one["signatures"] * 2),
    "signatures that are no list": lambda one: one.update(signatures=one["signatures"][0]),
    "a signature that is no table": lambda one: one.update(signatures=["x"]),
    "a signature with more members": lambda one: one["signatures"][0].update(more=1),
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_of_another_shape_is_refused(name: str) -> None:
    assert told(with_envelope(ENVELOPES[name])) == (
        20,
        "sig-malformed",
        f"the receipt is not a DSSE envelope of the type {PAYLOAD_TYPE} with one signature",
    )


@pytest.mark.parametrize("text", [1, None, [], "%%%", "A", "é", SEALED.decode()[:5]])
def test_a_payload_that_is_not_base64_is_refused(text: Any) -> None:
    sealed = with_envelope(lambda envelope: envelope.update(payload=text))

    assert told(sealed)[:2] == (20, "sig-malformed")
    assert told(sealed)[2].startswith("the receipt's envelope is not in ")


def test_base64_with_spare_bits_is_refused() -> None:
    assert told(with_envelope(lambda envelope: envelope.update(payload="QQ=="[:1] + "R=="))) == (
        20,
        "sig-malformed",
        "the receipt's envelope is not in canonical base64",
    )


@pytest.mark.parametrize(
    ("data", "told_as"),
    [
        (b"", (25, "non-canonical", "the receipt's envelope is not JSON: Expecting value: line 1 column 1 (char 0)")),
        (b"[]", (25, "non-canonical", "the receipt's envelope is not a JSON object")),
        (SEALED + b"\n", (25, "non-canonical", "the receipt's envelope is not in RFC 8785 canonical form")),
        (
            b" " * (MAX_ENVELOPE_BYTES + 1),
            (25, "too-big", "the receipt's envelope has 8388609 bytes, more than the 8388608 allowed"),
        ),
    ],
)
def test_what_is_no_envelope_is_refused(data: bytes, told_as: tuple[int, str, str]) -> None:
    assert told(data) == told_as


def first(document: dict[str, Any]) -> dict[str, Any]:
    file: dict[str, Any] = document["files"][0]
    return file


DOCUMENTS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another type": (
        lambda one: one.update(_type="spm.receipt/2"),
        "the receipt is refused: `_type`: 'spm.receipt/2' is not one of `spm.receipt/1`",
    ),
    "more members": (lambda one: one.update(more=1), "the receipt is refused: `more` is not a known member"),
    "no files": (lambda one: one.pop("files"), "the receipt is refused: `files` is missing"),
    "a number as a number": (
        lambda one: first(one).update(inode=7),
        "the receipt is refused: `files`: item 0: `inode`: '7' is not plain text of 1 to 4096 characters",
    ),
    "a number with a zero before it": (
        lambda one: first(one).update(inode="07"),
        "the receipt is refused: `files`: item 0: `inode`: '07' is not a whole number of at most 20 digits",
    ),
    "a small file": (
        lambda one: first(one).update(size=BIG_FILE_BYTES),
        "the receipt is refused: `files`: item 0: `size`: '1048576' is not a whole number from 1048577 to 68719476736",
    ),
    "a path that leads out": (
        lambda one: first(one).update(path="../x"),
        "the receipt is refused: `files`: item 0: `path`: the path '../x' is refused: "
        "each part is 1 to 200 characters of A-Z a-z 0-9 . _ + - and is neither `.` nor `..`",
    ),
    "a file twice": (
        lambda one: one.update(files=one["files"][:1] * 2),
        "the receipt names its files twice or out of order",
    ),
    "files out of order": (lambda one: one["files"].reverse(), "the receipt names its files twice or out of order"),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_signed_document_of_another_shape_is_refused(name: str) -> None:
    change, message = DOCUMENTS[name]

    assert told(with_payload(change)) == (25, "type", message)


@pytest.mark.property
@UNHURRIED
@given(st.data())
def test_no_flipped_bit_and_no_cut_is_taken_for_a_receipt(data: st.DataObject) -> None:
    changed = bytearray(SEALED)
    bit = data.draw(st.integers(0, len(changed) * 8 - 1))
    changed[bit // 8] ^= 1 << (bit % 8)
    cut = data.draw(st.integers(0, len(SEALED) - 1))

    for one in (bytes(changed), SEALED[:cut], SEALED[cut:] + SEALED[:cut] if cut else SEALED * 2):
        assert isinstance(refusal_of(lambda one=one: verify(PEM, one, SHA)), SpmError)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("sizes", "budget", "expected"),
    [
        ([BIG_FILE_BYTES + 1], BIG_FILE_BYTES + 1, False),
        ([BIG_FILE_BYTES + 1], BIG_FILE_BYTES, True),
        ([BIG_FILE_BYTES, BIG_FILE_BYTES], BIG_FILE_BYTES, False),
        ([BIG_FILE_BYTES + 1], 0, True),
        ([1], 0, False),
        ([1, BIG_FILE_BYTES + 1], BIG_FILE_BYTES + 1, True),
    ],
)
def test_receipts_are_for_plugins_beyond_the_budget_that_have_a_big_file(
    sizes: list[int], budget: int, expected: bool
) -> None:
    files = tuple(FileEntry(path=f"f{place}", size=size, sha256=SHA, mode="r") for place, size in enumerate(sizes))

    assert may_use_receipt(manifest(files=files), budget) is expected

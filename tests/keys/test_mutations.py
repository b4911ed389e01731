"""Whatever is done to signed bytes ends in a refusal, and in nothing but a refusal. The attacker owns the index too."""

import hashlib
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from keys.verified import JWS_FILE, SIGNATURE_FILE_PREFIX, FetchedManifest, verify_manifest
from manifests.canonical import canonical_bytes, parse_strict
from manifests.errors import SpmError
from manifests.manifest import Manifest
from manifests.parts import PluginType
from tests.keys.builders import (
    CORE,
    UNHURRIED,
    expected,
    keyid,
    keyring,
    manifest,
    refusal_of,
    signed_core,
    signed_ext,
)

CORE_MANIFEST, EXT_MANIFEST = manifest(PluginType.CORE), manifest()
CORE_RELEASE, EXT_RELEASE = signed_core(CORE_MANIFEST, CORE), signed_ext(EXT_MANIFEST)
SIGNATURE_FILE = SIGNATURE_FILE_PREFIX + keyid(CORE)
SIGNATURE, TOKEN = CORE_RELEASE.signatures[SIGNATURE_FILE], EXT_RELEASE.signatures[JWS_FILE]
KEYRING = keyring()

MANY = settings(UNHURRIED, max_examples=150)


def verified(made: Manifest, data: bytes, signatures: dict[str, bytes]) -> SpmError | None:
    """Return the refusal of a release whose index entry the attacker has made to fit."""
    asked = expected(made, manifest_sha256=hashlib.sha256(data).hexdigest())
    return refusal_of(lambda: verify_manifest(FetchedManifest(data=data, signatures=signatures), KEYRING, asked))


def core_with(*, data: bytes = CORE_RELEASE.data, signature: bytes = SIGNATURE) -> SpmError | None:
    return verified(CORE_MANIFEST, data, {SIGNATURE_FILE: signature})


def ext_with(*, data: bytes = EXT_RELEASE.data, token: bytes = TOKEN) -> SpmError | None:
    return verified(EXT_MANIFEST, data, {JWS_FILE: token})


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


@st.composite
def changes(draw: st.DrawFn, original: bytes) -> bytes:
    """Draw a truncation at either end, a slice that stands twice, two slices swapped, or a cut, of the original."""
    a, b, c, d = sorted(draw(st.lists(st.integers(0, len(original)), min_size=4, max_size=4)))
    one, other = original[a:b], original[c:d]
    return draw(
        st.sampled_from(
            [
                original[:d],
                original[a:],
                original[:b] + one + original[b:],
                original[:a] + other + original[b:c] + one + original[d:],
                original[:a] + original[b:],
            ]
        )
    )


def changed(original: bytes) -> st.SearchStrategy[bytes]:
    bits = st.integers(0, len(original) * 8 - 1).map(lambda bit: flipped(original, bit))
    return (bits | changes(original)).filter(lambda data: data != original)


def test_unchanged_releases_are_accepted() -> None:
    assert (core_with(), ext_with()) == (None, None)


@pytest.mark.property
@MANY
@given(changed(CORE_RELEASE.data))
def test_any_change_of_a_core_manifest_is_refused(data: bytes) -> None:
    refusal = core_with(data=data)

    assert refusal is not None
    assert (refusal.exit_code, refusal.reason) == (20, "sig-invalid")


@pytest.mark.property
@MANY
@given(changed(SIGNATURE))
@example(b"")
def test_any_change_of_a_core_signature_is_refused(signature: bytes) -> None:
    refusal = core_with(signature=signature)

    assert refusal is not None
    assert (refusal.exit_code, refusal.reason in {"sig-invalid", "sig-malformed"}) == (20, True)


@pytest.mark.property
@MANY
@given(changed(TOKEN))
@example(b"")
def test_any_change_of_a_token_is_refused(token: bytes) -> None:
    refusal = ext_with(token=token)

    assert refusal is not None
    assert refusal.exit_code in {20, 21}


@pytest.mark.property
@MANY
@given(changed(EXT_RELEASE.data))
def test_any_change_of_a_manifest_beside_its_token_is_refused(data: bytes) -> None:
    refusal = ext_with(data=data)

    assert refusal is not None
    assert (refusal.exit_code, refusal.reason) == (20, "sig-invalid")


def test_every_single_bit_of_a_core_signature_counts() -> None:
    accepted = [bit for bit in range(len(SIGNATURE) * 8) if core_with(signature=flipped(SIGNATURE, bit)) is None]

    assert accepted == []


def test_every_byte_of_a_core_manifest_counts() -> None:
    data = CORE_RELEASE.data

    bits = [place * 8 + place % 8 for place in range(len(data))]

    assert [bit for bit in bits if core_with(data=flipped(data, bit)) is None] == []


def test_every_single_bit_of_a_tokens_header_and_signature_and_every_byte_of_its_payload_count() -> None:
    header, payload, _ = TOKEN.split(b".")
    signed = range((len(header) + 1) * 8, (len(header) + 1 + len(payload)) * 8)
    bits = [bit for bit in range(len(TOKEN) * 8) if bit not in signed or bit % 8 == bit // 8 % 8]

    assert [bit for bit in bits if ext_with(token=flipped(TOKEN, bit)) is None] == []


def test_every_truncation_is_refused() -> None:
    data = CORE_RELEASE.data

    assert [end for end in range(len(data)) if core_with(data=data[:end]) is None] == []
    assert [end for end in range(len(SIGNATURE)) if core_with(signature=SIGNATURE[:end]) is None] == []
    assert [end for end in range(len(TOKEN)) if ext_with(token=TOKEN[:end]) is None] == []


@pytest.mark.property
@MANY
@given(st.lists(st.sampled_from(TOKEN.split(b".")), min_size=2, max_size=5))
def test_segments_of_a_token_fit_in_one_order_only(segments: list[bytes]) -> None:
    token = b".".join(segments)
    assume(token != TOKEN)

    refusal = ext_with(token=token)

    assert refusal is not None
    assert refusal.exit_code in {20, 21}


@pytest.mark.property
@MANY
@given(st.binary(max_size=200), st.binary(max_size=100))
def test_foreign_bytes_raise_nothing_but_a_refusal(data: bytes, signature: bytes) -> None:
    assert core_with(data=data, signature=signature) is not None
    assert ext_with(data=data, token=signature) is not None


# What a key would sign by mistake: the signature is right, the bytes are no manifest.
@pytest.mark.property
@MANY
@given(changed(CORE_RELEASE.data))
@example(CORE_RELEASE.data.replace(b'"network":false,', b""))
@example(CORE_RELEASE.data.replace(b'"requires":{}', b'"requires":{"plugins":{}}'))
@example(CORE_RELEASE.data.replace(b'"inputs":[],', b""))
def test_manifest_that_reads_after_a_change_reads_as_exactly_its_bytes(data: bytes) -> None:
    read: list[Manifest] = []

    refusal = refusal_of(lambda: read.append(Manifest.from_bytes(data)))

    assert refusal is None or (refusal.exit_code, bool(read)) == (25, False)
    for made in read:
        told, written = (parse_strict(one, what="it", max_bytes=1 << 20) for one in (data, made.to_bytes()))
        assert canonical_bytes(told) == data
        # A manifest may leave out what is off and what it has none of; `to_bytes` writes that in one way.
        assert canonical_bytes(spoken_of(told)) == canonical_bytes(spoken_of(written))
        assert made.to_bytes() == data or members(told) != members(written)


def spoken_of(value: Any) -> Any:
    """Return the value without members that are off or empty."""
    if not isinstance(value, dict):
        return value
    told = {name: spoken_of(inner) for name, inner in value.items()}
    return {name: inner for name, inner in told.items() if inner not in (False, {}, [])}


def members(value: Any) -> Any:
    """Return the names of all members, inner ones too."""
    return {name: members(inner) for name, inner in value.items()} if isinstance(value, dict) else None


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 2**53, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=4)


@pytest.mark.property
@MANY
@given(OBJECTS)
def test_canonical_bytes_make_the_round_trip(value: dict[str, Any]) -> None:
    data = canonical_bytes(value)

    assert parse_strict(data, what="it", max_bytes=1 << 20) == value
    assert canonical_bytes(parse_strict(data, what="it", max_bytes=1 << 20)) == data


@pytest.mark.property
@MANY
@given(OBJECTS.map(canonical_bytes).flatmap(changed))
def test_bytes_that_read_after_a_change_are_canonical(data: bytes) -> None:
    read: list[dict[str, Any]] = []

    refusal = refusal_of(lambda: read.append(parse_strict(data, what="it", max_bytes=1 << 20)))

    assert refusal is None or refusal.exit_code == 25
    assert [canonical_bytes(value) for value in read] == ([] if refusal else [data])

"""Keys and manifests that count no longer: revoked or expired, at every place where a release is verified."""

import hashlib
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keys.pinned_keys import Keyring, RevocationReason, RevokedKey
from keys.verified import FetchedManifest, VerifiedManifest, verify_manifest, verify_offered
from manifests.errors import SpmError
from manifests.manifest import Manifest
from manifests.parts import PluginType
from tests.keys.builders import (
    CORE,
    CORE_TWO,
    EXT,
    STRANGER,
    UNHURRIED,
    expected,
    keyid,
    keyring,
    manifest,
    refusal_of,
    signed_core,
    signed_ext,
)
from tests.keys.keyring_strategies import moments

EXT_MANIFEST = manifest()
CORE_MANIFEST = manifest(PluginType.CORE)
MADE = EXT_MANIFEST.created
BEFORE, AFTER = "2026-01-31T11:59:59Z", "2026-01-31T12:00:01Z"
TWO_CORE = keyring((CORE, CORE_TWO))
BOTH_CORE = keyring((CORE, CORE_TWO), threshold=2)
ANOTHER = "ask its publisher for a release that is signed by a key in force"


def compromised(number: int) -> RevokedKey:
    return RevokedKey(keyid=keyid(number), reason=RevocationReason.COMPROMISED)


def retired(number: int, since: str) -> RevokedKey:
    return RevokedKey(keyid=keyid(number), reason=RevocationReason.RETIRED, since=since)


def with_revoked(ring: Keyring, *revoked: RevokedKey) -> Keyring:
    return replace(ring, revoked_keys=revoked)


def with_expiry(ring: Keyring, number: int, expires: str) -> Keyring:
    return replace(
        ring,
        core_keys=tuple(replace(key, expires=expires) if key.keyid == keyid(number) else key for key in ring.core_keys),
        ext_keys=tuple(replace(key, expires=expires) if key.keyid == keyid(number) else key for key in ring.ext_keys),
    )


def with_revoked_manifest(ring: Keyring, made: Manifest) -> Keyring:
    return replace(ring, revoked_manifests=frozenset({hashlib.sha256(made.to_bytes()).hexdigest()}))


def verify(fetched: FetchedManifest, ring: Keyring, made: Manifest = EXT_MANIFEST) -> VerifiedManifest:
    return verify_manifest(fetched, ring, expected(made))


def refused(fetched: FetchedManifest, ring: Keyring, made: Manifest = EXT_MANIFEST) -> tuple[int, str, str, str]:
    """Return the refusal at an install, which is that of a publish but for the name in front and the remedy."""
    with pytest.raises(SpmError) as caught:
        verify(fetched, ring, made)
    offered = refusal_of(lambda: verify_offered(fetched, ring, made.registry))
    error = caught.value
    message = error.message.removeprefix("`audio-encoder` 1.2.0 is refused: ")
    assert message != error.message
    assert offered is not None
    assert (type(offered), offered.message, offered.context) == (type(error), message, error.context)
    return error.exit_code, error.reason, message, error.hint


@pytest.mark.parametrize(
    ("made", "fetched", "number"),
    [
        (EXT_MANIFEST, signed_ext(EXT_MANIFEST), EXT),
        (CORE_MANIFEST, signed_core(CORE_MANIFEST, CORE), CORE),
    ],
    ids=["ext", "core"],
)
def test_nothing_that_a_compromised_key_signed_counts(made: Manifest, fetched: FetchedManifest, number: int) -> None:
    assert refused(fetched, with_revoked(keyring(), compromised(number)), made) == (
        22,
        "key-revoked",
        f"the manifest, made at {MADE}, is signed by the key {keyid(number)}, "
        "which is revoked as compromised: nothing that it ever signed counts",
        ANOTHER,
    )


@pytest.mark.parametrize("since", [BEFORE, MADE])
def test_what_a_retired_key_signed_from_then_on_does_not_count(since: str) -> None:
    assert refused(signed_ext(EXT_MANIFEST), with_revoked(keyring(), retired(EXT, since))) == (
        22,
        "key-revoked",
        f"the manifest, made at {MADE}, is signed by the key {keyid(EXT)}, which was retired at {since}",
        ANOTHER,
    )


def test_what_a_retired_key_signed_before_still_counts() -> None:
    found = verify(signed_ext(EXT_MANIFEST), with_revoked(keyring(), retired(EXT, AFTER)))

    assert found.keyids == (keyid(EXT),)


def test_what_is_made_after_the_expiry_of_its_key_does_not_count() -> None:
    assert refused(signed_ext(EXT_MANIFEST), with_expiry(keyring(), EXT, BEFORE)) == (
        21,
        "key-expired",
        f"the manifest, made at {MADE}, is signed by the key {keyid(EXT)}, which expired at {BEFORE}",
        ANOTHER,
    )


@pytest.mark.parametrize("expires", [MADE, AFTER])
def test_what_is_made_until_the_expiry_of_its_key_counts(expires: str) -> None:
    assert verify(signed_ext(EXT_MANIFEST), with_expiry(keyring(), EXT, expires)).keyids == (keyid(EXT),)


@pytest.mark.parametrize(
    "ring",
    [
        with_revoked(TWO_CORE, compromised(CORE)),
        with_revoked(TWO_CORE, retired(CORE, MADE)),
        with_expiry(TWO_CORE, CORE, BEFORE),
    ],
    ids=["compromised", "retired", "expired"],
)
def test_core_key_not_in_force_is_no_harm_while_the_others_reach_the_threshold(ring: Keyring) -> None:
    found = verify(signed_core(CORE_MANIFEST, CORE, CORE_TWO), ring, CORE_MANIFEST)

    assert found.keyids == (keyid(CORE_TWO),)
    assert set(found.signatures) == {f"manifest.sig.{keyid(CORE_TWO)}"}


@pytest.mark.parametrize(
    ("ring", "exit_code", "reason", "number", "why"),
    [
        (
            with_revoked(BOTH_CORE, compromised(CORE_TWO)),
            22,
            "key-revoked",
            CORE_TWO,
            "which is revoked as compromised: nothing that it ever signed counts",
        ),
        (with_expiry(BOTH_CORE, CORE_TWO, BEFORE), 21, "key-expired", CORE_TWO, f"which expired at {BEFORE}"),
        (
            with_revoked(with_expiry(BOTH_CORE, CORE, BEFORE), retired(CORE_TWO, MADE)),
            22,
            "key-revoked",
            CORE_TWO,
            f"which was retired at {MADE}",
        ),
        (
            with_revoked(with_expiry(BOTH_CORE, CORE_TWO, BEFORE), retired(CORE, MADE)),
            22,
            "key-revoked",
            CORE,
            f"which was retired at {MADE}",
        ),
    ],
    ids=["revoked", "expired", "first expired, second revoked", "first revoked, second expired"],
)
def test_threshold_missed_for_a_key_not_in_force_names_that_key(
    ring: Keyring, exit_code: int, reason: str, number: int, why: str
) -> None:
    fetched = signed_core(CORE_MANIFEST, CORE, CORE_TWO)

    assert refused(fetched, ring, CORE_MANIFEST) == (
        exit_code,
        reason,
        f"the manifest, made at {MADE}, is signed by the key {keyid(number)}, {why}",
        ANOTHER,
    )


def test_too_few_signatures_are_too_few_whoever_is_revoked() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE)

    assert refused(fetched, with_revoked(BOTH_CORE, compromised(CORE)), CORE_MANIFEST)[:3] == (
        21,
        "threshold-short",
        "the manifest has 1 of the 2 signatures by pinned core keys that are asked for",
    )


@pytest.mark.parametrize(
    ("made", "fetched"),
    [(EXT_MANIFEST, signed_ext(EXT_MANIFEST)), (CORE_MANIFEST, signed_core(CORE_MANIFEST, CORE))],
    ids=["ext", "core"],
)
def test_revoked_manifest_is_refused_whoever_signed_it(made: Manifest, fetched: FetchedManifest) -> None:
    digest = hashlib.sha256(made.to_bytes()).hexdigest()

    assert refused(fetched, with_revoked_manifest(keyring(), made), made) == (
        22,
        "artifact-revoked",
        f"the manifest sha256:{digest} was revoked by the registry's root holders or in loader.conf",
        "take another release: `spm info audio-encoder` lists them",
    )


def test_revocation_of_another_manifest_is_no_harm() -> None:
    ring = with_revoked_manifest(keyring(), manifest(summary="Another"))

    assert verify(signed_ext(EXT_MANIFEST), ring).manifest == EXT_MANIFEST


def test_revoked_manifest_is_not_named_before_its_signature_is_verified() -> None:
    fetched, other = signed_ext(EXT_MANIFEST), signed_ext(manifest(summary="Another"))
    signed, signature = (one.signatures["manifest.jws"].rpartition(b".") for one in (fetched, other))
    fetched = replace(fetched, signatures={"manifest.jws": signed[0] + b"." + signature[2]})

    assert refused(fetched, with_revoked_manifest(keyring(), EXT_MANIFEST))[:2] == (20, "sig-invalid")


@pytest.mark.parametrize(
    ("made", "fetched", "kind"),
    [
        (EXT_MANIFEST, signed_ext(EXT_MANIFEST, STRANGER), "ext"),
        (CORE_MANIFEST, signed_core(CORE_MANIFEST, STRANGER), "core"),
    ],
    ids=["ext", "core"],
)
def test_nobody_is_told_to_pin_a_compromised_key(made: Manifest, fetched: FetchedManifest, kind: str) -> None:
    assert refused(fetched, with_revoked(keyring(), compromised(STRANGER)), made) == (
        21,
        "key-unknown",
        f"the {kind} signature is by the key {keyid(STRANGER)}, "
        "which neither loader.conf nor the registry's keyring names, and which is revoked as compromised",
        f"do not trust it; {ANOTHER}",
    )


def test_retired_key_that_nobody_pins_is_unknown() -> None:
    fetched = signed_ext(EXT_MANIFEST, STRANGER)

    assert refused(fetched, with_revoked(keyring(), retired(STRANGER, AFTER))) == (
        21,
        "key-unknown",
        f"the ext signature is by the key {keyid(STRANGER)}, "
        "which neither loader.conf nor the registry's keyring names",
        "if you trust that key, ask its owner for the .pub file and add it to loader.conf, "
        "or have the registry's root holders add it to the keyring",
    )


def test_compromised_key_beside_enough_pinned_ones_is_no_harm() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE, STRANGER)

    found = verify(fetched, with_revoked(keyring(), compromised(STRANGER)), CORE_MANIFEST)

    assert found.keyids == (keyid(CORE),)


def test_revoked_key_is_told_before_the_names_that_it_may_not_sign() -> None:
    ring = with_revoked(keyring(names='["image-*"]'), compromised(EXT))

    assert refused(signed_ext(EXT_MANIFEST), ring)[:2] == (22, "key-revoked")


@pytest.mark.property
@UNHURRIED
@given(
    created=moments(),
    since=st.none() | moments(),
    expires=st.none() | moments(),
    is_compromised=st.booleans(),
)
@example(created=MADE, since=MADE, expires=MADE, is_compromised=False)
@example(created=MADE, since=None, expires=MADE, is_compromised=False)
def test_key_counts_exactly_for_what_was_made_while_it_was_in_force(
    created: str, since: str | None, expires: str | None, is_compromised: bool
) -> None:
    made = manifest(created=created)
    ring = keyring() if expires is None else with_expiry(keyring(), EXT, expires)
    if is_compromised or since is not None:
        ring = with_revoked(ring, compromised(EXT) if is_compromised or since is None else retired(EXT, since))

    refusal = refusal_of(lambda: verify(signed_ext(made), ring, made))

    is_over = is_compromised or (since is not None and created >= since)
    is_late = expires is not None and created > expires
    assert (refusal.reason if refusal else None) == ("key-revoked" if is_over else "key-expired" if is_late else None)

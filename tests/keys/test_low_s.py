"""Signatures of high S: the same key's word on the same bytes, so that they verify, but nobody publishes them."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from keys.core_signature import P256_ORDER
from keys.verified import FetchedManifest, verify_manifest, verify_offered
from manifests.errors import SignatureMalformed
from manifests.manifest import Manifest
from manifests.parts import PluginType
from tests.keys.builders import CORE, CORE_TWO, UNHURRIED, expected, keyid, keyring, manifest, signed_core, signed_ext

EXT_MANIFEST = manifest()
CORE_MANIFEST = manifest(PluginType.CORE)
RING = keyring((CORE, CORE_TWO))


def high_der(signature: bytes) -> bytes:
    r, s = decode_dss_signature(signature)
    return encode_dss_signature(r, P256_ORDER - s)


def high_token(token: bytes) -> bytes:
    signed, _, signature = token.rpartition(b".")
    raw = base64.urlsafe_b64decode(signature + b"==")
    s = P256_ORDER - int.from_bytes(raw[32:], "big")
    return signed + b"." + base64.urlsafe_b64encode(raw[:32] + s.to_bytes(32, "big")).rstrip(b"=")


def high_core(*numbers: int, among: tuple[int, ...]) -> FetchedManifest:
    """Return a core release in which the signatures of these keys alone are of high S."""
    fetched = signed_core(CORE_MANIFEST, *among)
    high = {f"manifest.sig.{keyid(number)}" for number in numbers}
    return FetchedManifest(
        data=fetched.data,
        signatures={name: high_der(sig) if name in high else sig for name, sig in fetched.signatures.items()},
    )


def high_ext() -> FetchedManifest:
    fetched = signed_ext(EXT_MANIFEST)
    return FetchedManifest(
        data=fetched.data, signatures={"manifest.jws": high_token(fetched.signatures["manifest.jws"])}
    )


CASES = pytest.mark.parametrize(
    ("made", "fetched"),
    [
        (EXT_MANIFEST, high_ext()),
        (CORE_MANIFEST, high_core(CORE, among=(CORE,))),
        (CORE_MANIFEST, high_core(CORE_TWO, among=(CORE, CORE_TWO))),
        (CORE_MANIFEST, high_core(CORE, among=(CORE, CORE_TWO))),
    ],
    ids=["ext", "core", "second of two", "first of two"],
)


@CASES
def test_high_s_verifies_at_an_install(made: Manifest, fetched: FetchedManifest) -> None:
    found = verify_manifest(fetched, RING, expected(made))

    assert dict(found.signatures) == dict(fetched.signatures)


@CASES
def test_high_s_is_refused_at_a_publish(made: Manifest, fetched: FetchedManifest) -> None:
    with pytest.raises(SignatureMalformed) as caught:
        verify_offered(fetched, RING, made.registry)

    assert caught.value.message == (
        "the signature has an s above half of the curve's order, and a publish takes the low spelling alone"
    )
    assert caught.value.hint == "sign it again with `spm sign`"
    assert (caught.value.exit_code, caught.value.reason) == (20, "sig-malformed")


@pytest.mark.property
@UNHURRIED
@given(summary=st.text(alphabet="abc ", min_size=1, max_size=20).filter(str.strip))
def test_what_spm_signs_is_always_of_low_s(summary: str) -> None:
    core, ext = manifest(PluginType.CORE, summary=summary), manifest(summary=summary)

    verify_offered(signed_core(core, CORE, CORE_TWO), RING, core.registry)
    verify_offered(signed_ext(ext), RING, ext.registry)

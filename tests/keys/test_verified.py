"""From fetched to verified: every refusal of `verify_manifest`, with its whole message."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys import ext_signature
from keys.verified import (
    JWS_FILE,
    FetchedManifest,
    InstalledPlugin,
    VerifiedManifest,
    verify_manifest,
    verify_offered,
)
from manifests.errors import SpmError
from manifests.parts import Capabilities, PluginType, Variant
from manifests.versions import Version
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
    private,
    refusal_of,
    signed_core,
    signed_ext,
    verified,
)

EXT_MANIFEST = manifest()
CORE_MANIFEST = manifest(PluginType.CORE)
SIG = f"manifest.sig.{keyid(CORE)}"
UNUSED = "nothing of it was used; if it stays so, ask its publisher for a release signed by `spm sign`"
NO_MANIFEST = "its author signed what is no manifest: ask its publisher for another release"


def refused(fetched: FetchedManifest, asked: Any = None, ring: Any = None) -> tuple[int, str, str, str]:
    asked = asked or expected(EXT_MANIFEST)
    with pytest.raises(SpmError) as caught:
        verify_manifest(fetched, ring or keyring(), asked)
    message = caught.value.message
    # The refusals that could be about any release say in front which one they are about.
    named = f"`{asked.name}` {asked.version} is refused: "
    is_about_any = caught.value.exit_code in (20, 21, 22, 25) and caught.value.reason != "digest"
    assert message.startswith(named) == (is_about_any and "is listed with the class" not in message)
    return caught.value.exit_code, caught.value.reason, message.removeprefix(named), caught.value.hint


def expected_of(fetched: FetchedManifest, **changes: Any) -> Any:
    digest = hashlib.sha256(fetched.data).hexdigest()
    return replace(expected(EXT_MANIFEST, **changes), manifest_sha256=digest)


def test_ext_release_is_verified() -> None:
    fetched = signed_ext(EXT_MANIFEST)

    found = verify_manifest(fetched, keyring(), expected(EXT_MANIFEST))

    assert found.manifest == EXT_MANIFEST
    assert (found.data, found.sha256) == (fetched.data, hashlib.sha256(fetched.data).hexdigest())
    assert (found.keyids, dict(found.signatures)) == ((keyid(EXT),), dict(fetched.signatures))


def test_core_release_is_verified() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE)

    found = verify_manifest(fetched, keyring(), expected(CORE_MANIFEST))

    assert found.manifest == CORE_MANIFEST
    assert (found.keyids, dict(found.signatures)) == ((keyid(CORE),), dict(fetched.signatures))


def test_core_release_with_a_threshold_counts_every_pinned_key() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE, CORE_TWO)

    found = verify_manifest(fetched, keyring((CORE, CORE_TWO), threshold=2), expected(CORE_MANIFEST))

    assert found.keyids == tuple(sorted([keyid(CORE), keyid(CORE_TWO)]))


def test_release_of_a_variant_is_verified() -> None:
    made = manifest(variant=Variant(os="linux", cpu="x86_64"))

    assert verify_manifest(signed_ext(made), keyring(), expected(made)).manifest == made


def test_class_need_not_be_known_beforehand() -> None:
    verify_manifest(signed_ext(EXT_MANIFEST), keyring(), expected(EXT_MANIFEST, type=None))


def test_release_is_verified_where_none_was_asked_for() -> None:
    fetched = signed_ext(EXT_MANIFEST)

    found = verify_offered(fetched, keyring(), "team.example")

    assert found == verify_manifest(fetched, keyring(), expected(EXT_MANIFEST))


def test_signature_by_a_key_that_is_not_pinned_is_neither_counted_nor_kept() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE, STRANGER)

    found = verify_manifest(fetched, keyring(), expected(CORE_MANIFEST))

    assert (found.keyids, set(found.signatures)) == ((keyid(CORE),), {SIG})


def test_verified_states_are_made_by_the_verifiers_only(tmp_path: Any) -> None:
    found = verified()

    with pytest.raises(TypeError, match="VerifiedManifest is made by verify_manifest only"):
        VerifiedManifest(
            manifest=found.manifest,
            data=found.data,
            sha256=found.sha256,
            keyids=found.keyids,
            signatures=found.signatures,
            seal=None,
        )
    with pytest.raises(TypeError, match="InstalledPlugin is made by verify_tree only"):
        InstalledPlugin(verified=found, directory=tmp_path, stamps={}, seal=object())
    with pytest.raises((TypeError, ValueError)):
        replace(found, keyids=())  # type: ignore[call-arg]


def test_verified_signatures_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        verified().signatures["manifest.jws"] = b""  # type: ignore[index]


def test_unsigned_manifest_is_refused() -> None:
    assert refused(FetchedManifest(data=EXT_MANIFEST.to_bytes(), signatures={})) == (
        20,
        "unsigned",
        "the manifest has no signature",
        "ask its publisher to sign it (`spm sign`); there is no way to load an unsigned plugin",
    )


def test_other_bytes_than_the_index_says_are_refused_first() -> None:
    made = manifest(summary="Another")

    assert refused(signed_ext(made, STRANGER)) == (
        25,
        "digest",
        f"the manifest of audio-encoder 1.2.0 has the digest sha256:{hashlib.sha256(made.to_bytes()).hexdigest()}, "
        f"the index says sha256:{hashlib.sha256(EXT_MANIFEST.to_bytes()).hexdigest()}",
        "it was changed on its way or in the registry; nothing of it was used",
    )


def test_bytes_that_are_no_manifest_are_not_parsed_before_their_signature() -> None:
    fetched = replace(signed_ext(EXT_MANIFEST), data=b"\xff not a manifest")

    assert refused(fetched, expected_of(fetched))[:3] == (
        20,
        "sig-invalid",
        "manifest.jws carries other bytes than the manifest beside it: the manifest was changed after signing",
    )


def test_changed_core_manifest_is_refused_by_its_signature() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE)
    changed = replace(fetched, data=fetched.data.replace(b"1.2.0", b"1.3.0"))

    assert refused(changed, expected_of(changed))[:2] == (20, "sig-invalid")


def test_signed_bytes_that_are_not_canonical_are_refused() -> None:
    data = EXT_MANIFEST.to_bytes().replace(b'{"_type"', b'{ "_type"')
    token = ext_signature.sign(private(EXT), keyid(EXT), data)
    fetched = FetchedManifest(data=data, signatures={JWS_FILE: token})

    assert refused(fetched, expected_of(fetched)) == (
        25,
        "non-canonical",
        "the manifest is not in RFC 8785 canonical form",
        NO_MANIFEST,
    )


def test_manifest_beyond_the_bound_is_refused_before_any_check() -> None:
    fetched = FetchedManifest(data=b"x" * ((1 << 20) + 1), signatures={})

    assert refused(fetched, expected_of(fetched)) == (
        25,
        "too-big",
        "the manifest has 1048577 bytes, more than the 1048576 allowed",
        UNUSED,
    )


@pytest.mark.parametrize(
    "name", ["manifest.sig", "manifest.sig.AB", "manifest.sig." + "a" * 65, "../x", "manifest.JWS", ""]
)
def test_file_that_is_no_signature_file_is_refused(name: str) -> None:
    fetched = replace(signed_core(CORE_MANIFEST, CORE), signatures={name: b""})

    assert refused(fetched, expected(CORE_MANIFEST))[:3] == (
        20,
        "sig-malformed",
        f"{name!r} is not the name of a signature file: they are manifest.jws and manifest.sig.<key id>",
    )


def test_too_many_signatures_are_refused() -> None:
    fetched = replace(signed_core(CORE_MANIFEST, CORE), signatures={f"manifest.sig.{n:064x}": b"" for n in range(65)})

    assert refused(fetched, expected(CORE_MANIFEST))[:3] == (
        20,
        "sig-malformed",
        "the manifest has 65 signatures, more than the 64 allowed",
    )


def test_both_classes_of_signature_at_once_are_refused() -> None:
    signatures = {**signed_core(EXT_MANIFEST, CORE).signatures, **signed_ext(EXT_MANIFEST).signatures}

    assert refused(FetchedManifest(data=EXT_MANIFEST.to_bytes(), signatures=signatures)) == (
        20,
        "wrong-class",
        "the manifest has both core and ext signatures, a release is of one class",
        UNUSED,
    )


def test_core_plugin_signed_as_ext_is_refused() -> None:
    assert refused(signed_ext(CORE_MANIFEST), expected(CORE_MANIFEST)) == (
        20,
        "wrong-class",
        "the manifest says that it is of the class core, but its signature is of the class ext",
        UNUSED,
    )


def test_ext_plugin_signed_as_core_is_refused() -> None:
    assert refused(signed_core(EXT_MANIFEST, CORE))[:3] == (
        20,
        "wrong-class",
        "the manifest says that it is of the class ext, but its signature is of the class core",
    )


def test_core_signature_offered_as_a_token_is_refused() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE)
    offered = replace(fetched, signatures={JWS_FILE: fetched.signatures[SIG]})

    assert refused(offered, expected(CORE_MANIFEST))[:2] == (20, "sig-malformed")


def test_token_offered_as_a_core_signature_is_refused() -> None:
    fetched = signed_ext(EXT_MANIFEST)
    offered = replace(fetched, signatures={SIG: fetched.signatures[JWS_FILE]})

    assert refused(offered)[:2] == (20, "sig-malformed")


def test_class_other_than_the_index_says_is_refused() -> None:
    assert refused(signed_ext(EXT_MANIFEST), expected(EXT_MANIFEST, type=PluginType.CORE)) == (
        20,
        "wrong-class",
        "audio-encoder 1.2.0 is listed with the class core, but it is signed as ext",
        "the registry's index and its manifests do not fit; tell the one who runs it",
    )


@pytest.mark.parametrize(
    ("fetched", "kind"), [(signed_ext(EXT_MANIFEST, STRANGER), "ext"), (signed_core(CORE_MANIFEST, STRANGER), "core")]
)
def test_key_that_is_not_pinned_is_refused(fetched: FetchedManifest, kind: str) -> None:
    assert refused(fetched, expected_of(fetched)) == (
        21,
        "key-unknown",
        f"the {kind} signature is by the key {keyid(STRANGER)}, "
        "which neither loader.conf nor the registry's keyring names",
        "if you trust that key, ask its owner for the .pub file and add it to loader.conf, "
        "or have the registry's root holders add it to the keyring",
    )


def test_any_core_manifest_is_refused_while_no_core_key_is_pinned() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE)

    assert refused(fetched, expected(CORE_MANIFEST), keyring(()))[:2] == (21, "key-unknown")


@pytest.mark.parametrize(
    ("fetched", "role", "message"),
    [
        (
            signed_ext(EXT_MANIFEST, CORE),
            "ext",
            f"the ext signature is by the key {keyid(CORE)}, which is trusted for core plugins only",
        ),
        (
            signed_core(CORE_MANIFEST, EXT),
            "core",
            f"the core signature is by the key {keyid(EXT)}, which is trusted for ext plugins only",
        ),
        (
            signed_core(CORE_MANIFEST, CORE, EXT),
            "core",
            f"the core signature is by the key {keyid(EXT)}, which is trusted for ext plugins only",
        ),
    ],
)
def test_key_of_the_other_role_is_refused(fetched: FetchedManifest, role: str, message: str) -> None:
    assert refused(fetched, expected_of(fetched)) == (
        21,
        "key-role",
        message,
        f"ask its publisher to sign it with a key of the role {role}, "
        "or mend loader.conf if it pins this key for the wrong class",
    )


def test_too_few_core_signatures_are_refused() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE, STRANGER)

    assert refused(fetched, expected(CORE_MANIFEST), keyring((CORE, CORE_TWO), threshold=2)) == (
        21,
        "threshold-short",
        "the manifest has 1 of the 2 signatures by pinned core keys that are asked for",
        "ask its publisher for a release with enough signatures (the holders of core keys run `spm sign`)",
    )


@pytest.mark.parametrize(
    ("fetched", "hint"),
    [
        (signed_core(CORE_MANIFEST, CORE), "ask the other holders of core keys to sign it (`spm sign`)"),
        (signed_core(CORE_MANIFEST, EXT), "sign with a key of the role core"),
        (signed_core(EXT_MANIFEST, CORE, CORE_TWO), "sign it with a key of the role ext"),
    ],
    ids=["threshold", "role", "class"],
)
def test_who_publishes_is_told_how_to_sign(fetched: FetchedManifest, hint: str) -> None:
    refusal = refusal_of(lambda: verify_offered(fetched, keyring((CORE, CORE_TWO), threshold=2), "team.example"))

    assert refusal is not None
    assert refusal.hint == hint


def test_one_signature_under_two_key_ids_counts_for_neither() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE)
    twice = {SIG: fetched.signatures[SIG], f"manifest.sig.{keyid(CORE_TWO)}": fetched.signatures[SIG]}
    fetched = replace(fetched, signatures=twice)

    assert refused(fetched, expected(CORE_MANIFEST), keyring((CORE, CORE_TWO), threshold=2))[:2] == (20, "sig-invalid")


def test_wrong_signature_is_refused_even_where_enough_others_are_right() -> None:
    fetched = signed_core(CORE_MANIFEST, CORE, CORE_TWO)
    other = signed_core(manifest(PluginType.CORE, summary="Another"), CORE_TWO)
    fetched = replace(fetched, signatures={**fetched.signatures, **other.signatures})

    assert refused(fetched, expected(CORE_MANIFEST), keyring((CORE, CORE_TWO)))[:2] == (20, "sig-invalid")


def test_name_outside_the_patterns_of_the_key_is_refused() -> None:
    assert refused(signed_ext(EXT_MANIFEST), ring=keyring(names='["image-*", "audio"]')) == (
        21,
        "key-namespace",
        f"the key {keyid(EXT)} of `audio-team` may not sign audio-encoder: it is trusted for `image-*`, `audio` only",
        'if it should, add "audio-encoder" to the `names` of this key where it is pinned: '
        "in loader.conf or in the registry's keyring",
    )


def test_publisher_other_than_the_owner_of_the_key_is_refused() -> None:
    made = manifest(publisher="core-team")

    assert refused(signed_ext(made), expected(made)) == (
        21,
        "key-namespace",
        f"audio-encoder says it is published by `core-team`, but its key {keyid(EXT)} belongs to `audio-team`",
        "pack it again with the key's own publisher, or sign it with a key of that publisher",
    )


GREEDY = Capabilities(network=True, read=("/data", "/etc"), env=("TEAM",), processes=4, exec=True)


def test_asking_for_more_than_the_ceiling_is_refused_with_all_of_it() -> None:
    made = manifest(capabilities=GREEDY)
    ring = keyring(more='capabilities = { processes = 2, read = ["/data"] }\n')

    assert refused(signed_ext(made), expected(made), ring) == (
        42,
        "policy-denied",
        "audio-encoder 1.2.0 asks for network = true, exec = true, processes = 4 (at most 2), read '/etc', env 'TEAM': "
        "more than plugins of `audio-team` are allowed",
        "if it should be allowed, raise `capabilities` of this key where it is pinned: "
        "in loader.conf or in the registry's keyring",
    )


@pytest.mark.parametrize(
    "more",
    [
        "",
        'capabilities = { network = true, exec = true, processes = 4, read = ["/etc", "/data"], env = ["TEAM"] }\n',
    ],
    ids=["no ceiling", "ceiling met exactly"],
)
def test_asking_for_no_more_than_the_ceiling_is_accepted(more: str) -> None:
    made = manifest(capabilities=GREEDY)

    verify_manifest(signed_ext(made), keyring(more=more), expected(made))


def test_plugin_that_asks_for_nothing_fits_an_empty_ceiling() -> None:
    verify_manifest(signed_ext(EXT_MANIFEST), keyring(more="capabilities = {}\n"), expected(EXT_MANIFEST))


def test_manifest_for_another_registry_is_refused() -> None:
    made = manifest(registry="other.example")

    assert refused(signed_ext(made), expected(made, registry="team.example")) == (
        24,
        "mix",
        "audio-encoder 1.2.0 was made for the registry `other.example`, this one is `team.example`",
        "pack and sign it for this registry",
    )


@pytest.mark.parametrize(
    ("changes", "asked"),
    [
        ({"version": Version.parse("1.1.0")}, "audio-encoder 1.1.0"),
        ({"version": Version.parse("1.2.0+build.7")}, "audio-encoder 1.2.0+build.7"),
        ({"name": "log-mel"}, "log-mel 1.2.0"),
        ({"variant_tag": "linux-x86_64"}, "audio-encoder 1.2.0 (linux-x86_64)"),
    ],
)
def test_sound_manifest_of_another_release_is_refused(changes: dict[str, Any], asked: str) -> None:
    assert refused(signed_ext(EXT_MANIFEST), expected(EXT_MANIFEST, **changes)) == (
        24,
        "mix",
        f"{asked} was asked for, but what was served is audio-encoder 1.2.0, signed and sound",
        "the registry's index and its manifests do not fit; tell the one who runs it",
    )


@pytest.mark.property
@UNHURRIED
@given(data=st.data(), is_core=st.booleans())
def test_any_flipped_bit_of_the_manifest_is_refused(data: st.DataObject, is_core: bool) -> None:
    fetched = signed_core(CORE_MANIFEST, CORE) if is_core else signed_ext(EXT_MANIFEST)
    changed = bytearray(fetched.data)
    bit = data.draw(st.integers(0, len(changed) * 8 - 1))
    changed[bit // 8] ^= 1 << (bit % 8)
    fetched = replace(fetched, data=bytes(changed))

    assert refused(fetched, expected_of(fetched, type=None))[:2] == (20, "sig-invalid")
    assert refused(fetched, expected(EXT_MANIFEST))[:2] == (25, "digest")

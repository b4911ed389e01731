"""Attacks on the signed index by name: each ends in its reason, and what the host remembers stays as it was."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from securesystemslib.signer import CryptoSigner, SSlibKey
from tuf.api.metadata import Metadata, MetaFile, Root, Timestamp

from keys.trust import open_trust, state_of
from keys.trust_state import TrustState
from manifests.errors import RegistryTimeout, SpmError
from tests.keys.trust_builders import (
    NOW,
    REGISTRY,
    Trust,
    make_trust,
    new_signer,
    refreshed,
    signed,
)

DAY = timedelta(days=1)
OLD_STATE = "somebody serves an old state of the registry, or it was restored from an old backup; "
ASK = "tell the registry's administrator; nothing was changed"


@pytest.fixture
def registry() -> Trust:
    """Give a registry that has published twice."""
    made = make_trust()
    made.publish_shard("log-mel", b'{"releases":1}')
    return made


def refused(registry: Trust, held: TrustState | None, now: Any = None) -> SpmError:
    """Return the refusal of a refresh; the state that the host holds is a value, which nothing can have changed."""
    with pytest.raises(SpmError) as caught:
        registry.seen_by(held, now)
    return caught.value


def told(error: SpmError) -> tuple[int, str, str]:
    return error.exit_code, error.reason, error.message


# Rollback, of each role


def test_rollback_of_the_timestamp_is_refused(registry: Trust) -> None:
    old = registry.files["timestamp.json"]
    registry.publish_shard("log-mel", b'{"releases":2}')
    held = registry.state

    registry.files["timestamp.json"] = old

    error = refused(registry, held)
    assert told(error) == (
        24,
        "rollback",
        "the registry's index goes back: timestamp 2 was served, and this host has seen timestamp 3",
    )
    assert error.hint == OLD_STATE + ASK


def test_rollback_of_the_snapshot_by_a_newer_timestamp_is_refused(registry: Trust) -> None:
    held = registry.state

    registry.versions["snapshot"] = 0
    registry.publish_snapshot()
    registry.publish_timestamp()

    assert told(refused(registry, held)) == (
        24,
        "rollback",
        "the registry's index goes back: timestamp 3 lists snapshot 1, and this host has seen snapshot 2",
    )


@pytest.mark.parametrize("part", ["targets", "bin-0"])
def test_rollback_of_a_part_of_the_snapshot_is_refused(registry: Trust, part: str) -> None:
    registry.publish_targets()
    registry.publish_bins({"bin-0"})
    registry.publish_snapshot()
    registry.publish_timestamp()
    held = registry.state

    registry.listed[f"{part}.json"].version = 1
    registry.publish_snapshot()
    registry.publish_timestamp()

    assert told(refused(registry, held)) == (
        24,
        "rollback",
        "the registry's index goes back: snapshot 4 lists an older version of a part than this host has seen",
    )


def test_rollback_of_the_root_is_refused(registry: Trust) -> None:
    registry.publish_root()
    held = registry.state

    registry.files["3.root.json"] = registry.files["1.root.json"]

    assert told(refused(registry, held)) == (
        24,
        "rollback",
        "the registry's index goes back: root 1 was served, and this host has seen root 2",
    )


def test_a_bin_that_vanishes_from_the_snapshot_is_a_rollback(registry: Trust) -> None:
    held = registry.state

    del registry.listed["bin-0.json"]
    registry.publish_snapshot()
    registry.publish_timestamp()

    error = refused(registry, held)
    assert told(error) == (
        24,
        "rollback",
        "the registry's new snapshot no longer lists what an earlier one did: "
        "New snapshot is missing info for 'bin-0.json'",
    )


def test_an_older_edition_of_the_keyring_is_a_rollback(registry: Trust) -> None:
    older = registry.keyring
    registry.publish_keyring(older.following())
    held = registry.state

    registry.publish_keyring(older)

    assert told(refused(registry, held)) == (
        24,
        "rollback",
        "the keyring is edition 1, and this host has seen edition 2",
    )


# Freeze, of each role


@pytest.mark.parametrize("role", ["timestamp", "snapshot", "targets"])
def test_freeze_is_seen_when_a_role_has_expired(role: str) -> None:
    registry = make_trust(lifetimes={role: DAY})
    held = registry.state

    error = refused(registry, held, NOW + 2 * DAY)

    assert told(error) == (
        23,
        "index-expired",
        f"the registry's `{role}` expired at 2026-12-02T12:00:00Z, and this host's clock says 2026-12-03T12:00:00Z: "
        "either the registry no longer renews it, or somebody serves an old one, or the clock is wrong",
    )
    assert error.hint == "look at the clock (`date -u`); if it is right, tell the registry's administrator"


def test_freeze_is_seen_when_the_root_has_expired() -> None:
    registry = make_trust(lifetimes={"root": DAY})
    held = registry.state

    error = refused(registry, held, NOW + 2 * DAY)

    assert told(error) == (
        23,
        "root-expired",
        "root 1 of the registry expired at 2026-12-02T12:00:00Z, and this host's clock says 2026-12-03T12:00:00Z: "
        "either its holders have not renewed it, or the clock is wrong",
    )
    assert error.hint == (
        "look at the clock (`date -u`); if it is right, the root holders must run `spm-registry root rotate`"
    )


def test_an_expired_bin_is_seen_when_a_shard_is_asked_for(tmp_path: Path) -> None:
    registry = make_trust(lifetimes={"bin": DAY})
    index = open_trust(tmp_path, registry.conf(), None, registry, NOW + 2 * DAY)
    index.refresh()

    with pytest.raises(SpmError) as caught:
        index.target("index/log-mel.json", 100)

    assert (caught.value.exit_code, caught.value.reason) == (23, "index-expired")


def test_an_expired_intermediate_root_is_passed_on_the_way_to_a_fresh_one() -> None:
    registry = make_trust(lifetimes={"root": DAY})
    held = registry.state
    registry.lifetimes["root"] = 300 * DAY
    registry.publish_root()

    assert registry.seen_by(held, NOW + 2 * DAY).root_version == 2


# Clock


def test_a_clock_before_what_was_seen_is_suspect(registry: Trust) -> None:
    held = registry.state

    error = refused(registry, held, NOW - 2 * timedelta(hours=1))

    assert told(error) == (
        23,
        "clock-suspect",
        "this host's clock says 2026-12-01T10:00:00Z, but the registry's index was signed at 2026-12-01T12:00:00Z: "
        "one of the two clocks is wrong, and with such a clock nothing can be told to have expired",
    )
    assert error.hint == (
        "set this host's clock (`date -u` shows it); if it is right, tell the registry's administrator"
    )
    assert registry.asked[-1] != "timestamp.json", "with such a clock nothing is asked"


def test_an_index_from_the_future_makes_the_clock_suspect_at_first_sight(registry: Trust) -> None:
    assert refused(registry, None, NOW - timedelta(hours=1, seconds=1)).reason == "clock-suspect"
    assert registry.seen_by(None, NOW - timedelta(hours=1)).issued == NOW


# The age of a timestamp


def undated(timestamp: Timestamp) -> None:
    del timestamp.unrecognized_fields["issued"]


def long_lived(timestamp: Timestamp) -> None:
    timestamp.expires = NOW + 8 * DAY


@pytest.mark.parametrize(
    ("edit", "what"),
    [(undated, "does not say when it was signed"), (long_lived, "is to live until 2026-12-09T12:00:00Z")],
)
def test_a_timestamp_that_hides_its_age_is_refused(
    registry: Trust, edit: Callable[[Timestamp], None], what: str
) -> None:
    held = registry.state
    registry.publish_timestamp(edit)

    assert told(refused(registry, held)) == (
        31,
        "bad-response",
        f"the registry's timestamp 3 {what}; it must be dated, and live for 7 days at most",
    )


def test_a_newer_timestamp_that_is_dated_earlier_is_a_rollback(registry: Trust) -> None:
    held = registry.state
    registry.lifetimes["timestamp"] = DAY
    registry.publish_timestamp(lambda timestamp: timestamp.unrecognized_fields.update(issued="2026-12-01T11:59:59Z"))

    assert told(refused(registry, held)) == (
        24,
        "rollback",
        "the registry's timestamp 3 is dated 2026-12-01T11:59:59Z, "
        "and this host has seen an earlier version dated 2026-12-01T12:00:00Z",
    )


# Mix-and-match, fork


def test_a_root_of_another_registry_by_the_same_root_key_is_a_mix(registry: Trust) -> None:
    held = registry.state
    other = make_trust("other.example", root_signers=registry.root_signers)
    other.publish_root()
    registry.files["2.root.json"] = other.files["2.root.json"]

    error = refused(registry, held)

    assert told(error) == (24, "mix", "root 2 is of the registry 'other.example', loader.conf names `team.example`")
    assert error.hint == (
        "check `registry.url` and `registry.id` in loader.conf; one root key may serve several registries"
    )


def test_targets_that_say_of_no_registry_that_it_is_their_own_are_a_mix(registry: Trust) -> None:
    registry.publish_targets(lambda targets: targets.unrecognized_fields.clear())
    registry.publish_snapshot()
    registry.publish_timestamp()

    assert told(refused(registry, None)) == (
        24,
        "mix",
        "targets 2 says of no registry that it is its own, loader.conf names `team.example`",
    )


def test_a_snapshot_of_another_moment_is_a_mix(registry: Trust) -> None:
    registry.publish_snapshot()
    registry.files["2.snapshot.json"] = registry.files["3.snapshot.json"]

    error = refused(registry, None)

    assert error.exit_code == 24
    assert error.reason == "mix"
    assert error.message.startswith("`2.snapshot.json` is not the file that the registry's signed index lists: ")


def test_a_bin_of_another_moment_is_a_mix(registry: Trust, tmp_path: Path) -> None:
    name = next(name for name in registry.files if name.startswith("2.bin-"))
    registry.files[name] = registry.files[f"1{name[1:]}"]
    index = open_trust(tmp_path, registry.conf(), None, registry, NOW)
    index.refresh()

    with pytest.raises(SpmError) as caught:
        index.target("index/log-mel.json", 100)

    assert (caught.value.exit_code, caught.value.reason) == (24, "mix")


def test_targets_that_are_not_those_listed_are_a_mix(registry: Trust) -> None:
    registry.publish_targets()
    registry.files["1.targets.json"] = registry.files["2.targets.json"]

    assert refused(registry, None).reason == "mix"


def test_a_root_that_skips_a_version_is_a_mix(registry: Trust) -> None:
    held = registry.state
    registry.publish_root()
    registry.publish_root()
    registry.files["2.root.json"] = registry.files["3.root.json"]

    assert told(refused(registry, held)) == (
        24,
        "mix",
        "`2.root.json` was asked for, but what was served is version 3 of `root`",
    )


def test_another_registry_behind_the_url_is_a_mix(registry: Trust) -> None:
    other = make_trust()

    with pytest.raises(SpmError) as caught:
        open_trust(Path("unused"), registry.conf(), None, other, NOW)

    found = hashlib.sha256(other.files["1.root.json"]).hexdigest()
    assert told(caught.value) == (
        24,
        "mix",
        f"`1.root.json` of the registry has the digest sha256:{found}, "
        f"but loader.conf pins sha256:{registry.root_pin.sha256}",
    )


def test_a_keyring_of_another_registry_is_a_mix(registry: Trust) -> None:
    registry.publish_keyring(replace(registry.keyring, registry="other.example", serial=2))

    assert told(refused(registry, None)) == (
        24,
        "mix",
        "the keyring is of the registry `other.example`, loader.conf names `team.example`",
    )


def test_a_keyring_in_a_bin_is_never_taken(registry: Trust) -> None:
    registry.publish_targets(lambda targets: targets.targets.clear())
    registry.publish_snapshot()
    registry.publish_timestamp()

    assert told(refused(registry, None)) == (
        31,
        "bad-response",
        "targets 2 are not of a registry of spm: they list no keyring",
    )


def test_two_timestamps_of_one_version_are_a_fork(registry: Trust) -> None:
    held = registry.state
    seen = signed_digest(registry.files["timestamp.json"])

    registry.versions["timestamp"] -= 1
    registry.publish_snapshot()
    registry.publish_timestamp()

    served = signed_digest(registry.files["timestamp.json"])
    error = refused(registry, held)
    assert told(error) == (
        24,
        "fork",
        "the registry shows two different indexes as version 2: this host has seen "
        f"sha256:{seen}, and now sha256:{served} is served; both are signed",
    )
    assert error.context == {"version": 2, "seen": seen, "served": served}


def test_the_same_timestamp_signed_twice_is_no_fork(registry: Trust) -> None:
    held = registry.state

    again = Metadata[Timestamp].from_bytes(registry.files["timestamp.json"])
    again.sign(registry.online)
    assert again.to_bytes() != registry.files["timestamp.json"], "ECDSA signatures differ each time"
    registry.files["timestamp.json"] = again.to_bytes()

    assert registry.seen_by(held) == held


def signed_digest(data: bytes) -> str:
    return hashlib.sha256(Metadata[Timestamp].from_bytes(data).signed_bytes).hexdigest()


# Fast-forward and recovery


def test_a_fast_forward_is_recovered_from_by_a_new_online_key(registry: Trust) -> None:
    honest = dict(registry.versions)
    registry.versions |= {"timestamp": 1 << 40, "snapshot": 1 << 40, "bin-0": 1 << 40}
    registry.publish_bins({"bin-0"})
    registry.publish_snapshot()
    registry.publish_timestamp()
    held = registry.state

    registry.versions |= honest
    registry.rotate_online()

    recovered = registry.seen_by(held)
    assert recovered.root_version == 2
    assert Metadata[Timestamp].from_bytes((recovered.timestamp or "").encode()).signed.version == 3


# Keys: rotation chains, thresholds, kinds


def test_a_host_walks_every_root_of_a_chain(registry: Trust) -> None:
    held = registry.state
    for _ in range(5):
        before = registry.root_signers
        registry.root_signers = [new_signer()]
        registry.publish_root(*before)
    registry.publish_targets()
    registry.publish_snapshot()
    registry.publish_timestamp()

    state = registry.seen_by(held)

    assert state.root_version == 6
    assert [hashlib.sha256(root.encode()).hexdigest() for root in state.roots] == [
        hashlib.sha256(registry.files[f"{version}.root.json"]).hexdigest() for version in range(1, 7)
    ]


def test_a_new_root_that_the_old_keys_did_not_sign_is_refused(registry: Trust) -> None:
    held = registry.state
    registry.root_signers = [new_signer()]
    registry.publish_root()

    error = refused(registry, held)

    assert told(error) == (21, "key-unknown", "`2.root.json` of the registry is signed by no key that may sign it")


def test_a_new_root_that_its_own_keys_did_not_sign_is_refused(registry: Trust) -> None:
    held = registry.state
    before, registry.root_signers = registry.root_signers, [new_signer()]
    registry.publish_root(*before)
    root = Metadata[Root].from_bytes(registry.files["2.root.json"])
    registry.files["2.root.json"] = signed(root.signed, *before)

    assert told(refused(registry, held)) == (
        21,
        "key-unknown",
        "`2.root.json` of the registry is signed by no key that may sign it",
    )


def test_a_root_that_was_changed_after_signing_is_refused(registry: Trust) -> None:
    held = registry.state
    data = registry.publish_root()
    registry.files["2.root.json"] = data.replace(b'"consistent_snapshot":true', b'"consistent_snapshot":true,"x":1')
    assert registry.files["2.root.json"] != data

    assert told(refused(registry, held)) == (
        20,
        "sig-invalid",
        "`2.root.json` of the registry was changed after signing: its signature does not fit",
    )


def test_a_root_without_signatures_is_refused(registry: Trust) -> None:
    held = registry.state
    registry.publish_root()
    registry.files["2.root.json"] = signed(Metadata[Root].from_bytes(registry.files["2.root.json"]).signed)

    assert told(refused(registry, held)) == (20, "unsigned", "`2.root.json` of the registry has no signature")


def two_of_three() -> Trust:
    return make_trust(root_signers=[new_signer() for _ in range(3)], threshold=2)


def test_one_of_two_needed_signatures_is_too_few() -> None:
    registry = two_of_three()
    held = registry.state
    registry.publish_root()
    root = Metadata[Root].from_bytes(registry.files["2.root.json"]).signed
    registry.files["2.root.json"] = signed(root, registry.root_signers[0])

    error = refused(registry, held)

    assert told(error) == (
        21,
        "threshold-short",
        "`2.root.json` of the registry has 1 of the 2 signatures that it needs",
    )
    assert error.context["keyids"] == [registry.root_signers[0].public_key.keyid]


def test_one_signature_written_twice_counts_once() -> None:
    registry = two_of_three()
    held = registry.state
    registry.publish_root()
    root = Metadata[Root].from_bytes(registry.files["2.root.json"]).signed
    once = signed(root, registry.root_signers[0])
    start, end = once.index(b"[{"), once.index(b"}]")
    registry.files["2.root.json"] = once[: end + 1] + b"," + once[start + 1 : end + 1] + once[end + 1 :]

    assert refused(registry, held).reason == "bad-response"


def test_one_key_under_two_ids_is_refused_before_it_could_count_twice() -> None:
    registry = make_trust()
    held = registry.state
    twin = CryptoSigner(private_of(registry.root_signers[0]), alias(registry.root_signers[0], "ab" * 32))
    registry.publish_root(twin, edit=lambda root: add_root_key(root, twin))

    error = refused(registry, held)

    own = registry.root_signers[0].public_key.keyid
    assert told(error) == (
        21,
        "key-unknown",
        f"root 2 has a key under the id '{'ab' * 32}' whose material has the id {own}",
    )


def private_of(signer: CryptoSigner) -> Any:
    return signer._private_key


def alias(signer: CryptoSigner, keyid: str) -> SSlibKey:
    return SSlibKey.from_crypto(private_of(signer).public_key(), keyid=keyid)


def add_root_key(root: Root, signer: CryptoSigner) -> None:
    root.add_key(signer.public_key, "root")


@pytest.mark.parametrize("threshold", [0, -1, 2, 1 << 31])
def test_a_threshold_that_no_keys_can_meet_or_nobody_need_is_refused(registry: Trust, threshold: int) -> None:
    held = registry.state
    data = registry.publish_root()
    wanted = f'"threshold":{threshold}'.encode()
    registry.files["2.root.json"] = data.replace(b'"threshold":1', wanted, 1)
    assert wanted in registry.files["2.root.json"]

    assert refused(registry, held).reason == ("bad-response" if threshold < 1 else "threshold-short")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (CryptoSigner.generate_rsa, "rsa/rsassa-pss-sha256"),
        (CryptoSigner.generate_ed25519, "ed25519/ed25519"),
        (lambda: p384_signer(), "ecdsa/ecdsa-sha2-nistp384"),
    ],
    ids=["RSA", "Ed25519", "P-384"],
)
@pytest.mark.parametrize("role", ["root", "timestamp"])
def test_keys_of_other_kinds_are_refused(
    registry: Trust, make: Callable[[], CryptoSigner], kind: str, role: str
) -> None:
    held = registry.state
    other = make()
    registry.publish_root(edit=lambda root: root.add_key(other.public_key, role))

    assert told(refused(registry, held)) == (
        20,
        "alg-refused",
        f"root 2 has a key of the kind {kind}: spm takes ecdsa/ecdsa-sha2-nistp256 alone",
    )


def p384_signer() -> CryptoSigner:
    private_key = ec.generate_private_key(ec.SECP384R1())
    return CryptoSigner(private_key, SSlibKey.from_crypto(private_key.public_key()))


def test_p384_material_under_the_name_of_p256_is_refused(registry: Trust) -> None:
    held = registry.state
    other = p384_signer()
    other.public_key.scheme = "ecdsa-sha2-nistp256"
    registry.publish_root(edit=lambda root: root.add_key(other.public_key, "root"))

    assert refused(registry, held).reason == "alg-refused"


def test_an_online_key_may_not_be_a_root_key(registry: Trust) -> None:
    held = registry.state
    online = registry.online.public_key
    registry.publish_root(edit=lambda root: root.add_key(online, "root"))

    assert told(refused(registry, held)) == (
        21,
        "key-role",
        f"root 2 lets the online key {online.keyid} sign what only offline keys may",
    )


def test_a_stolen_online_key_cannot_change_the_keyring(registry: Trust) -> None:
    held = registry.state
    registry.root_signers = [registry.online]
    registry.publish_keyring(registry.keyring.following())

    assert told(refused(registry, held)) == (
        21,
        "key-unknown",
        "`2.targets.json` of the registry is signed by no key that may sign it",
    )


@pytest.mark.parametrize("file", ["timestamp.json", "2.snapshot.json", "1.targets.json"])
def test_metadata_by_a_stranger_is_refused(registry: Trust, file: str) -> None:
    metadata: Any = Metadata[Any].from_bytes(registry.files[file])
    registry.files[file] = signed(metadata.signed, new_signer())
    if file != "timestamp.json":  # its digest is listed, so that the listing is told first
        assert refused(registry, None).reason == "mix"
        return

    assert told(refused(registry, None)) == (
        21,
        "key-unknown",
        "`timestamp.json` of the registry is signed by no key that may sign it",
    )


# Sizes and times


def test_endless_metadata_is_stopped_at_its_bound(registry: Trust) -> None:
    held = registry.state
    registry.files["timestamp.json"] = b" " * (1 << 20)

    assert told(refused(registry, held)) == (
        25,
        "too-big",
        "the registry's `timestamp.json` has more than the 16384 bytes allowed",
    )


def test_a_snapshot_longer_than_listed_is_stopped_at_the_listed_length(registry: Trust) -> None:
    held = registry.state
    registry.publish_snapshot()
    registry.publish_timestamp()
    length = len(registry.files["3.snapshot.json"])
    registry.files["3.snapshot.json"] += b" "

    assert told(refused(registry, held)) == (
        25,
        "too-big",
        f"the registry's `3.snapshot.json` has more than the {length} bytes allowed",
    )


def test_a_shard_shorter_than_listed_is_of_the_wrong_size(registry: Trust, tmp_path: Path) -> None:
    path = next(path for path in registry.files if path.startswith("targets/index/"))
    registry.files[path] = b"{}"
    index = open_trust(tmp_path, registry.conf(), None, registry, NOW)
    index.refresh()

    with pytest.raises(SpmError) as caught:
        index.target("index/log-mel.json", 100)

    assert told(caught.value) == (25, "size", "`index/log-mel.json` has 2 bytes, the signed index lists 14")


def test_another_shard_of_the_same_size_has_the_wrong_digest(registry: Trust, tmp_path: Path) -> None:
    path = next(path for path in registry.files if path.startswith("targets/index/"))
    expected = hashlib.sha256(registry.files[path]).hexdigest()
    registry.files[path] = b'{"releases":9}'
    index = open_trust(tmp_path, registry.conf(), None, registry, NOW)
    index.refresh()

    with pytest.raises(SpmError) as caught:
        index.target("index/log-mel.json", 100)

    found = hashlib.sha256(b'{"releases":9}').hexdigest()
    assert told(caught.value) == (
        25,
        "digest",
        f"`index/log-mel.json` has the digest sha256:{found}, the signed index lists sha256:{expected}",
    )


def test_a_shard_larger_than_any_shard_may_be_is_not_even_asked_for(registry: Trust, tmp_path: Path) -> None:
    index = open_trust(tmp_path, registry.conf(), None, registry, NOW)
    index.refresh()
    registry.asked.clear()

    with pytest.raises(SpmError) as caught:
        index.target("index/log-mel.json", 13)

    assert told(caught.value) == (
        25,
        "too-big",
        "the index lists 14 bytes for `index/log-mel.json`, more than the 13 allowed",
    )
    assert not [path for path in registry.asked if path.startswith("targets/")]


@pytest.mark.parametrize("file", ["2.root.json", "timestamp.json", "3.snapshot.json", "2.targets.json"])
def test_what_the_transport_refuses_comes_out_as_it_is(registry: Trust, file: str) -> None:
    held = registry.state
    registry.publish_keyring(registry.keyring.following())
    slow = RegistryTimeout("it was too slow and was given up", hint="later")

    def fetch(path: str, max_bytes: int) -> bytes:
        if path == file:
            raise slow
        return registry(path, max_bytes)

    with pytest.raises(RegistryTimeout) as caught:
        refreshed(fetch, registry.conf(), held, NOW)

    assert caught.value is slow


@pytest.mark.parametrize("file", ["timestamp.json", "2.snapshot.json", "1.targets.json"])
def test_metadata_that_the_registry_lacks_is_a_bad_response(registry: Trust, file: str) -> None:
    del registry.files[file]

    assert told(refused(registry, None)) == (
        31,
        "bad-response",
        f"the registry has no `{file}`, which its own index needs",
    )


def test_a_shard_that_the_registry_lacks_is_never_no_such_plugin(registry: Trust, tmp_path: Path) -> None:
    path = next(path for path in registry.files if path.startswith("targets/index/"))
    del registry.files[path]
    index = open_trust(tmp_path, registry.conf(), None, registry, NOW)
    index.refresh()

    with pytest.raises(SpmError) as caught:
        index.target("index/log-mel.json", 100)

    assert told(caught.value) == (
        31,
        "bad-response",
        "the registry lists `index/log-mel.json` and does not have it",
    )
    assert index.target("index/unheard-of.json", 100) is None


def test_a_snapshot_may_list_other_versions_than_its_length_tells(registry: Trust) -> None:
    registry.listed["targets.json"] = MetaFile(2)
    registry.publish_snapshot()
    registry.publish_timestamp()
    registry.files["2.targets.json"] = registry.files["1.targets.json"]

    assert told(refused(registry, None)) == (
        24,
        "mix",
        "`2.targets.json` was asked for, but what was served is version 1 of `targets`",
    )


def test_nothing_of_the_host_is_touched_by_all_this(registry: Trust, tmp_path: Path) -> None:
    held = registry.state
    before = held.to_bytes()
    registry.files["timestamp.json"] = b"{}"
    index = open_trust(tmp_path, registry.conf(), held, registry, NOW)

    with pytest.raises(SpmError) as caught:
        index.refresh()

    assert caught.value.reason == "bad-response"
    assert held.to_bytes() == before
    assert state_of(index, registry.conf()) == held
    assert held.registry == REGISTRY

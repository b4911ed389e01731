"""What the thief of an online key cannot do, though all that it signs verifies: each try ends in a reason."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tuf.api.metadata import Delegations, Metadata, MetaFile, SuccinctRoles, TargetFile, Targets

from keys.trust import TrustedIndex, open_trust
from keys.trust_state import TrustState
from manifests.errors import SpmError
from tests.keys.trust_builders import NOW, Trust, make_trust, meta_file, new_signer, signed

SHARD = "index/log-mel.json"
FORK_HINT = "keep both for evidence and tell the registry's administrator: its online key may be in other hands"


@pytest.fixture
def trust() -> Trust:
    """Give a registry with one plugin."""
    made = make_trust()
    made.publish_shard("log-mel", b'{"releases":1}')
    return made


def told(error: SpmError) -> tuple[int, str, str]:
    return error.exit_code, error.reason, error.message


def refused(trust: Trust, held: TrustState | None) -> SpmError:
    with pytest.raises(SpmError) as caught:
        trust.seen_by(held)
    return caught.value


def opened(trust: Trust, folder: Path) -> TrustedIndex:
    index = open_trust(folder, trust.conf(), None, trust, NOW)
    index.refresh()
    return index


def serve_bin(trust: Trust, change: Callable[[Targets], None]) -> str:
    """Serve the bin of the shard with a change, and return its role."""
    role = next(name.split(".")[1] for name in trust.files if name.startswith("2.bin-"))
    targets = Metadata[Targets].from_bytes(trust.files[f"2.{role}.json"]).signed
    change(targets)
    trust.files[f"2.{role}.json"] = data = signed(targets, trust.online)
    trust.listed[f"{role}.json"] = meta_file(2, data)
    trust.publish_snapshot()
    trust.publish_timestamp()
    return role


def test_a_listed_length_without_end_is_refused_before_anything_is_asked_for(trust: Trust) -> None:
    def lie(timestamp: Any) -> None:
        timestamp.snapshot_meta = MetaFile(2, 1 << 60, {"sha256": "0" * 64})

    trust.publish_timestamp(edit=lie)
    trust.asked.clear()

    assert told(refused(trust, None)) == (
        25,
        "too-big",
        "the registry's signed index lists 1152921504606846976 bytes for `2.snapshot.json`, "
        "more than the 4000000 allowed",
    )
    assert trust.asked[-1] == "timestamp.json"


def test_a_bin_that_hands_shards_on_is_refused(trust: Trust, tmp_path: Path) -> None:
    stranger = new_signer()

    def hand_on(targets: Targets) -> None:
        key = stranger.public_key
        targets.delegations = Delegations({key.keyid: key}, succinct_roles=SuccinctRoles([key.keyid], 1, 1, "deep"))

    role = serve_bin(trust, hand_on)
    index = opened(trust, tmp_path)

    with pytest.raises(SpmError) as caught:
        index.target(SHARD, 100)

    assert told(caught.value) == (31, "bad-response", f"the bin `{role}` 2 hands shards on, which no bin may")


@pytest.mark.parametrize("hashes", [{"sha256": "../../v1/x"}, {"sha512": "0" * 128}, {"sha256": "A" * 64}])
def test_a_digest_that_leads_elsewhere_is_never_asked_for(trust: Trust, tmp_path: Path, hashes: dict[str, str]) -> None:
    serve_bin(trust, lambda targets: targets.targets.update({SHARD: TargetFile(14, hashes, SHARD)}))
    index = opened(trust, tmp_path)

    with pytest.raises(SpmError) as caught:
        index.target(SHARD, 100)

    assert told(caught.value) == (
        31,
        "bad-response",
        "the registry lists `index/log-mel.json` without a SHA-256 digest of 64 lower-case hex digits",
    )
    assert not any(path.startswith("targets/index") for path in trust.asked)


def test_another_snapshot_of_a_version_that_was_seen_is_a_fork(trust: Trust) -> None:
    held = trust.state
    seen = hashlib.sha256(trust.files["2.snapshot.json"]).hexdigest()

    trust.versions["snapshot"] -= 1
    trust.publish_snapshot(edit=lambda snapshot: setattr(snapshot, "expires", NOW + timedelta(days=3)))
    trust.publish_timestamp()

    listed = hashlib.sha256(trust.files["2.snapshot.json"]).hexdigest()
    error = refused(trust, held)
    assert told(error) == (
        24,
        "fork",
        f"the registry shows two different snapshots as version 2: this host has seen sha256:{seen}, "
        f"and now sha256:{listed} is listed",
    )
    assert error.hint == FORK_HINT
    assert error.context == {"version": 2, "seen": seen, "served": listed}


@pytest.mark.parametrize("issued", ["yesterday", 7, "2026-12-01 12:00:00", [], {"x": 1}])
def test_a_timestamp_issued_at_no_time_is_refused(trust: Trust, issued: Any) -> None:
    trust.publish_timestamp(edit=lambda timestamp: timestamp.unrecognized_fields.update(issued=issued))

    assert told(refused(trust, None)) == (
        31,
        "bad-response",
        f"`timestamp` says that it was issued at {str(issued)!r}, which is no time",
    )


def test_metadata_that_says_more_than_is_signed_in_it_is_refused(trust: Trust) -> None:
    document = json.loads(trust.files["timestamp.json"])
    document["signed"]["meta"]["more.json"] = {"version": 1}
    trust.files["timestamp.json"] = json.dumps(document).encode()

    assert told(refused(trust, None)) == (
        31,
        "bad-response",
        "`timestamp.json` is not the metadata of a registry: it says more, or otherwise, than what is signed in it",
    )


def test_a_time_spelled_in_another_way_is_no_longer_what_was_signed(trust: Trust) -> None:
    honest = trust.files["timestamp.json"]
    trust.files["timestamp.json"] = honest.replace(b"T12:00:00Z", b"T12:0:0Z")
    assert trust.files["timestamp.json"] != honest

    assert refused(trust, None).reason == "bad-response"


# What came in a trust file


def test_an_imported_keyring_stands_until_the_registry_serves_one_as_new(trust: Trust) -> None:
    ahead = make_ahead(trust)
    held = replace(trust.state, imported_targets=ahead.targets, imported_keyring=ahead.keyring)

    assert trust.seen_by(held) == held
    assert trust.seen_by(held).root_keyring().serial == 2

    trust.publish_keyring(trust.keyring.following())
    assert trust.seen_by(held) == trust.state


def make_ahead(trust: Trust) -> TrustState:
    other = make_trust(root_signers=trust.root_signers, online=trust.online)
    other.publish_keyring(other.keyring.following())
    return other.state


def test_two_keyrings_of_one_edition_are_a_fork(trust: Trust) -> None:
    held = trust.state
    trust.publish_keyring(trust.keyring.with_revoked_manifest("ab" * 32))

    assert told(refused(trust, held)) == (
        24,
        "fork",
        "there are two different keyrings as edition 1, both signed by root keys",
    )

"""Trust files: what root keys signed goes from host to host without a network, and never backwards."""

import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tuf.api.metadata import Metadata, Root

from keys.keyring import RootPin
from keys.trust import MAX_TRUST_FILE_BYTES, import_trust, trust_file
from keys.trust_state import TrustState
from manifests.canonical import canonical_bytes
from manifests.errors import SpmError
from tests.keys.trust_builders import NOW, Trust, make_trust, new_signer, signed

DAY = timedelta(days=1)
LATER = "ask the root holders for their newest file; nothing was changed"


def refused(trust: Trust, held: TrustState | None, data: bytes, **changes: Any) -> SpmError:
    with pytest.raises(SpmError) as caught:
        import_trust(replace(trust.conf(), **changes.pop("conf", {})), held, data, changes.pop("now", NOW))
    return caught.value


def told(error: SpmError) -> tuple[int, str, str]:
    return error.exit_code, error.reason, error.message


def edited(data: bytes, **members: Any) -> bytes:
    return canonical_bytes({**json.loads(data), **members})


def revoking() -> tuple[Trust, TrustState]:
    """Return a registry that has published a second keyring and root, and what a host held before that."""
    trust = make_trust()
    held = trust.state
    trust.publish_root()
    trust.publish_keyring(trust.keyring.with_revoked_manifest("ab" * 32).following())
    return trust, held


def test_a_trust_file_brings_roots_and_keyring_and_leaves_the_index_as_it_is() -> None:
    trust, held = revoking()
    newer = trust.state

    state = import_trust(trust.conf(), held, trust_file(newer), NOW)

    assert state == replace(held, roots=newer.roots, imported_targets=newer.targets, imported_keyring=newer.keyring)
    assert state.root_keyring().keyring.revoked_manifests == {"ab" * 32}
    assert import_trust(trust.conf(), state, trust_file(newer), NOW) == state


def test_a_trust_file_is_not_taken_by_a_clock_that_stands_before_what_was_seen() -> None:
    trust, held = revoking()

    error = refused(trust, held, trust_file(trust.state), now=NOW - 2 * DAY)

    assert told(error) == (
        23,
        "clock-suspect",
        "this host's clock says 2026-11-29T12:00:00Z, but the registry's index was signed at 2026-12-01T12:00:00Z: "
        "one of the two clocks is wrong, and with such a clock nothing can be told to have expired",
    )


def test_a_trust_file_is_enough_for_a_host_that_never_had_a_network() -> None:
    trust, _ = revoking()

    state = import_trust(trust.conf(), None, trust_file(trust.state), NOW)

    assert state.root_keyring().serial == 2
    assert (state.timestamp, state.issued, state.expires) == (None, None, None)
    assert trust_file(state) == trust_file(trust.state)


def test_a_host_that_pins_a_later_root_takes_the_file_from_there() -> None:
    trust, _ = revoking()
    later = RootPin(version=2, sha256=hashlib.sha256(trust.files["2.root.json"]).hexdigest())

    state = import_trust(replace(trust.conf(), root=later), None, trust_file(trust.state), NOW)

    assert state.roots == trust.state.roots[1:]
    assert state.root_sha256 == later.sha256


def test_an_older_trust_file_is_a_rollback() -> None:
    trust, before = revoking()

    assert told(refused(trust, trust.state, trust_file(before))) == (
        24,
        "rollback",
        "the trust file has targets 1, and this host has seen targets 2",
    )


def test_an_older_keyring_under_newer_targets_is_a_rollback() -> None:
    trust, before = revoking()
    held = trust.state
    trust.keyring = make_trust().keyring
    trust.publish_keyring(trust.keyring)

    assert told(refused(trust, held, trust_file(trust.state))) == (
        24,
        "rollback",
        "the keyring is edition 1, and this host has seen edition 2",
    )
    assert before.root_keyring().serial == 1


def test_a_trust_file_of_another_registry_is_a_mix() -> None:
    trust, held = revoking()

    assert told(refused(trust, held, edited(trust_file(trust.state), registry="other.example"))) == (
        24,
        "mix",
        "the trust file is of the registry `other.example`, loader.conf names `team.example`",
    )


def test_a_trust_file_that_does_not_begin_at_the_pinned_root_is_a_mix() -> None:
    trust, other = make_trust(), make_trust()

    assert told(refused(trust, None, trust_file(other.state))) == (
        24,
        "mix",
        f"the trust file has no root with the digest sha256:{trust.root_pin.sha256}, which loader.conf pins",
    )


def test_targets_of_another_registry_in_a_trust_file_are_refused_though_its_name_is_ours() -> None:
    trust, other = make_trust(), make_trust()
    data = edited(trust_file(trust.state), targets=other.state.targets, keyring=other.state.keyring)

    assert told(refused(trust, None, data)) == (
        21,
        "key-unknown",
        "`targets` 1 of the trust file is signed by no key that may sign it",
    )


def test_a_keyring_that_the_targets_do_not_list_is_a_mix() -> None:
    trust, held = revoking()
    data = edited(trust_file(trust.state), keyring=held.keyring)

    error = refused(trust, None, data)

    assert (error.exit_code, error.reason) == (24, "mix")
    assert error.message.startswith("the keyring in the trust file is not the one that its targets 2 list: ")


def with_root(trust: Trust, held: TrustState) -> bytes:
    """Return the trust file of what a host holds, with the registry's second root after it."""
    return edited(trust_file(held), roots=[*held.roots, trust.files["2.root.json"].decode()])


def test_a_root_that_the_one_before_did_not_sign_is_refused() -> None:
    trust = make_trust()
    held = trust.state
    trust.root_signers = [new_signer()]
    trust.publish_root()

    assert told(refused(trust, held, with_root(trust, held))) == (
        21,
        "key-unknown",
        "`root` 2 of the trust file is signed by no key that may sign it",
    )


def test_a_root_that_nothing_in_the_file_leads_to_is_refused() -> None:
    trust = make_trust()
    held = trust.state
    trust.publish_root()
    trust.publish_root()
    roots = json.loads(trust_file(trust.state))["roots"]

    error = refused(trust, held, edited(trust_file(trust.state), roots=[roots[0], roots[2]]))

    assert (*told(error), error.hint) == (
        31,
        "bad-response",
        "the trust file holds root 3, and no root 2 that leads to it",
        "ask the root holders for a file that has root 2; nothing was changed",
    )


def test_a_root_whose_version_is_no_number_is_refused() -> None:
    trust = make_trust()
    held = trust.state
    trust.publish_root()
    *roots, last = json.loads(trust_file(trust.state))["roots"]
    strange = json.loads(last)
    strange["signed"]["version"] = True

    error = refused(trust, held, edited(trust_file(trust.state), roots=[*roots, json.dumps(strange)]))

    assert told(error) == (31, "bad-response", "the trust file holds a `root` whose version is no number")


def test_one_of_two_needed_signatures_is_too_few() -> None:
    trust = make_trust(root_signers=[new_signer(), new_signer()], threshold=2)
    held = trust.state
    root = Metadata[Root].from_bytes(trust.publish_root()).signed
    trust.files["2.root.json"] = signed(root, trust.root_signers[0])

    error = refused(trust, held, with_root(trust, held))

    assert told(error) == (
        21,
        "threshold-short",
        "`root` 2 of the trust file has 1 of the 2 signatures that it needs",
    )
    assert error.context == {"keyids": [trust.root_signers[0].public_key.keyid], "threshold": 2, "root": 1}


def test_a_root_that_was_changed_after_signing_is_refused() -> None:
    trust = make_trust()
    held = trust.state
    trust.files["2.root.json"] = trust.publish_root().replace(b'"expires":"2026-12-31', b'"expires":"2027-12-31')

    assert told(refused(trust, held, with_root(trust, held))) == (
        20,
        "sig-invalid",
        "`root` 2 of the trust file was changed after signing: its signature does not fit",
    )


@pytest.mark.parametrize(("role", "exit_reason"), [("root", "root-expired"), ("targets", "index-expired")])
def test_expired_metadata_in_a_trust_file_is_refused_by_the_given_time(role: str, exit_reason: str) -> None:
    trust = make_trust(lifetimes={role: DAY})
    data = trust_file(trust.state)

    assert import_trust(trust.conf(), None, data, NOW).root_version == 1
    assert told(refused(trust, None, data, now=NOW + DAY)) == (
        23,
        exit_reason,
        f"`{role}` 1 of the trust file expired at 2026-12-02T12:00:00Z, "
        "and this host's clock says 2026-12-02T12:00:00Z",
    )


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        ({"_type": "spm.trust-file/2"}, "type", "`_type`: 'spm.trust-file/2' is not one of `spm.trust-file/1`"),
        ({"more": 1}, "type", "`more` is not a known member"),
        ({"roots": []}, "type", "`roots` is empty"),
        ({"targets": 7}, "type", "`targets`: it is not text"),
        ({"roots": [7]}, "type", "`roots`: it is not text"),
    ],
)
def test_what_is_no_trust_file_is_refused(change: dict[str, Any], reason: str, message: str) -> None:
    trust = make_trust()

    error = refused(trust, None, edited(trust_file(trust.state), **change))

    assert told(error) == (25, reason, f"the trust file is refused: {message}")


def test_a_trust_file_in_another_form_or_size_is_refused() -> None:
    trust = make_trust()
    data = trust_file(trust.state)

    assert refused(trust, None, b" " + data).reason == "non-canonical"
    assert told(refused(trust, None, b" " * (MAX_TRUST_FILE_BYTES + 1))) == (
        25,
        "too-big",
        f"the trust file has {MAX_TRUST_FILE_BYTES + 1} bytes, more than the {MAX_TRUST_FILE_BYTES} allowed",
    )


def test_a_state_of_another_pin_is_not_lengthened() -> None:
    trust, other = make_trust(), make_trust()

    error = refused(trust, other.state, trust_file(trust.state))

    assert (error.exit_code, error.reason) == (26, "conf-syntax")

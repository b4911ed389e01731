"""What a store remembers of its registry, and what follows from it at a load, offline."""

import json
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from keys.pinned_keys import Keyring, RevocationReason, RevokedKey
from keys.trust_state import TrustState, read_trust_state, trusted_keyring
from manifests.canonical import canonical_bytes
from manifests.errors import SpmError
from tests.keys.builders import CORE, EXT, keyid, keyring
from tests.keys.trust_builders import NOW, make_trust, write_state

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LEARN = "`spm trust init` learns it from the registry"
DAMAGED = "the store was changed by other hands than spm's; remove its folder `trust`, then `spm trust init`"


def refusal(root: Path, conf: Any, now: Any = NOW) -> SpmError:
    with pytest.raises(SpmError) as caught:
        trusted_keyring(root, conf, now)
    return caught.value


def told(error: SpmError) -> tuple[int, str, str]:
    return error.exit_code, error.reason, error.message


def test_a_state_survives_being_written_and_read() -> None:
    state = make_trust().state
    imported = replace(state, imported_targets=state.targets, imported_keyring=state.keyring)

    assert TrustState.from_bytes(state.to_bytes()) == state
    assert TrustState.from_bytes(imported.to_bytes()) == imported


def test_a_state_says_when_its_index_was_issued_and_until_when_it_holds() -> None:
    state = make_trust(lifetimes={"timestamp": DAY}).state

    assert (state.root_version, state.issued, state.expires) == (1, NOW, NOW + DAY)


def test_a_load_takes_the_keys_of_loader_conf_and_the_revocations_of_the_registry(tmp_path: Path) -> None:
    trust = make_trust()
    revoked = RevokedKey(keyid=keyid(EXT), reason=RevocationReason.COMPROMISED)
    trust.publish_keyring(trust.keyring.with_revoked(revoked).following())
    write_state(tmp_path, trust.state)

    found = trusted_keyring(tmp_path, trust.conf(keyring((CORE,), (EXT,))), NOW + 900 * DAY)

    assert [key.keyid for key in found.core_keys] == [keyid(CORE)]
    assert [key.keyid for key in found.ext_keys] == [keyid(EXT)]
    assert found.revoked_keys == (revoked,)


def test_the_newest_keyring_counts_wherever_it_came_from(tmp_path: Path) -> None:
    trust = make_trust()
    old = trust.state
    trust.publish_keyring(trust.keyring.with_revoked_manifest("ab" * 32).following())
    new = trust.state

    imported = replace(old, imported_targets=new.targets, imported_keyring=new.keyring)
    served = replace(new, imported_targets=old.targets, imported_keyring=old.keyring)

    for state in (imported, served):
        assert state.root_keyring().keyring.revoked_manifests == {"ab" * 32}


def test_a_store_without_a_state_decides_nothing(tmp_path: Path) -> None:
    error = refusal(tmp_path, make_trust().conf())

    assert told(error) == (
        3,
        "unknown:revocations",
        f"{tmp_path / 'trust'} is empty, so that nothing says which keys were revoked",
    )
    assert error.hint == LEARN


@pytest.mark.parametrize("is_dangling", [True, False])
def test_a_link_for_the_trust_does_not_count_as_a_store_without_one(tmp_path: Path, is_dangling: bool) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "trust").symlink_to("nowhere" if is_dangling else "empty")

    with pytest.raises(SpmError) as caught:
        read_trust_state(tmp_path)

    assert told(caught.value) == (25, "link", f"{tmp_path}/trust is a symbolic link, the store has none")
    assert caught.value.hint == DAMAGED


def test_a_loader_conf_without_a_root_decides_nothing(tmp_path: Path) -> None:
    trust = make_trust()
    write_state(tmp_path, trust.state)

    error = refusal(tmp_path, replace(trust.conf(), root=None))

    assert (error.exit_code, error.reason) == (26, "conf-syntax")
    assert error.message.startswith("loader.conf pins no root of the registry `team.example`")


def test_a_state_of_another_root_is_refused(tmp_path: Path) -> None:
    trust, other = make_trust(), make_trust()
    write_state(tmp_path, other.state)

    assert told(refusal(tmp_path, trust.conf())) == (
        26,
        "conf-syntax",
        f"the store trusts the registry `team.example` by the root sha256:{other.root_pin.sha256}, "
        f"but loader.conf pins `team.example` by sha256:{trust.root_pin.sha256}",
    )


def test_a_state_is_refused_beyond_the_age_that_loader_conf_allows(tmp_path: Path) -> None:
    trust = make_trust()
    write_state(tmp_path, trust.state)
    conf = replace(trust.conf(), load_max_age_days=2)

    assert trusted_keyring(tmp_path, conf, NOW + 2 * DAY) == Keyring(core_threshold=1, core_keys=(), ext_keys=())
    error = refusal(tmp_path, conf, NOW + 2 * DAY + timedelta(seconds=1))
    assert told(error) == (
        23,
        "index-expired",
        "the last known index was signed at 2026-12-01T12:00:00Z, and it is 2026-12-03T12:00:01Z: "
        "older than the 2 days that loader.conf allows at a load",
    )
    assert error.hint == "`spm trust update`, or bring in a newer state with `spm trust import FILE`"


def test_a_state_without_an_age_is_refused_where_loader_conf_asks_for_one(tmp_path: Path) -> None:
    trust = make_trust()
    write_state(tmp_path, replace(trust.state, timestamp=None, snapshot=None))

    assert told(refusal(tmp_path, replace(trust.conf(), load_max_age_days=2))) == (
        3,
        "unknown:revocations",
        "the trust state does not say when it was signed, and loader.conf sets `load.max_age_days`",
    )


def test_a_clock_before_what_was_seen_is_suspect_at_a_load(tmp_path: Path) -> None:
    trust = make_trust()
    write_state(tmp_path, trust.state)

    assert trusted_keyring(tmp_path, trust.conf(), NOW - HOUR).core_threshold == 1
    assert told(refusal(tmp_path, trust.conf(), NOW - HOUR - timedelta(seconds=1))) == (
        23,
        "clock-suspect",
        "this host's clock says 2026-12-01T10:59:59Z, but the registry's index was signed at 2026-12-01T12:00:00Z: "
        "one of the two clocks is wrong, and with such a clock nothing can be told to have expired",
    )


def test_the_newest_state_of_a_store_is_read(tmp_path: Path) -> None:
    trust = make_trust()
    write_state(tmp_path, trust.state, 9)
    trust.publish_shard("log-mel", b"{}")
    write_state(tmp_path, trust.state, 10)
    (tmp_path / "trust" / "cache").mkdir()

    assert read_trust_state(tmp_path) == trust.state


def test_a_state_that_vanishes_while_it_is_read_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = make_trust().state
    write_state(tmp_path, state, 2)
    listed = [["000001.json"], ["000001.json", "000002.json"]]

    monkeypatch.setattr(os, "listdir", lambda _: listed.pop(0))

    assert read_trust_state(tmp_path) == state


def test_a_store_whose_states_keep_vanishing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listdir", lambda _: ["000001.json"])

    with pytest.raises(SpmError) as caught:
        read_trust_state(tmp_path)

    assert told(caught.value) == (
        25,
        "file-set",
        f"the trust states in {tmp_path / 'trust'} vanish faster than they can be read",
    )


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        ("roots", [], "`roots` is empty"),
        ("roots", [7], "`roots`: it is not text"),
        ("registry", "No Registry", "`registry`: 'No Registry' is not a registry id"),
        ("root_sha256", "x", "`root_sha256`: 'x' is not a SHA-256 digest of 64 lower-case hex digits"),
        ("timestamp", "", "`timestamp`: it is not text"),
        ("_type", "spm.trust/2", "`_type`: 'spm.trust/2' is not one of `spm.trust/1`"),
        ("more", 1, "`more` is not a known member"),
    ],
)
def test_a_damaged_state_is_refused_when_it_is_read(tmp_path: Path, member: str, value: Any, message: str) -> None:
    path = write_state(tmp_path, make_trust().state)
    path.write_bytes(canonical_bytes({**json.loads(path.read_bytes()), member: value}))

    with pytest.raises(SpmError) as caught:
        read_trust_state(tmp_path)

    assert told(caught.value) == (25, "type", f"{path} is refused: {message}")


@pytest.mark.parametrize("text", ["x", "[]", "{}", '{"signed":7}', "7", "[" * 100_000])
def test_a_state_whose_metadata_is_none_is_refused_at_a_load(tmp_path: Path, text: str) -> None:
    trust = make_trust()
    write_state(tmp_path, replace(trust.state, timestamp=text))

    error = refusal(tmp_path, trust.conf())

    assert told(error) == (25, "type", "the trust state holds metadata without a signed part")
    assert error.hint == DAMAGED


@pytest.mark.parametrize("moment", ["yesterday", 7, [], {}])
def test_a_state_with_no_time_as_its_time_is_refused_at_a_load(tmp_path: Path, moment: Any) -> None:
    trust = make_trust()
    write_state(tmp_path, replace(trust.state, timestamp=json.dumps({"signed": {"issued": moment}})))

    assert told(refusal(tmp_path, trust.conf())) == (25, "type", f"the trust state has {moment!r} as a time")


def test_a_state_without_a_keyring_decides_nothing(tmp_path: Path) -> None:
    trust = make_trust()
    write_state(tmp_path, replace(trust.state, keyring=None))

    assert told(refusal(tmp_path, trust.conf())) == (
        3,
        "unknown:revocations",
        "the trust state has no keyring, so that nothing says which keys were revoked",
    )

"""A glance at what is revoked: by ids, from the newest state, and nothing where that cannot be read."""

import json
from pathlib import Path

import pytest

from keys.pinned_keys import RevocationReason, RevokedKey
from keys.public_key import KeyId
from keys.revoked_glance import RevokedGlance, glance
from tests.keys.trust_builders import make_trust, write_state

ANA, BEN, CAT, DIGEST, OTHER = (letter * 64 for letter in "abcde")


@pytest.mark.parametrize(
    ("threshold", "keyids", "is_core", "digest", "is_marked"),
    [
        (1, (BEN,), False, OTHER, False),
        (1, (ANA,), False, OTHER, True),
        (1, (ANA, BEN), False, OTHER, False),
        (1, (ANA, BEN), True, OTHER, False),
        (2, (ANA, BEN), True, OTHER, True),
        (2, (ANA, BEN, CAT), True, OTHER, False),
        (2, (BEN,), True, OTHER, False),
        (1, (BEN,), False, DIGEST, True),
    ],
)
def test_a_plugin_is_marked_where_too_few_of_its_keys_are_left(
    threshold: int, keyids: tuple[str, ...], *, is_core: bool, digest: str, is_marked: bool
) -> None:
    revoked = RevokedGlance(keyids=frozenset({ANA}), manifests=frozenset({DIGEST}), core_threshold=threshold)

    assert revoked.marks(digest, keyids, is_core=is_core) is is_marked


def test_the_newest_keyring_of_the_newest_state_counts(tmp_path: Path) -> None:
    trust = make_trust()
    write_state(tmp_path, trust.state, 1)
    compromised = RevokedKey(keyid=KeyId(ANA), reason=RevocationReason.COMPROMISED)
    retired = RevokedKey(keyid=KeyId(BEN), reason=RevocationReason.RETIRED, since="2026-06-01T00:00:00Z")
    keyring = trust.keyring.with_revoked(compromised).with_revoked(retired).with_revoked_manifest(DIGEST)
    trust.publish_keyring(keyring.following())
    write_state(tmp_path, trust.state, 2)

    found = glance(tmp_path)

    assert found == RevokedGlance(keyids=frozenset({ANA}), manifests=frozenset({DIGEST}))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"keyring": 1}', '{"keyring": "[]"}', '{"keyring": "{}"}', "[" * 9000]
)
def test_what_cannot_be_read_marks_nothing(tmp_path: Path, text: str) -> None:
    assert glance(tmp_path) == RevokedGlance()
    (tmp_path / "trust").mkdir()
    assert glance(tmp_path) == RevokedGlance()
    (tmp_path / "trust" / "000001.json").write_text(text)

    assert glance(tmp_path) == RevokedGlance()


@pytest.mark.parametrize("keyids", [[[]], [{}], 1, [{"keyid": []}], None])
def test_a_keyring_of_another_form_marks_nothing(tmp_path: Path, keyids: object) -> None:
    keyring = {"serial": 1, "revoked_keys": keyids, "revoked_manifests": [], "core": {"threshold": 1}}
    (tmp_path / "trust").mkdir()
    (tmp_path / "trust" / "000001.json").write_text(json.dumps({"keyring": json.dumps(keyring)}))

    assert glance(tmp_path) == RevokedGlance()

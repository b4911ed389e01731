"""Who may publish: keys of loader.conf and of the signed keyring document, by the registry's own clock."""

from collections.abc import Callable

import pytest

from keys.key_files import KeyRole
from keys.pinned_keys import RevocationReason, RevokedKey
from keys.root_keyring import RootKeyring
from manifests.errors import ConfigError
from manifests.parts import PluginType
from registry.services.online_key import newest_online_key
from registry.services.policy import Caller, Role
from registry.services.publishing import open_upload
from registry.services.setup import make_registry
from registry.services.signed_index import OfflineFiles
from registry.storage.site import open_site
from tests.registry.roots import HandMadeRoot
from tests.registry.team import START, Key, Team, make_key, manifest_of, problem

# The clock of the tests stands at 2027-01-15T08:00:00Z, and the manifest says 2026-12-01T09:00:00Z.
NOW = "2027-01-15T08:00:00Z"
BEFORE = "2027-01-15T07:59:59Z"
Edit = Callable[[RootKeyring, Key], RootKeyring]


def _change(team: Team, edit: Callable[[RootKeyring], RootKeyring]) -> None:
    """Adopt an edited keyring document."""
    with team.site.database.reading() as records:
        row, version = records.signed.current("keyring"), records.signed.version("targets")
    assert row is not None
    data = edit(RootKeyring.from_bytes(row.data)).following().to_bytes()
    root = HandMadeRoot(team.site, START)
    targets = root.targets(version + 1, newest_online_key(team.site), data)
    root.replace(OfflineFiles(targets=targets, keyring=data), START)


@pytest.fixture
def second(team: Team) -> Key:
    """Give a key that loader.conf does not pin."""
    return make_key(team.ext.directory, "second", KeyRole.EXT)


def _listed_until(expires: str | None) -> Edit:
    return lambda keyring, key: keyring.with_key(key.public, ("audio-*",), expires)


def _revoked(reason: RevocationReason, since: str | None) -> Edit:
    def edit(keyring: RootKeyring, key: Key) -> RootKeyring:
        listed = keyring.with_key(key.public, ("audio-*",), None)
        return listed.with_revoked(RevokedKey(keyid=key.public.keyid, reason=reason, since=since))

    return edit


@pytest.mark.parametrize(
    "edit", [_listed_until(None), _listed_until(NOW), _revoked(RevocationReason.RETIRED, "2027-01-15T08:00:01Z")]
)
def test_a_key_of_the_keyring_document_publishes(team: Team, second: Key, edit: Edit) -> None:
    _change(team, lambda keyring: edit(keyring, second))

    answer = team.submit(team.admin, manifest_of(), key=second)

    assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(
    ("edit", "reason", "message"),
    [
        (
            _listed_until(BEFORE),
            "key-expired",
            f"the key KEYID expired at {BEFORE}, and it is {NOW}: it publishes nothing new",
        ),
        (
            _revoked(RevocationReason.RETIRED, NOW),
            "key-revoked",
            f"the key KEYID was retired at {NOW}, and it is {NOW}: it publishes nothing new",
        ),
    ],
)
def test_a_key_that_is_over_publishes_nothing_whatever_the_manifest_says_of_its_time(
    team: Team, second: Key, edit: Edit, reason: str, message: str
) -> None:
    _change(team, lambda keyring: edit(keyring, second))
    before = team.state()

    answer = team.submit(team.admin, manifest_of(), key=second)

    told = message.replace("KEYID", second.public.keyid)
    assert answer.status_code == 422
    body = problem(answer)
    assert body["detail"] == f"the release cannot be published: 1 problem: {told}"
    assert body["hint"] == "sign it with a key that is in force, then publish again"
    assert body["problems"] == [{"type": reason, "detail": told}]
    assert team.state() == before


def test_a_compromised_key_publishes_nothing(team: Team) -> None:
    _change(
        team,
        lambda keyring: keyring.with_revoked(
            RevokedKey(keyid=team.ext.public.keyid, reason=RevocationReason.COMPROMISED, since=None)
        ),
    )
    before = team.state()

    answer = team.submit(team.admin, manifest_of())

    assert answer.status_code == 422
    assert [each["type"] for each in problem(answer)["problems"]] == ["key-revoked"]
    assert team.state() == before


def test_an_expired_core_key_is_no_harm_while_the_others_suffice(team: Team) -> None:
    late = make_key(team.core.directory, "late", KeyRole.CORE, "core-team")
    _change(team, lambda keyring: keyring.with_key(late.public, (), BEFORE))
    manifest = manifest_of(name="fused-gelu", type=PluginType.CORE)

    refused = team.submit(team.admin, manifest, key=late)
    accepted = team.submit(team.admin, manifest, key=team.core)

    assert (refused.status_code, accepted.status_code) == (422, 201)
    assert [each["type"] for each in problem(refused)["problems"]] == ["key-expired"]


def test_without_a_root_nothing_is_published(team: Team) -> None:
    root = team.root.parent / "rootless"
    make_registry(root, "team.local", "http://127.0.0.1:8080", START)
    site = open_site(root)
    body = team.body(manifest_of())

    with pytest.raises(ConfigError) as caught:
        open_upload(site, body, Caller(role=Role.ADMIN, label="admin"), START)

    assert caught.value.message == (
        f"the registry in {root} has no root of trust, without which no client can verify its index"
    )
    assert caught.value.hint == f"make one: `spm-registry root init FILE.pub --root {root}`"
    site.database.close()

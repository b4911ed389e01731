"""Publishing what should not be published: refused before anything is sent, or by the registry as a whole."""

import json
from pathlib import Path

import pytest

from keys import core_signature
from keys.key_files import load_private
from tests.e2e.commands import Client
from tests.e2e.snapshots import snapshot, unchanged
from tests.e2e.sources import write_source
from tests.e2e.team import Team
from tests.fakes import tampering_proxy
from tests.fakes.tampering_proxy import TamperingProxy

pytestmark = pytest.mark.e2e


def state(team: Team) -> dict[str, object]:
    """Return what anyone could see changed in the registry: its serial and its files."""
    serial = json.loads(team.fetch("/v1/registry"))["serial"]
    files = {path: seen for path, seen in snapshot(team.root).items() if not path.startswith("registry.db")}
    return {"serial": serial, "files": files}


def test_an_unsigned_release_is_refused_before_anything_is_sent(team: Team, tmp_path: Path) -> None:
    packed = team.pack(write_source(tmp_path, "beta", "7.0.0"))
    before = state(team)

    with unchanged(team.publisher.home):
        refusal = team.publisher.spm("publish", packed)

    refusal.refused(20, "unsigned", f"`{packed}` is not signed", f"sign it: `spm sign {packed} --key NAME`")
    assert state(team) == before


def test_a_core_key_does_not_sign_an_ext_plugin(team: Team, tmp_path: Path) -> None:
    packed = team.pack(write_source(tmp_path, "beta", "7.1.0"))

    with unchanged(team.publisher.home):
        refusal = team.publisher.spm("sign", packed, "--key", "core")

    refusal.refused(
        21,
        "key-role",
        "`beta` is of the class ext, and the key `core` has the role core",
        "sign it with a key made by `spm keys new --role ext`",
    )


def test_a_core_signature_on_an_ext_plugin_is_refused_by_the_registry(team: Team, tmp_path: Path) -> None:
    packed = team.pack(write_source(tmp_path, "beta", "7.2.0"))
    signature = core_signature.sign(load_private(team.keys / "core.key", None), (packed / "manifest.json").read_bytes())
    (packed / f"manifest.sig.{team.keyids['core']}").write_bytes(signature)
    before = state(team)

    with unchanged(team.publisher.home):
        refusal = team.publisher.spm("publish", packed)

    refusal.refused(
        20,
        "wrong-class",
        "the manifest says that it is of the class ext, but its signature is of the class core",
        "sign it with a key of the role ext",
    )
    assert state(team) == before


def test_a_key_that_the_registry_does_not_pin_is_refused(team: Team, tmp_path: Path) -> None:
    packed = team.pack(write_source(tmp_path, "beta", "7.3.0"))
    team.key("stranger", "ext")
    team.publisher.spm("sign", packed, "--key", "stranger").ok()
    before = state(team)

    with unchanged(team.publisher.home):
        refusal = team.publisher.spm("publish", packed)

    refusal.refused(
        21,
        "key-unknown",
        f"the ext signature is by the key {team.keyids['stranger']}, "
        "which neither loader.conf nor the registry's keyring names",
        "ask an admin of this registry to pin your key: `spm-registry key add FILE.pub`",
    )
    assert state(team) == before


def test_other_bytes_under_a_published_version_are_refused(team: Team, tmp_path: Path) -> None:
    packed = team.pack(write_source(tmp_path, "beta", "1.0.0", files={"more.bin": b"more"}))
    team.publisher.spm("sign", packed, "--key", "ext").ok()
    before = state(team)

    with unchanged(team.publisher.home):
        refusal = team.publisher.spm("publish", packed)

    refusal.refused(
        30,
        "version-exists",
        "`beta` 1.0.0 is published here with other bytes",
        "a published version never changes: publish the new bytes under a new version",
    )
    assert state(team) == before


def test_a_token_is_never_sent_where_a_redirect_points(team: Team, wire: TamperingProxy, tmp_path: Path) -> None:
    packed = team.pack(write_source(tmp_path, "beta", "7.4.0"))
    team.publisher.spm("sign", packed, "--key", "ext").ok()
    token = json.loads((team.publisher.home / "config" / "spm" / "credentials.json").read_text())[team.url]
    publisher = team.client(tmp_path / "publisher", wire.url)
    publisher.spm("login", said=token + "\n").ok()

    with TamperingProxy(team.url) as elsewhere, unchanged(publisher.home):
        wire.alter("/v1/uploads", tampering_proxy.redirect(elsewhere.url + "/v1/uploads"))
        refusal = publisher.spm("publish", packed)

    refusal.refused(
        31,
        "bad-response",
        f"`{wire.url}/v1/uploads` answered 302 and points to '{elsewhere.url}/v1/uploads', but spm follows no redirect",
        "if the registry has moved, write where it is now as `registry.url` in loader.conf",
    )
    assert wire.seen[-1].headers["authorization"] == f"Bearer {token}"
    assert elsewhere.seen == []


def test_a_false_token_is_not_kept(client: Client) -> None:
    with unchanged(client.home):
        refusal = client.spm("login", said="spm_false\n")

    refusal.refused(30, "auth", "this registry does not know the token", "log in again with `spm login`")


def test_publishing_without_a_token_asks_for_one(team: Team, client: Client, tmp_path: Path) -> None:
    packed = team.pack(write_source(tmp_path, "beta", "7.5.0"))
    team.publisher.spm("sign", packed, "--key", "ext").ok()

    with unchanged(client.home):
        refusal = client.spm("publish", packed)

    refusal.refused(30, "auth", f"there is no token for the registry at `{team.url}`", "`spm login` keeps one")

"""Attacks on the signed index, by real commands over real HTTP: each ends in its reason and changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256 as sha256_of
from pathlib import Path

import pytest
from tuf.api.metadata import Metadata

from keys.trust_state import MOMENT
from tests.e2e.commands import Client
from tests.e2e.snapshots import unchanged
from tests.fakes import tampering_proxy
from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry
from tests.fakes.tampering_proxy import TamperingProxy

pytestmark = pytest.mark.e2e

DAY = timedelta(days=1)
CLOCK = "look at the clock (`date -u`); if it is right, "
ASK = "tell the registry's administrator; nothing was changed"
OLD = "somebody serves an old state of the registry, or it was restored from an old backup; "
ALTERED = "it was changed on its way or in the registry; nothing of it was used"


@dataclass
class Scene:
    """A simulated registry, a proxy before it, and a machine that has installed `beta` through the proxy."""

    registry: SimulatedRegistry
    wire: TamperingProxy
    client: Client

    def refused(self, code: int, reason: str, message: str, hint: str = "", *, command: str = "install alpha") -> None:
        """Assert that a command is refused like this and changes nothing; `{now}` stands for the clock's reading."""
        with unchanged(self.client.home):
            answer = self.client.spm(*command.split())
        context = answer.document["error"]["context"]
        answer.refused(code, reason, message.format(now=context.get("now")), hint)
        assert self.client.installed() == {"beta": "1.0.0"}

    @property
    def files(self) -> dict[str, bytes]:
        return self.registry.index.files


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    registry = SimulatedRegistry()
    registry.publish("beta")
    with ServedFiles(registry.file) as served, TamperingProxy(served.url) as wire:
        client = Client(tmp_path)
        client.trust(registry.loader_conf(wire.url))
        client.spm("install", "beta").ok()
        registry.publish("alpha", requires=["beta"])
        yield Scene(registry, wire, client)


def sha256(data: bytes) -> str:
    return sha256_of(data).hexdigest()


def test_an_honest_registry_is_installed_from(scene: Scene) -> None:
    scene.client.spm("install", "alpha").ok()

    assert scene.client.installed() == {"alpha": "1.0.0", "beta": "1.0.0"}
    scene.client.require_sound()


@pytest.mark.parametrize("role", ["timestamp", "snapshot"])
def test_a_frozen_index_ends_with_its_expiry(scene: Scene, role: str) -> None:
    index = scene.registry.index
    index.lifetimes[role] = -DAY
    index.publish_snapshot()
    index.publish_timestamp()

    scene.refused(
        23,
        "index-expired",
        f"the registry's `{role}` expired at {index.now - DAY:{MOMENT}}, and this host's clock says {{now}}: "
        "either the registry no longer renews it, or somebody serves an old one, or the clock is wrong",
        CLOCK + "tell the registry's administrator",
    )


def test_a_root_that_nobody_renews_is_expired_for_every_command_that_asks(scene: Scene) -> None:
    index = scene.registry.index
    index.lifetimes["root"] = -DAY
    index.publish_root()

    for command in ("install alpha", "trust update", "info beta"):
        scene.refused(
            23,
            "root-expired",
            f"root 2 of the registry expired at {index.now - DAY:{MOMENT}}, and this host's clock says {{now}}: "
            "either its holders have not renewed it, or the clock is wrong",
            CLOCK + "the root holders must run `spm-registry root rotate`",
            command=command,
        )


def test_an_index_from_before_what_was_seen_is_a_rollback(scene: Scene) -> None:
    old = scene.files["timestamp.json"]
    scene.registry.publish("gamma")
    scene.client.spm("trust", "update").ok()
    scene.files["timestamp.json"] = old

    scene.refused(
        24,
        "rollback",
        "the registry's index goes back: timestamp 3 was served, and this host has seen timestamp 4",
        OLD + ASK,
    )


def test_a_snapshot_of_another_moment_is_a_mix(scene: Scene) -> None:
    served, listed = scene.files["2.snapshot.json"], scene.files["3.snapshot.json"]
    scene.files["3.snapshot.json"] = served

    scene.refused(
        24,
        "mix",
        "`3.snapshot.json` is not the file that the registry's signed index lists: Observed hash "
        f"{sha256(served)} does not match expected hash {sha256(listed)}",
        f"another moment's file was served, or it was changed on its way; {ASK}",
    )


def test_two_indexes_of_one_version_are_a_fork(scene: Scene) -> None:
    scene.client.spm("trust", "update").ok()
    seen = Metadata.from_bytes(scene.files["timestamp.json"])
    scene.registry.index.versions["timestamp"] -= 1
    scene.registry.publish("gamma")
    served = Metadata.from_bytes(scene.files["timestamp.json"])

    scene.refused(
        24,
        "fork",
        "the registry shows two different indexes as version 3: "
        f"this host has seen sha256:{sha256(seen.signed_bytes)}, "
        f"and now sha256:{sha256(served.signed_bytes)} is served; both are signed",
        "keep both for evidence and tell the registry's administrator: its online key may be in other hands",
    )


def test_a_release_that_is_another_than_it_was_is_a_fork(scene: Scene) -> None:
    shard = scene.registry.shards["beta"]
    scene.registry.list(replace(shard, releases=(replace(shard.releases[0], summary="another"),)))

    scene.refused(
        24,
        "fork",
        'the index of `beta` now says another thing of 1.0.0 than it did: `summary` was "a plugin for tests" and is '
        '"another"; a release never changes',
        "the registry's index was altered: tell its administrator, and install nothing of it until then",
    )


@pytest.mark.parametrize("file", ["timestamp.json", "3.snapshot.json", "2.root.json"])
def test_metadata_without_end_is_too_big(scene: Scene, file: str) -> None:
    scene.wire.alter(f"/v1/tuf/{file}", tampering_proxy.endless)
    limit = {"timestamp.json": 16_384, "3.snapshot.json": len(scene.files["3.snapshot.json"]), "2.root.json": 512_000}

    scene.refused(
        25, "too-big", f"`{scene.wire.url}/v1/tuf/{file}` sent more than the {limit[file]} bytes allowed", ALTERED
    )


def test_metadata_with_another_byte_is_not_what_was_signed(scene: Scene) -> None:
    scene.wire.alter(
        "/v1/tuf/timestamp.json", tampering_proxy.edit(lambda data: data.replace(b'"length":', b'"length":1', 1))
    )

    scene.refused(
        20,
        "sig-invalid",
        "`timestamp.json` of the registry was changed after signing: its signature does not fit",
        ALTERED,
    )


def test_a_shard_of_other_bytes_is_refused_by_its_digest(scene: Scene) -> None:
    scene.wire.alter("/v1/tuf/targets/index/.*", tampering_proxy.flip(3))
    data = scene.registry.shards["alpha"].to_bytes()
    altered = data[:3] + bytes([data[3] ^ 1]) + data[4:]

    scene.refused(
        25,
        "digest",
        f"`index/alpha.json` has the digest sha256:{sha256(altered)}, the signed index lists sha256:{sha256(data)}",
        ALTERED,
    )


def test_a_shard_that_is_cut_is_refused_by_its_size(scene: Scene) -> None:
    scene.wire.alter("/v1/tuf/targets/index/.*", tampering_proxy.cut(3))
    size = len(scene.registry.shards["alpha"].to_bytes())

    scene.refused(25, "size", f"`index/alpha.json` has 3 bytes, the signed index lists {size}", ALTERED)


def test_what_is_no_registry_is_a_bad_response(scene: Scene) -> None:
    scene.wire.alter("/v1/tuf/.*", tampering_proxy.answer(404, b"<h1>Not found</h1>"))

    scene.refused(
        31,
        "bad-response",
        "the registry has no `timestamp.json`, which its own index needs",
        "check `registry.url` in loader.conf; if it is right, the registry has lost something",
    )


def test_after_an_attack_the_same_command_succeeds_on_a_sound_wire(scene: Scene) -> None:
    scene.wire.alter("/v1/tuf/timestamp.json", tampering_proxy.endless)
    assert scene.client.spm("install", "alpha").code == 25
    scene.wire.mend()

    scene.client.spm("install", "alpha").ok()

    assert scene.client.installed() == {"alpha": "1.0.0", "beta": "1.0.0"}


def test_a_revocation_is_told_at_verify_and_run_without_the_registry(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[[1.0, 2.0]]")
    scene.registry.revoke_key()
    scene.client.spm("trust", "update").ok()
    scene.wire.alter(".*", tampering_proxy.answer(500))
    asked = len(scene.wire.seen)
    message = (
        f"`beta` 1.0.0 is refused: the manifest, made at 2026-01-31T12:00:00Z, is signed by the key "
        f"{scene.registry.keyid}, which is revoked as compromised: nothing that it ever signed counts"
    )
    hint = "ask its publisher for a release that is signed by a key in force"

    with unchanged(scene.client.home):
        verified = scene.client.spm("verify")
        ran = scene.client.spm("run", "beta", "--input", tmp_path / "x.json")

    verified.refused(22, "key-revoked", message, hint, said="REFUSED [key-revoked] beta 1.0.0\n")
    ran.refused(22, "key-revoked", message, hint)
    assert len(scene.wire.seen) == asked


def test_a_trust_file_carries_a_revocation_to_a_machine_without_a_network(scene: Scene, tmp_path: Path) -> None:
    away, file = Client(tmp_path / "away"), tmp_path / "trust.json"
    away.trust(scene.registry.loader_conf(scene.wire.url))
    scene.registry.revoke_key()
    away.spm("trust", "init").ok()
    away.spm("trust", "export", file).ok()
    scene.wire.alter(".*", tampering_proxy.answer(500))

    shown = scene.client.spm("trust", "import", file).ok().document

    assert shown["keyring"]["revoked_keys"] == [{"keyid": scene.registry.keyid, "reason": "compromised", "since": None}]
    assert scene.client.spm("verify").document["error"]["reason"] == "key-revoked"


def test_what_was_seen_is_not_sent_again(scene: Scene) -> None:
    scene.client.spm("install", "alpha").ok()
    scene.wire.seen.clear()

    scene.client.spm("trust", "update").ok()

    assert scene.wire.paths == ["/v1/tuf/2.root.json", "/v1/tuf/timestamp.json"]
    assert "if-none-match" in scene.wire.seen[1].headers

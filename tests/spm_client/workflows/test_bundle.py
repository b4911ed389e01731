"""A bundle takes plugins to a host without a network, and is refused for the reasons for which a registry is."""

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keys.trust_state import MOMENT
from manifests.errors import (
    ArtifactRevoked,
    FallbackRefused,
    FileSetMismatch,
    Fork,
    IndexExpired,
    KeyRevoked,
    KeyUnknown,
    Mix,
    NotFound,
    Rollback,
    RootExpired,
    SizeMismatch,
    SpmError,
    UsageError,
)
from manifests.names import PluginName
from manifests.parts import FileEntry, Variant
from manifests.ranges import Range
from spm_client.adapters.bundle import BundleFile
from spm_client.bundle_format import BundleHeader
from tests.spm_client.workflows.bundles import DAY, Machine, Pair, publish_files, registry
from tests.spm_client.workflows.sources import HOST


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Give two machines; `alpha` requires `beta`."""
    made = Pair(tmp_path)
    made.registry.publish("beta")
    made.registry.publish("alpha", requires=["beta"])
    return made


def now() -> datetime:
    return datetime.now(UTC)


def refused(pair: Pair, kind: type[SpmError], *, at: datetime | None = None) -> SpmError:
    """Assert that verify and import refuse the bundle alike, that nothing changes, and return the refusal."""
    with pair.here.unchanged(), pytest.raises(kind) as verified:
        pair.here.verify(pair.bundle, now=at)
    with pair.here.unchanged(), pytest.raises(kind) as taken:
        pair.here.take(pair.bundle, now=at)
    assert (type(verified.value), verified.value.message) == (type(taken.value), taken.value.message)
    return taken.value


def with_header(pair: Pair, header: BundleHeader) -> None:
    """Give the bundle another header."""
    with BundleFile(pair.bundle) as bundle:
        end = min(extent.offset for extent in bundle.documents.values())
    pair.bundle.write_bytes(header.to_bytes() + pair.bundle.read_bytes()[end:])


def header_of(pair: Pair) -> BundleHeader:
    with BundleFile(pair.bundle) as bundle:
        return bundle.header


# The way there


def test_what_was_asked_for_and_what_it_requires_arrives_without_a_registry(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")
    pair.registry.asked.clear()

    pair.here.take(pair.bundle)

    assert pair.here.installed == {"alpha": "1.0.0", "beta": "1.0.0"}
    assert [entry.name for entry in pair.here.generation.plugins if entry.requested] == ["alpha"]
    pair.here.load("alpha")
    assert pair.registry.asked == []


def test_verify_tells_what_is_in_it_and_changes_nothing(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha@^1.0")

    with pair.here.unchanged():
        checked = pair.here.verify(pair.bundle)

    assert [(one.name, one.verified.keyids) for one in checked.carried] == [
        ("alpha", (pair.registry.keyid,)),
        ("beta", (pair.registry.keyid,)),
    ]
    assert [str(wish) for wish in checked.asked] == ["`alpha` `^1.0`"]
    assert checked.size == pair.bundle.stat().st_size


def test_an_export_changes_nothing_in_the_store(pair: Pair) -> None:
    pair.there.install("beta")

    with pair.there.unchanged():
        pair.there.export(pair.bundle, "alpha")

    assert sorted(path.name for path in pair.folder.iterdir()) == ["here", "plugins.bundle", "there"]


def test_blobs_that_the_store_has_are_not_fetched(pair: Pair) -> None:
    pair.there.install("alpha")
    pair.registry.asked.clear()

    pair.there.export(pair.bundle, "alpha")

    assert [path for path in pair.registry.asked if "blobs" in path] == []
    pair.here.take(pair.bundle)


def test_a_blob_that_several_files_share_stands_once(pair: Pair) -> None:
    shared = b"weights " * 1000
    publish_files(pair.registry, "one", {"w.bin": shared, "copy.bin": shared})
    publish_files(pair.registry, "two", {"data/w.bin": shared})

    checked = pair.there.export(pair.bundle, "one", "two")

    assert pair.bundle.read_bytes().count(shared) == 1
    assert len(checked.blobs) == 2
    pair.here.take(pair.bundle)
    for name in ("one", "two"):
        pair.here.load(name)


def test_an_empty_file_is_carried(pair: Pair) -> None:
    publish_files(pair.registry, "one", {"empty.bin": b""})
    pair.there.export(pair.bundle, "one")

    pair.here.take(pair.bundle)

    pair.here.load("one")


def test_the_same_bundle_twice_changes_nothing_more(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")
    pair.here.take(pair.bundle)

    with pair.here.unchanged():
        pair.here.take(pair.bundle)


def test_a_newer_bundle_brings_newer_releases_and_newer_trust(pair: Pair) -> None:
    pair.there.export(pair.bundle, "beta")
    pair.here.take(pair.bundle)
    before = pair.here.state
    pair.registry.publish("beta", "1.1.0")
    pair.there.export(pair.bundle, "beta", force=True)

    pair.here.take(pair.bundle)

    assert pair.here.installed == {"beta": "1.1.0"}
    assert before is not None
    assert before != pair.here.state


def test_other_installed_plugins_stay_though_the_bundle_does_not_carry_them(pair: Pair) -> None:
    pair.registry.publish("gamma", requires=["delta"])
    pair.registry.publish("delta", "1.0.0")
    pair.there.export(pair.bundle, "gamma")
    pair.here.take(pair.bundle)
    pair.registry.publish("gamma", "1.1.0")
    pair.there.export(pair.bundle, "alpha", force=True)

    pair.here.take(pair.bundle)

    assert pair.here.installed == {"alpha": "1.0.0", "beta": "1.0.0", "delta": "1.0.0", "gamma": "1.0.0"}
    for name in pair.here.installed:
        pair.here.load(name)


def test_a_rotated_root_is_followed(pair: Pair) -> None:
    pair.here.pin()
    pair.registry.index.rotate_online()
    pair.there.export(pair.bundle, "alpha")

    pair.here.take(pair.bundle)

    assert pair.here.state is not None
    assert pair.here.state.root_version == 3


def test_a_dry_run_changes_nothing(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")

    with pair.here.unchanged():
        installed = pair.here.take(pair.bundle, is_dry_run=True)

    assert [change.after.name for change in installed.changes] == ["alpha", "beta"]


def test_a_part_of_a_bundle_may_be_named(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")

    pair.here.take(pair.bundle, "beta")

    assert pair.here.installed == {"beta": "1.0.0"}


def test_the_target_of_the_export_decides_the_variant(pair: Pair) -> None:
    other = replace(HOST, python="3.12.1")
    shards = []
    for python in ("3.11", "3.12"):
        pair.registry.shards.pop(PluginName("fast"), None)
        pair.registry.publish("fast", variant=Variant(python=Range.parse(f"~{python}")))
        shards.append(pair.registry.shards[PluginName("fast")])
    first, second = (shard.releases[0] for shard in shards)
    release = replace(first, variants=(*first.variants, *second.variants))
    pair.registry.list(replace(shards[0], releases=(release,)))

    pair.there.export(pair.bundle, "fast", target=other)

    with pair.here.unchanged(), pytest.raises(FileSetMismatch) as unfit:
        pair.here.take(pair.bundle)
    assert unfit.value.message == (
        f"the bundle `{pair.bundle}` does not carry `/v1/manifests/{first.variants[0].manifest_sha256}`, "
        "which is needed here"
    )
    assert unfit.value.hint == (
        "it was exported for another target or from other installed plugins: export it anew, for this host"
    )
    pair.here.take(pair.bundle, target=other)
    assert [entry.release for entry in pair.here.generation.plugins] == ["1.0.0+python3.12"]


# Consent does not travel in a file that nobody signed


def test_a_fallback_that_was_accepted_at_the_export_is_accepted_again_or_refused(pair: Pair) -> None:
    pair.registry.publish("beta", "1.1.0", requires=["delta"])
    pair.registry.publish("delta", "2.0.0")
    beta = frozenset({PluginName("beta")})
    pair.there.export(pair.bundle, "beta", accept_fallback=beta)

    with pair.here.unchanged(), pytest.raises(FallbackRefused):
        pair.here.take(pair.bundle)
    pair.here.take(pair.bundle, accept_fallback=beta)

    entry = pair.here.generation.find("beta")
    assert entry is not None
    assert entry.fallback


def test_a_pre_release_needs_consent_on_both_sides(pair: Pair) -> None:
    pair.registry.publish("gamma", "1.0.0-rc.1")
    gamma = frozenset({PluginName("gamma")})
    pair.there.export(pair.bundle, "gamma", pre=gamma)

    with pair.here.unchanged(), pytest.raises(NotFound, match="only pre-releases"):
        pair.here.take(pair.bundle)
    pair.here.take(pair.bundle, pre=gamma)

    assert pair.here.installed == {"gamma": "1.0.0-rc.1"}


def test_what_a_file_asks_for_moves_nothing_back_but_who_imports_may(pair: Pair) -> None:
    pair.registry.publish("beta", "1.1.0")
    pair.there.export(pair.bundle, "beta")
    pair.here.take(pair.bundle)
    pair.there.export(pair.bundle, "beta==1.0.0", force=True)

    with pair.here.unchanged(), pytest.raises(FallbackRefused) as back:
        pair.here.take(pair.bundle)
    assert back.value.message == (
        "`beta` would move back: 1.0.0 instead of the installed 1.1.0, "
        "which does not go with the rest of what was asked for"
    )
    assert back.value.hint == (
        "`spm bundle import FILE beta==1.0.0` asks for that; `--accept-fallback beta` accepts and records it"
    )
    pair.here.take(pair.bundle, "beta==1.0.0")

    assert pair.here.installed == {"beta": "1.0.0"}


def test_a_wish_that_the_bundle_does_not_carry_is_not_found(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")

    with pair.here.unchanged(), pytest.raises(NotFound) as absent:
        pair.here.take(pair.bundle, "gamma")

    assert absent.value.message == (f"the bundle `{pair.bundle}` does not carry `gamma`: it carries `alpha`, `beta`")


# Freshness


def expiry(pair: Pair) -> datetime:
    return pair.registry.index.now + DAY


def test_a_bundle_is_too_old_once_its_timestamp_has_expired(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")
    late = expiry(pair) + timedelta(days=2, hours=1)

    refusal = refused(pair, IndexExpired, at=late)

    assert (refusal.exit_code, refusal.reason) == (23, "index-expired")
    assert refusal.message == (
        f"the bundle's `timestamp` expired at {expiry(pair):{MOMENT}}, and this host's clock says {late:{MOMENT}}: "
        "either it was long on its way, or the clock is wrong"
    )
    assert refusal.hint == (
        f"export it anew; or write `[bundle]` with `max_age_days = 3` into {pair.here.layout.conf}, "
        "which lets bundles in that long after their expiry"
    )


def test_loader_conf_may_let_a_bundle_in_for_some_days_and_no_longer(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")
    pair.here.pin("[bundle]\nmax_age_days = 10\n")
    edge = expiry(pair) + timedelta(days=10)

    refusal = refused(pair, IndexExpired, at=edge + timedelta(seconds=1))
    pair.here.take(pair.bundle, now=edge - timedelta(seconds=1))

    assert refusal.message.startswith(
        f"the bundle's `timestamp` expired at {expiry(pair):{MOMENT}}, and this host's clock says "
        f"{edge + timedelta(seconds=1):{MOMENT}}, more than the 10 days later that loader.conf allows: "
    )
    assert pair.here.installed == {"alpha": "1.0.0", "beta": "1.0.0"}


@pytest.mark.parametrize(("role", "kind"), [("root", RootExpired), ("targets", IndexExpired)])
def test_the_grace_is_for_what_online_keys_sign_and_not_for_root_keys(
    pair: Pair, role: str, kind: type[SpmError]
) -> None:
    index = pair.registry.index
    index.lifetimes[role] = 5 * DAY
    index.publish_root()
    index.publish_all()
    pair.there.export(pair.bundle, "alpha")
    pair.here.pin("[bundle]\nmax_age_days = 30\n")
    pair.here.take(pair.bundle, "beta", now=index.now + timedelta(days=4))

    late = index.now + timedelta(days=6)
    refusal = refused(pair, kind, at=late)

    name = "root 3 of the registry" if role == "root" else "the registry's `targets`"
    assert refusal.message.startswith(
        f"{name} expired at {index.now + 5 * DAY:{MOMENT}}, and this host's clock says {late:{MOMENT}}: "
    )


def test_a_clock_before_the_bundle_was_made_is_suspect(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")

    assert refused(pair, SpmError, at=now() - 2 * DAY).reason == "clock-suspect"


# History and other registries


def test_a_bundle_from_before_what_was_seen_is_a_rollback(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")
    pair.registry.publish("gamma")
    newer = pair.folder / "newer.bundle"
    pair.there.export(newer, "gamma")
    pair.here.take(newer)

    refusal = refused(pair, Rollback)

    assert refusal.message == (
        "the registry's index goes back: timestamp 4 was served, and this host has seen timestamp 5"
    )


def test_two_bundles_of_one_moment_that_differ_are_a_fork(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")
    pair.here.take(pair.bundle)
    pair.registry.index.versions["timestamp"] -= 1
    pair.registry.publish("gamma")
    pair.there.export(pair.bundle, "alpha", force=True)

    assert refused(pair, Fork).reason == "fork"


def test_the_bundle_of_another_registry_is_a_mix(pair: Pair, tmp_path: Path) -> None:
    other = Machine(tmp_path / "other", registry())
    other.registry.publish("alpha")
    other.export(pair.bundle, "alpha")
    pin = pair.here.conf.require_root().sha256

    refusal = refused(pair, Mix)

    assert refusal.message == (
        f"the bundle `{pair.bundle}` has no root with the digest sha256:{pin}, which loader.conf pins"
    )


def test_a_bundle_that_says_it_is_of_another_registry_is_a_mix(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")
    with_header(pair, replace(header_of(pair), registry="elsewhere"))

    assert refused(pair, Mix).message == (
        f"the bundle `{pair.bundle}` is of the registry `elsewhere`, loader.conf names `team.example`"
    )


def test_an_index_that_another_key_signed_is_not_exported(pair: Pair) -> None:
    pair.registry.index.online = registry().index.online
    pair.registry.index.publish_all()

    with pair.there.unchanged(), pytest.raises(KeyUnknown):
        pair.there.export(pair.bundle, "alpha")

    assert not pair.bundle.exists()


# Revocation


def test_a_key_that_the_bundle_says_is_revoked_installs_nothing(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")
    pair.registry.revoke_key()

    with pytest.raises(KeyRevoked):
        pair.there.export(pair.folder / "later.bundle", "alpha")
    pair.here.take(pair.bundle)  # exported before: nothing here could know

    assert not (pair.folder / "later.bundle").exists()


def test_a_revocation_that_this_host_knows_counts_against_an_older_bundle(pair: Pair) -> None:
    pair.there.export(pair.bundle, "alpha")
    pair.registry.revoke_key()
    pair.there.install_trust()
    pair.here.import_trust(pair.there)

    refusal = refused(pair, KeyRevoked)

    assert (refusal.exit_code, refusal.reason) == (22, "key-revoked")
    assert refusal.message == (
        f"`alpha` 1.0.0 is refused: the manifest, made at 2026-01-31T12:00:00Z, is signed by the key "
        f"{pair.registry.keyid}, which is revoked as compromised: nothing that it ever signed counts"
    )


def test_a_revoked_release_is_refused(pair: Pair) -> None:
    digest = pair.registry.publish("gamma")
    pair.there.export(pair.bundle, "gamma")
    pair.registry.revoke_manifest(digest)
    pair.there.install_trust()
    pair.here.import_trust(pair.there)

    assert refused(pair, ArtifactRevoked).reason == "artifact-revoked"


def test_a_bundle_carries_a_revocation_to_what_is_installed(pair: Pair) -> None:
    digest = pair.registry.publish("gamma")
    pair.there.export(pair.bundle, "gamma")
    pair.here.take(pair.bundle)
    pair.registry.revoke_manifest(digest)
    pair.there.export(pair.bundle, "alpha", force=True)

    installed = pair.here.take(pair.bundle)

    assert [(one.entry.name, one.refusal.reason) for one in installed.refused] == [("gamma", "artifact-revoked")]
    with pytest.raises(ArtifactRevoked):
        pair.here.load("gamma")


# An export that is refused


def test_a_registry_that_serves_another_blob_is_refused_and_nothing_is_written(pair: Pair) -> None:
    pair.registry.documents |= {path: data + b"x" for path, data in pair.registry.documents.items() if "blobs" in path}

    with pair.there.unchanged(), pytest.raises(SizeMismatch) as refusal:
        pair.there.export(pair.bundle, "beta")

    assert refusal.value.message == (
        "`beta.py` of `beta` 1.0.0 came with more than 18 bytes, but the signed manifest says 18; nothing was written"
    )
    assert sorted(path.name for path in pair.folder.iterdir()) == ["here", "there"]


def test_manifests_that_speak_of_one_blob_with_two_sizes_make_no_bundle(pair: Pair) -> None:
    data = b"same"
    publish_files(pair.registry, "one", {"w.bin": data})
    sha256 = hashlib.sha256(data).hexdigest()
    pair.registry.publish("two", files=(FileEntry(path="w.bin", size=9, sha256=sha256, mode="r"),))

    with pytest.raises(SizeMismatch):
        pair.there.export(pair.bundle, "one", "two")

    assert not pair.bundle.exists()


def test_a_file_that_is_there_is_replaced_only_when_asked(pair: Pair) -> None:
    pair.bundle.write_text("mine")

    with pytest.raises(UsageError) as refusal:
        pair.there.export(pair.bundle, "beta")
    assert refusal.value.message == f"`{pair.bundle}` is there already"
    assert pair.bundle.read_text() == "mine"
    pair.there.export(pair.bundle, "beta", force=True)

    pair.here.take(pair.bundle)


def test_what_is_no_file_is_never_replaced(pair: Pair) -> None:
    pair.bundle.mkdir()

    with pytest.raises(UsageError) as refusal:
        pair.there.export(pair.bundle, "beta", force=True)

    assert refusal.value.message == f"`{pair.bundle}` is no file that could be replaced"


def test_one_file_on_the_disk_is_read_while_another_takes_its_place(pair: Pair) -> None:
    pair.there.export(pair.bundle, "beta")
    with BundleFile(pair.bundle) as opened:
        pair.registry.publish("beta", "1.1.0")
        pair.there.export(pair.bundle, "beta", force=True)

        assert len(opened.header.releases) == 1
        assert opened.size != pair.bundle.stat().st_size or opened.header != header_of(pair)

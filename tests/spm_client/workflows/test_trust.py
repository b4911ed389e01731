"""Trust in a command: refreshed once, kept only where the command succeeds, and asked for as little as can be."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from keys.keyring import LoaderConf
from keys.trust_state import TrustState, read_trust_state
from manifests.errors import (
    ArtifactRevoked,
    ConfigError,
    ConfigPermissions,
    ConfigSyntax,
    Fork,
    KeyRevoked,
    SpmError,
    Undecided,
    Unsatisfiable,
)
from manifests.names import PluginName
from runtime.installed import open_installed, trusted_conf
from spm_client.progress import Advance
from spm_client.resolve import parse_spec
from spm_client.store.layout import Layout
from spm_client.workflows.consent import Wishes
from spm_client.workflows.install import Installed, install
from spm_client.workflows.trust import held_state, import_file, update
from spm_client.workflows.uninstall import uninstall
from tests.e2e.snapshots import Snapshot, snapshot
from tests.fakes.simulated_registry import SimulatedRegistry
from tests.spm_client.workflows.sources import HOST, MOMENT

REFRESH = ["/v1/tuf/2.root.json", "/v1/tuf/timestamp.json"]
"""All that a refresh asks for where nothing has changed."""


@dataclass
class Machine:
    """A store that trusts a simulated registry."""

    root: Path
    registry: SimulatedRegistry = field(default_factory=SimulatedRegistry)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        self.pin()

    def pin(self, text: str = "") -> None:
        """Write loader.conf: the registry's own, if no other is given."""
        (self.root / "loader.conf").write_text(text or self.registry.loader_conf())
        (self.root / "loader.conf").chmod(0o644)

    @property
    def layout(self) -> Layout:
        return Layout(self.root)

    @property
    def conf(self) -> LoaderConf:
        return LoaderConf.read(self.layout.conf)

    @property
    def state(self) -> TrustState | None:
        return read_trust_state(self.root)

    def install(self, *specs: str, is_dry_run: bool = False) -> Installed:
        wishes = Wishes(requirements=tuple(parse_spec(spec) for spec in specs), is_dry_run=is_dry_run)
        return install(
            wishes, self.layout, self.conf, self.registry.connect, HOST, now=now(), created=MOMENT, progress=silent
        )

    def update(self, *, is_new: bool = False) -> TrustState:
        return update(self.layout, self.conf, self.registry, now=now(), is_new=is_new).state

    def load(self, name: str) -> None:
        """Verify an installed plugin as the runtime does at a load: without a registry."""
        open_installed(self.root, name, trusted_conf(self.root, self.conf, now()))

    def asked(self) -> list[str]:
        """Return what the registry was asked since it was last looked at."""
        asked, self.registry.asked = self.registry.asked, []
        return asked

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        before = snapshot(self.root)
        yield
        assert snapshot(self.root) == before


def now() -> datetime:
    return datetime.now(UTC)


def silent(label: str, total: int, /) -> Advance:
    del label, total
    return lambda _: None


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path / "store")
    made.registry.publish("beta")
    made.registry.publish("alpha", requires=["beta"])
    return made


def trust_files(machine: Machine) -> Snapshot:
    return {path: value for path, value in snapshot(machine.root).items() if path.startswith("trust")}


def test_the_first_install_pins_the_root_and_keeps_what_it_learnt(machine: Machine) -> None:
    machine.install("alpha")

    state = held_state(machine.layout, machine.conf)
    assert (state.registry, state.root_version) == ("team.example", 1)
    assert sorted(path.name for path in machine.layout.trust_cache.iterdir())[-2:] == [
        "index.alpha.json",
        "index.beta.json",
    ]
    assert {path.stat().st_mode & 0o777 for path in machine.layout.trust.rglob("*.json")} == {0o644}


def test_two_requests_are_enough_where_nothing_has_changed(machine: Machine) -> None:
    machine.update()
    machine.asked()

    machine.update()

    assert machine.asked() == REFRESH


def test_an_install_that_changes_nothing_asks_for_no_index_again(machine: Machine) -> None:
    machine.install("alpha")
    machine.asked()

    machine.install("alpha")

    asked = machine.asked()
    assert asked[:2] == REFRESH
    assert all(path.startswith("/v1/manifests/") for path in asked[2:])


def test_what_a_publish_changed_is_all_that_is_fetched_again(machine: Machine) -> None:
    machine.install("alpha")
    machine.registry.publish("beta", "1.1.0")
    machine.asked()

    machine.update()
    machine.install("alpha", "beta")

    metadata = [path for path in machine.asked() if path.startswith("/v1/tuf/")]
    assert [path.rpartition(".")[0].rpartition(".")[2] for path in metadata if "targets/" in path] == ["beta"]
    assert [path for path in metadata if "alpha" in path or "targets.json" in path] == []


def test_an_install_that_changes_nothing_still_keeps_newer_trust(machine: Machine) -> None:
    machine.install("alpha")
    before = machine.state
    machine.registry.publish("gamma")

    machine.install("alpha")

    assert machine.state not in (None, before)
    assert (machine.root / "current").read_text() == "000001\n"


def test_a_dry_run_keeps_nothing(machine: Machine) -> None:
    with machine.unchanged():
        machine.install("alpha", is_dry_run=True)


def test_a_refused_install_keeps_nothing_of_what_it_learnt(machine: Machine) -> None:
    machine.install("beta")
    machine.registry.publish("gamma", "1.0.0", requires=["delta"])
    machine.registry.publish("delta", "2.0.0")

    with machine.unchanged(), pytest.raises(Unsatisfiable):
        machine.install("gamma")


def test_a_conf_without_a_root_installs_and_loads_nothing(machine: Machine) -> None:
    machine.install("beta")
    lines = machine.registry.loader_conf().split("[root]")
    machine.pin(lines[0] + lines[1][lines[1].index("[[ext]]") :])
    message = (
        "loader.conf pins no root of the registry `team.example` (`[root]` with `version` and `sha256`), "
        "and without it nothing says that an index is the registry's own"
    )

    for call in (lambda: machine.install("alpha"), machine.update, lambda: machine.load("beta")):
        with machine.unchanged(), pytest.raises(ConfigSyntax) as refused:
            call()
        assert refused.value.message == message


def test_without_a_remembered_state_nothing_is_loaded(machine: Machine) -> None:
    machine.install("beta")
    for path in sorted(machine.layout.trust.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()

    with pytest.raises(Undecided) as refused:
        machine.load("beta")

    assert (refused.value.reason, refused.value.exit_code) == ("unknown:revocations", 3)
    assert refused.value.hint == "`spm trust init` learns it from the registry"
    machine.update(is_new=True)
    machine.load("beta")


def test_what_others_may_write_is_not_remembered(machine: Machine) -> None:
    machine.install("beta")
    path = machine.layout.trust_state(1)
    path.chmod(0o666)

    for call in (lambda: machine.install("alpha"), machine.update, lambda: machine.load("beta")):
        with machine.unchanged(), pytest.raises(ConfigPermissions) as refused:
            call()
        assert refused.value.message == (
            f"{path} has the mode 0666: its group or everyone may change what is installed"
        )


# Revocation


def revoked(machine: Machine, name: str) -> str:
    return (
        f"`{name}` 1.0.0 is refused: the manifest, made at 2026-01-31T12:00:00Z, is signed by the key "
        f"{machine.registry.keyid}, which is revoked as compromised: nothing that it ever signed counts"
    )


def test_a_revoked_key_installs_nothing(machine: Machine) -> None:
    machine.update()
    machine.registry.revoke_key()

    with machine.unchanged(), pytest.raises(KeyRevoked) as refused:
        machine.install("beta")

    assert (refused.value.exit_code, refused.value.reason) == (22, "key-revoked")
    assert refused.value.message == revoked(machine, "beta")


def test_a_key_that_is_revoked_later_ends_what_is_installed_once_the_host_knows(machine: Machine) -> None:
    machine.install("beta")
    machine.registry.revoke_key()
    machine.load("beta")  # a host that has not asked since cannot know

    machine.update()

    for _ in range(2):  # and it stays so without the registry
        with machine.unchanged(), pytest.raises(KeyRevoked) as refused:
            machine.load("beta")
        assert refused.value.message == revoked(machine, "beta")


def test_a_retired_key_keeps_what_it_signed_before(machine: Machine) -> None:
    machine.install("beta")
    machine.registry.revoke_key(since="2026-06-01T00:00:00Z")

    machine.install("alpha")

    machine.load("alpha")
    machine.registry.publish("gamma", created="2026-06-01T00:00:00Z")
    with machine.unchanged(), pytest.raises(KeyRevoked) as refused:
        machine.install("gamma")
    assert refused.value.message == (
        "`gamma` 1.0.0 is refused: the manifest, made at 2026-06-01T00:00:00Z, is signed by the key "
        f"{machine.registry.keyid}, which was retired at 2026-06-01T00:00:00Z"
    )


def test_a_revoked_manifest_alone_is_refused_and_others_are_installed_with_a_warning(machine: Machine) -> None:
    digest = machine.registry.publish("gamma")
    machine.install("gamma")
    machine.registry.revoke_manifest(digest)

    installed = machine.install("alpha")

    (warned,) = installed.refused
    assert (warned.entry.name, warned.refusal.reason) == ("gamma", "artifact-revoked")
    message = f"the manifest sha256:{digest} was revoked by the registry's root holders or in loader.conf"
    assert warned.refusal.message.endswith(message)
    machine.load("alpha")
    with pytest.raises(ArtifactRevoked) as refused:
        machine.load("gamma")
    assert refused.value.message.endswith(message)


def test_what_needs_a_revoked_plugin_is_not_installed(machine: Machine) -> None:
    machine.install("beta==1.0.0")
    digest = held_release(machine, "beta")
    machine.registry.revoke_manifest(digest)

    with machine.unchanged(), pytest.raises(ArtifactRevoked):
        machine.install("alpha")


def held_release(machine: Machine, name: str) -> str:
    return machine.registry.shards[name].releases[-1].variants[0].manifest_sha256


def test_a_revoked_plugin_can_be_uninstalled(machine: Machine) -> None:
    machine.install("beta")
    machine.registry.revoke_key()
    machine.update()

    uninstall((PluginName("beta"),), machine.layout, created=MOMENT)

    assert not (machine.root / "plugins" / "beta").exists()


# History


def test_an_index_that_says_another_thing_of_a_release_is_a_fork(machine: Machine) -> None:
    machine.install("beta")
    shard = machine.registry.shards["beta"]
    machine.registry.list(replace(shard, releases=(replace(shard.releases[0], summary="another"),)))

    with machine.unchanged(), pytest.raises(Fork) as refused:
        machine.install("alpha")

    assert refused.value.message == (
        'the index of `beta` now says another thing of 1.0.0 than it did: `summary` was "a plugin for tests" '
        'and is "another"; a release never changes'
    )


def test_a_release_that_was_hidden_for_one_command_comes_back_as_it_was_or_not_at_all(machine: Machine) -> None:
    machine.install("alpha")
    machine.registry.publish("beta", "1.1.0")
    machine.install("alpha")
    whole = machine.registry.shards["beta"]
    machine.registry.list(replace(whole, releases=whole.releases[:1]))
    machine.install("alpha")
    machine.install("alpha")
    other = replace(whole.releases[1], variants=(replace(whole.releases[1].variants[0], manifest_sha256="ab" * 32),))
    machine.registry.list(replace(whole, releases=(whole.releases[0], other)))

    with machine.unchanged(), pytest.raises(Fork):
        machine.install("alpha")

    machine.registry.list(whole)
    machine.install("alpha")
    assert (machine.layout.trust_cache / "unsaid.beta.json").read_bytes() == b""


def test_an_installed_release_with_another_manifest_is_a_fork_without_any_cache(machine: Machine) -> None:
    machine.install("beta")
    for path in machine.layout.trust_cache.iterdir():
        path.unlink()
    shard = machine.registry.shards["beta"]
    other = replace(shard.releases[0].variants[0], manifest_sha256="ab" * 32)
    machine.registry.list(replace(shard, releases=(replace(shard.releases[0], variants=(other,)),)))

    with machine.unchanged(), pytest.raises(Fork) as refused:
        machine.install("alpha")

    assert "than the one that is installed" in refused.value.message


def test_a_release_whose_yank_was_undone_is_taken_with_a_note(machine: Machine) -> None:
    machine.install("beta")
    machine.registry.publish("beta", "1.1.0")
    whole = machine.registry.shards["beta"]
    machine.registry.list(whole.with_yanked(whole.releases[1].version, "it is slow"))
    assert [change.once_yanked for change in machine.install("beta").changes] == [None]
    machine.registry.list(whole)

    (taken,) = machine.install("beta").changes
    (kept,) = machine.install("beta").changes

    assert (str(taken.after.version), taken.yanked, taken.once_yanked) == ("1.1.0", None, "it is slow")
    assert kept.once_yanked is None


@pytest.mark.parametrize("kind", ["fifo", "link", "huge", "folder"])
def test_what_is_no_file_among_the_bins_is_passed_over(machine: Machine, tmp_path: Path, kind: str) -> None:
    machine.install("beta")
    (path,) = [path for path in machine.layout.trust_cache.iterdir() if path.name.startswith("bin-")][:1]
    data = path.read_bytes()
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 30)
    else:
        (tmp_path / "elsewhere").write_bytes(data)
        path.symlink_to(tmp_path / "elsewhere")

    if kind == "link":  # the store has none: its guard says so
        with pytest.raises(SpmError):
            machine.install("beta")
        return
    machine.install("beta")

    assert kind == "folder" or path.read_bytes() == data


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 100])
def test_trust_begins_anew_over_a_damaged_state(machine: Machine, damage: bytes) -> None:
    machine.install("beta")
    machine.layout.trust_state(1).write_bytes(damage)
    with machine.unchanged(), pytest.raises(SpmError) as refused:
        machine.update()
    assert refused.value.hint == (
        f"`spm trust init` begins anew from the root that loader.conf pins; or remove "
        f"`{machine.layout.trust_state(1)}`, and what was learnt before it counts again"
    )

    machine.update(is_new=True)

    machine.load("beta")
    assert machine.layout.trust_state(2).is_file()


def test_no_umask_lets_others_change_what_is_kept(machine: Machine) -> None:
    before = os.umask(0)
    try:
        machine.install("alpha")
        machine.registry.publish("beta", "1.1.0")
        machine.install("alpha", "beta")
    finally:
        os.umask(before)

    assert [path for path in machine.root.rglob("*") if path.lstat().st_mode & 0o022] == []


@pytest.mark.parametrize("damage", [b"", b"{}", b"\0" * 100])
def test_a_damaged_cache_is_only_fetched_again(machine: Machine, damage: bytes) -> None:
    machine.install("beta")
    kept = trust_files(machine)
    for path in machine.layout.trust_cache.iterdir():
        path.write_bytes(damage)
    machine.asked()

    machine.install("beta")

    assert trust_files(machine) == kept
    assert len([path for path in machine.asked() if path.startswith("/v1/tuf/")]) == len(REFRESH) + 2


def test_a_damaged_state_is_refused_and_left_as_it_is(machine: Machine) -> None:
    machine.install("beta")
    machine.layout.trust_state(1).write_bytes(b"{}")

    for call in (lambda: machine.install("alpha"), machine.update, lambda: machine.load("beta")):
        with machine.unchanged(), pytest.raises(SpmError) as refused:
            call()
        assert (refused.value.exit_code, refused.value.reason) == (25, "type")


# Another root


def test_a_registry_made_anew_is_refused_until_trust_begins_anew(machine: Machine) -> None:
    machine.install("beta")
    before = machine.state
    assert before is not None
    machine.registry = SimulatedRegistry(key=machine.registry.key)
    machine.registry.publish("beta")
    machine.pin()

    for call in (lambda: machine.install("beta"), machine.update, lambda: machine.load("beta")):
        with machine.unchanged(), pytest.raises(ConfigError) as refused:
            call()
        assert refused.value.message == (
            f"the store trusts the registry `team.example` by the root sha256:{before.root_sha256}, "
            f"but loader.conf pins `team.example` by sha256:{machine.conf.require_root().sha256}"
        )

    state = machine.update(is_new=True)
    assert state.root_sha256 == machine.conf.require_root().sha256
    machine.load("beta")


# A trust file


def test_a_trust_file_brings_a_revocation_to_a_host_without_a_network(machine: Machine, tmp_path: Path) -> None:
    from keys.trust_file import trust_file

    machine.install("beta")
    away = Machine(tmp_path / "away", machine.registry)
    machine.registry.revoke_key()
    data = trust_file(away.update())
    machine.asked()

    import_file(machine.layout, machine.conf, data, now=now())

    assert machine.asked() == []
    with pytest.raises(KeyRevoked):
        machine.load("beta")


def test_a_host_that_never_reached_its_registry_begins_from_a_trust_file(machine: Machine, tmp_path: Path) -> None:
    from keys.trust_file import trust_file

    fresh = Machine(tmp_path / "fresh", machine.registry)
    data = trust_file(machine.update())

    import_file(fresh.layout, fresh.conf, data, now=now())

    assert held_state(fresh.layout, fresh.conf).issued is None
    fresh.install("alpha")
    assert held_state(fresh.layout, fresh.conf).issued is not None


def test_a_trust_file_of_an_older_moment_changes_nothing(machine: Machine) -> None:
    from keys.trust_file import trust_file

    data = trust_file(machine.update())
    machine.registry.revoke_key()
    machine.update()

    with machine.unchanged(), pytest.raises(SpmError) as refused:
        import_file(machine.layout, machine.conf, data, now=now())

    assert (refused.value.exit_code, refused.value.reason) == (24, "rollback")

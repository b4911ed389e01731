"""Each plugin is judged by the keys and revocations of the registry that it came from, and by no other's."""

import hashlib
import os
import shutil
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from keys.keyring import FULL_HASH_BYTES, LoaderConf
from manifests.errors import (
    ConfigError,
    ConfigMissing,
    ConfigPermissions,
    ConfigSyntax,
    KeyRevoked,
    KeyUnknown,
    LinkRefused,
    Mix,
    SpmError,
    TypeMismatch,
    Undecided,
    UsageError,
)
from manifests.lockfile import InstalledEntry
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.versions import Version
from runtime.installed import StoreTrust, open_entry
from runtime.registries import read_registries, require_known
from tests.fakes.simulated_registry import SimulatedRegistry, fresh_index
from tests.fakes.two_registries import PX, claiming, px_registry, write_conf
from tests.keys.trust_builders import write_state


@dataclass
class Beside:
    """A store with its own registry and another beside it, both as commands leave them."""

    root: Path
    own: SimulatedRegistry = field(default_factory=lambda: SimulatedRegistry(index=fresh_index()))
    px: SimulatedRegistry = field(default_factory=px_registry)

    def __post_init__(self) -> None:
        self.root.mkdir(mode=0o755)
        self.pin()
        self.pin_px()
        self.remember()

    @property
    def px_root(self) -> Path:
        return self.root / "registries" / PX

    def pin(self, more: str = "") -> None:
        write_conf(self.root / "loader.conf", self.own.loader_conf(more=more))

    def pin_px(self, more: str = "") -> None:
        write_conf(self.px_root / "loader.conf", claiming(self.px.loader_conf(more=more), "px-*"))

    def remember(self) -> None:
        for root, registry in ((self.root, self.own), (self.px_root, self.px)):
            write_state(root, registry.index.state, number=registry.index.versions["timestamp"])

    def add(self, registry: SimulatedRegistry, name: str, *, of: str | None = None) -> InstalledEntry:
        """Publish a release, install it, and return its entry; `of` is the registry that the entry names."""
        digest = registry.publish(name)
        self.remember()
        folder = self.root / "manifests" / digest
        folder.mkdir(mode=0o755, parents=True)
        at = f"/v1/manifests/{digest}"
        (folder / "manifest.json").write_bytes(registry.documents[at])
        (folder / "manifest.jws").write_bytes(registry.documents[f"{at}/manifest.jws"])
        blob = f'"""{name} 1.0.0."""\n'.encode()
        assert f"/v1/blobs/{hashlib.sha256(blob).hexdigest()}" in registry.documents
        tree = self.root / "plugins" / name / "1.0.0"
        tree.mkdir(mode=0o755, parents=True)
        (tree / f"{name.replace('-', '_')}.py").write_bytes(blob)
        (tree / f"{name.replace('-', '_')}.py").chmod(0o444)
        return InstalledEntry(
            name=PluginName(name),
            version=Version.parse("1.0.0"),
            release="1.0.0",
            manifest_sha256=digest,
            type=PluginType.EXT,
            keyids=(registry.keyid,),
            requested=True,
            registry=of,
        )

    @property
    def conf(self) -> LoaderConf:
        return LoaderConf.read(self.root / "loader.conf")

    def trust(self) -> StoreTrust:
        return StoreTrust(self.root, self.conf, datetime.now(UTC))

    def load(self, entry: InstalledEntry) -> str:
        """Open a plugin as a host does at a load."""
        return open_entry(self.root, entry, self.trust().of(entry)).manifest.name

    def refusal(self, entry: InstalledEntry) -> SpmError:
        with pytest.raises(SpmError) as caught:
            self.load(entry)
        return caught.value

    def conf_refusal(self) -> SpmError:
        with pytest.raises(SpmError) as caught:
            read_registries(self.root, self.conf)
        return caught.value


@pytest.fixture
def store(tmp_path: Path) -> Beside:
    return Beside(tmp_path / "store")


def test_each_plugin_is_vouched_for_by_its_own_registry(store: Beside) -> None:
    own, px = store.add(store.own, "scale"), store.add(store.px, "px-scale", of=PX)

    assert [store.load(own), store.load(px)] == ["scale", "px-scale"]


def test_keys_of_one_registry_never_vouch_for_a_plugin_of_another(store: Beside) -> None:
    own, px = store.add(store.own, "scale"), store.add(store.px, "px-scale", of=PX)

    as_px, as_own = store.refusal(replace(own, registry=PX)), store.refusal(replace(px, registry=None))

    assert isinstance(as_px, KeyUnknown)
    assert isinstance(as_own, KeyUnknown)


def test_a_key_that_both_pin_vouches_only_for_what_says_whose_it_is(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    px = replace(px_registry(), key=key)
    store = Beside(tmp_path / "store", own=SimulatedRegistry(key=key), px=px)
    own, other = store.add(store.own, "scale"), store.add(store.px, "px-scale", of=PX)

    refusals = store.refusal(replace(own, registry=PX)), store.refusal(replace(other, registry=None))

    assert [type(refusal) for refusal in refusals] == [Mix, Mix]
    assert [store.load(own), store.load(other)] == ["scale", "px-scale"]


def test_a_revocation_counts_in_its_own_registry_alone(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    store = Beside(tmp_path / "store", own=SimulatedRegistry(key=key), px=replace(px_registry(), key=key))
    own, other = store.add(store.own, "scale"), store.add(store.px, "px-scale", of=PX)
    store.px.revoke_key()
    store.remember()

    refusal = store.refusal(other)

    assert isinstance(refusal, KeyRevoked)
    assert store.load(own) == "scale"


def test_where_nothing_is_remembered_of_one_the_plugins_of_the_other_load(store: Beside) -> None:
    own, px = store.add(store.own, "scale"), store.add(store.px, "px-scale", of=PX)
    shutil.rmtree(store.px_root / "trust")

    refusal = store.refusal(px)

    assert isinstance(refusal, Undecided)
    assert (refusal.message, refusal.hint) == (
        f"{store.px_root / 'trust'} is empty, so that nothing says which keys were revoked",
        "`spm trust init --registry px.example` learns it from the registry",
    )
    assert refusal.context == {"registry": PX}
    assert store.load(own) == "scale"


def test_where_nothing_is_remembered_of_the_own_the_plugins_of_another_load(store: Beside) -> None:
    px = store.add(store.px, "px-scale", of=PX)
    shutil.rmtree(store.root / "trust")

    assert store.load(px) == "px-scale"


def test_an_age_limit_is_each_registrys_own_and_says_where_it_stands(store: Beside) -> None:
    px = store.add(store.px, "px-scale", of=PX)
    store.pin_px("[load]\nmax_age_days = 1\n")
    late = StoreTrust(store.root, store.conf, datetime(2099, 1, 1, tzinfo=UTC))

    with pytest.raises(SpmError) as caught:
        late.of(px)

    assert caught.value.message.startswith("registry `px.example`: the last known index was signed at ")
    assert caught.value.hint == (
        "`spm trust update --registry px.example`, or bring in a newer state with "
        "`spm trust import FILE --registry px.example`"
    )


def test_a_registry_that_is_gone_vouches_for_nothing(store: Beside) -> None:
    px = store.add(store.px, "px-scale", of=PX)
    shutil.rmtree(store.root / "registries")

    refusal = store.refusal(px)

    assert isinstance(refusal, ConfigMissing)
    assert refusal.message == f"{store.px_root / 'loader.conf'} is not there, and without it nothing says whom to trust"


@pytest.mark.parametrize("name", ["registries", f"registries/{PX}", f"registries/{PX}/trust"])
def test_a_folder_that_others_may_change_is_refused(store: Beside, name: str) -> None:
    px = store.add(store.px, "px-scale", of=PX)
    (store.root / name).chmod(0o775)

    refusal = store.refusal(px)

    assert isinstance(refusal, ConfigPermissions)
    assert (
        f"{store.root / name} has the mode 0775: its group or everyone may change what is installed" in refusal.message
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", ["registries", f"registries/{PX}", f"registries/{PX}/loader.conf"])
def test_what_belongs_to_another_user_is_refused(store: Beside, name: str) -> None:
    px = store.add(store.px, "px-scale", of=PX)
    os.chown(store.root / name, 1000, 1000)

    refusals = store.refusal(px), store.conf_refusal()

    assert [type(refusal) for refusal in refusals] == [ConfigPermissions, ConfigPermissions]
    assert f"{store.root / name} belongs to the user 1000" in refusals[0].message


def test_a_loader_conf_that_others_may_write_is_refused(store: Beside) -> None:
    path = store.px_root / "loader.conf"
    path.chmod(0o664)

    refusal = store.conf_refusal()

    assert isinstance(refusal, ConfigPermissions)
    assert refusal.message == (
        f"{path} has the mode 0664: its group or everyone may write it, so it cannot say whom to trust"
    )


def test_a_registry_behind_a_link_is_refused(store: Beside, tmp_path: Path) -> None:
    store.px_root.rename(tmp_path / "elsewhere")
    store.px_root.symlink_to(tmp_path / "elsewhere")

    assert isinstance(store.conf_refusal(), LinkRefused)


def test_what_a_host_allows_is_not_a_registrys_to_say(store: Beside) -> None:
    store.pin_px("[limits]\nmemory_bytes = 1\n[load]\nfull_hash_bytes = 1\n")

    refusal = store.conf_refusal()

    assert isinstance(refusal, ConfigSyntax)
    assert (refusal.message, refusal.hint) == (
        f"{store.px_root / 'loader.conf'} sets `limits.memory_bytes`, `load.full_hash_bytes`, which is this host's own "
        "affair and no registry's",
        f"take it out; if it is meant, write it in {store.root / 'loader.conf'}",
    )


def test_what_a_host_allows_is_the_same_for_plugins_of_every_registry(store: Beside) -> None:
    store.pin("[limits]\nmemory_bytes = 4096\n[load]\nfull_hash_bytes = 7\n")

    conf = read_registries(store.root, store.conf).conf(PX)

    assert (conf.memory_bytes, conf.full_hash_bytes, FULL_HASH_BYTES != 7) == (4096, 7, True)


def test_a_registry_must_say_which_names_are_its(store: Beside) -> None:
    write_conf(store.px_root / "loader.conf", store.px.loader_conf())

    refusal = store.conf_refusal()

    assert isinstance(refusal, ConfigSyntax)
    assert (refusal.message, refusal.hint) == (
        f"{store.px_root / 'loader.conf'} does not say which names belong to `px.example`: `registry.names` is missing",
        'write the patterns of its names below `[registry]`, as in `names = ["px-*"]`; it alone is asked for them',
    )


def test_a_folder_is_named_for_its_registry(store: Beside) -> None:
    store.px_root.rename(store.px_root.with_name("lab.example"))

    refusal = store.conf_refusal()

    assert (refusal.message, refusal.hint) == (
        f"{store.root}/registries/lab.example/loader.conf is of the registry `px.example`, but its folder is named "
        "`lab.example`",
        "name the folder `px.example`, or get the loader.conf of `lab.example`",
    )


def test_the_own_registry_is_not_there_twice(store: Beside) -> None:
    write_conf(store.root / "registries/team.example/loader.conf", claiming(store.own.loader_conf(), "own-*"))

    refusal = store.conf_refusal()

    assert (refusal.message, refusal.hint) == (
        f"{store.root}/registries/team.example/loader.conf is of the registry `team.example`, which is the store's own "
        "already",
        "remove the folder; what `team.example` claims stands in the store's own loader.conf",
    )


@pytest.mark.parametrize("name", ["Px.example", ".px.example.swp", "px.example~", "loader.conf"])
def test_what_is_no_registrys_folder_is_not_passed_over(store: Beside, name: str) -> None:
    (store.root / "registries" / name).write_text("")

    refusal = store.conf_refusal()

    assert isinstance(refusal, ConfigSyntax)
    assert refusal.message == (
        f"{store.root}/registries/{name} is no folder of a registry: such a folder is named for the registry's id, and "
        "holds its loader.conf"
    )


def test_a_folder_without_a_loader_conf_is_not_passed_over(store: Beside) -> None:
    (store.px_root / "loader.conf").unlink()

    assert isinstance(store.conf_refusal(), ConfigMissing)


def test_a_registry_is_known_by_its_id(store: Beside) -> None:
    assert require_known(store.root, store.conf, PX).registry_id == PX
    assert require_known(store.root, store.conf, "team.example") == store.conf
    with pytest.raises(ConfigError) as caught:
        require_known(store.root, store.conf, "lab")
    assert caught.value.message == "this store knows no registry `lab`: it knows `team.example`, `px.example`"
    with pytest.raises(UsageError):
        require_known(store.root, store.conf, "../lab")


@pytest.mark.parametrize("is_dangling", [True, False])
def test_a_link_for_the_registries_does_not_count_as_none(store: Beside, tmp_path: Path, is_dangling: bool) -> None:
    shutil.rmtree(store.root / "registries")
    (tmp_path / "empty").mkdir()
    (store.root / "registries").symlink_to(tmp_path / ("nowhere" if is_dangling else "empty"))

    refusal = store.conf_refusal()

    assert isinstance(refusal, LinkRefused)
    assert (refusal.message, refusal.hint) == (
        f"{store.root}/registries is a symbolic link, the store has none",
        f"put the folder itself there; if there are no other registries, `rm {store.root}/registries`",
    )


def test_a_file_for_the_registries_does_not_count_as_none(store: Beside) -> None:
    shutil.rmtree(store.root / "registries")
    (store.root / "registries").touch()

    refusal = store.conf_refusal()

    assert isinstance(refusal, TypeMismatch)
    assert refusal.message == f"{store.root}/registries is no folder"


def test_a_store_with_one_registry_has_no_such_folder(store: Beside) -> None:
    shutil.rmtree(store.root / "registries")

    registries = read_registries(store.root, store.conf)

    assert (dict(registries.others), registries.sources.known) == ({}, ("team.example",))

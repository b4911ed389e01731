"""A store that others could change is not trusted, however well its signatures verify."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from manifests.errors import ConfigPermissions, LinkRefused, SpmError
from runtime import Host
from runtime.installed import open_installed
from tests.runtime.stores import Store

SOURCE = "def make(context):\n    return lambda x: x\n"
WAY = (
    "",
    "current",
    "generations",
    "plugins",
    "plugins/enc",
    "plugins/enc/1.0.0",
    "plugins/enc/1.0.0/enc.py",
    "trust",
    "trust/000001.json",
)


def refused(store: Store) -> SpmError:
    with pytest.raises(SpmError) as refusal:
        open_installed(store.root, "enc", store.conf)
    return refusal.value


def manifest_folder(store: Store) -> Path:
    return store.root / "manifests" / store.entries[0].manifest_sha256


@pytest.mark.parametrize("name", WAY)
@pytest.mark.parametrize("bit", [stat.S_IWGRP, stat.S_IWOTH])
def test_what_a_group_or_everyone_may_write_is_refused_with_the_cure(store: Store, name: str, bit: int) -> None:
    store.add("enc", SOURCE)
    path = store.root / name
    mode = stat.S_IMODE(path.stat().st_mode) | bit
    path.chmod(mode)

    refusal = refused(store)

    assert refusal.to_dict()["error"] == {
        "exit": 26,
        "reason": "conf-perms",
        "message": f"{path} has the mode {mode:04o}: its group or everyone may change what is installed",
        "context": {"path": str(path), "mode": f"{mode:04o}", "owner": os.geteuid()},
        "hint": f"`chmod go-w {path}`, after a look at what is in it",
    }
    path.chmod(mode & ~bit)
    assert open_installed(store.root, "enc", store.conf).manifest.name == "enc"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", WAY)
def test_what_belongs_to_another_user_is_refused(store: Store, name: str) -> None:
    store.add("enc", SOURCE)
    path = store.root / name
    os.chown(path, 1000, 1000)

    refusal = refused(store)

    assert isinstance(refusal, ConfigPermissions)
    assert refusal.message == (
        f"{path} belongs to the user 1000 (mode {stat.S_IMODE(path.stat().st_mode):04o}): "
        "only root and the user who runs spm (0) may change what is installed"
    )


@pytest.mark.parametrize("name", ["generations", "plugins", "plugins/enc", "plugins/enc/1.0.0", "manifests", "trust"])
def test_a_link_in_a_folders_place_is_refused(store: Store, tmp_path: Path, name: str) -> None:
    store.add("enc", SOURCE)
    path = store.root / name
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")

    refusal = refused(store)

    assert isinstance(refusal, LinkRefused)
    assert refusal.message == f"{path} is a symbolic link, the store has none"


def test_a_manifest_that_others_may_write_is_refused(store: Store) -> None:
    store.add("enc", SOURCE)
    manifest_folder(store).chmod(0o777)

    assert refused(store).message == (
        f"{manifest_folder(store)} has the mode 0777: its group or everyone may change what is installed"
    )


def test_a_host_starts_nothing_of_such_a_store(store: Store, open_host: Callable[..., Host]) -> None:
    store.add("enc", SOURCE)
    (store.root / "plugins").chmod(0o777)

    with pytest.raises(ConfigPermissions):
        open_host(store).load("enc")

    assert not (store.root / "runs.jsonl").exists()

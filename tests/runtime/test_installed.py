"""Reading the store: the current generation, and plugins proven at the moment they are opened."""

from pathlib import Path

import pytest

from keys.keyring import LoaderConf
from manifests.errors import DigestMismatch, FileSetMismatch, LinkRefused, SpmError, TypeMismatch, Unsigned
from runtime.generation import current_generation
from runtime.installed import dependencies, open_installed
from tests.runtime.stores import Store

SOURCE = "def make(context): ...\n"


def conf(store: Store) -> LoaderConf:
    return LoaderConf.read(store.root / "loader.conf")


def opened(store: Store, kind: type[SpmError]) -> SpmError:
    with pytest.raises(kind) as refusal:
        open_installed(store.root, "enc", conf(store))
    return refusal.value


def test_an_empty_store_holds_nothing(tmp_path: Path) -> None:
    generation = current_generation(tmp_path)

    assert (generation.number, generation.plugins) == (0, ())


def test_what_is_open_is_verified_with_its_tree(store: Store) -> None:
    tree = store.add("enc", SOURCE)

    plugin = open_installed(store.root, "enc", conf(store))

    assert (plugin.directory, plugin.manifest.name, plugin.verified.keyids) == (tree, "enc", store.entries[0].keyids)


def test_dependencies_are_the_closure_nearest_first(store: Store) -> None:
    store.add("a", SOURCE)
    store.add("b", SOURCE, requires=["a"])
    store.add("c", SOURCE, requires=["a", "b"])

    assert [entry.name for entry in dependencies(current_generation(store.root), "c")] == ["a", "b"]


def test_a_current_that_is_no_number_is_refused(store: Store) -> None:
    (store.root / "current").write_text("../1\n")

    with pytest.raises(TypeMismatch) as refusal:
        current_generation(store.root)

    assert refusal.value.message == f"{store.root}/current says '../1', not the six digits of a generation"


def test_a_generation_that_is_gone_is_refused(store: Store) -> None:
    (store.root / "current").write_text("000007\n")

    with pytest.raises(FileSetMismatch) as refusal:
        current_generation(store.root)

    assert refusal.value.message == f"{store.root}/generations/000007.json is not there"


def test_a_link_in_place_of_a_store_file_is_refused(store: Store, tmp_path: Path) -> None:
    store.add("enc", SOURCE)
    (store.root / "current").rename(tmp_path / "elsewhere")
    (store.root / "current").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(LinkRefused) as refusal:
        current_generation(store.root)

    assert refusal.value.message == f"{store.root}/current is a symbolic link, the store has none"


def test_a_manifest_that_was_changed_is_refused(store: Store) -> None:
    store.add("enc", SOURCE)
    (path,) = (store.root / "manifests").glob("*/manifest.json")
    path.write_bytes(path.read_bytes().replace(b'"MIT"', b'"ISC"'))

    assert opened(store, DigestMismatch).message.startswith("the manifest of enc 1.0.0 has the digest sha256:")


def test_a_manifest_that_lost_its_signature_is_refused(store: Store) -> None:
    store.add("enc", SOURCE)
    (path,) = (store.root / "manifests").glob("*/manifest.jws")
    path.unlink()

    assert opened(store, Unsigned).message == "`enc` 1.0.0 is refused: the manifest has no signature"


def test_a_file_that_is_not_in_the_table_is_refused(store: Store) -> None:
    tree = store.add("enc", SOURCE)
    (tree / "sitecustomize.py").write_text("import os\n")

    assert "sitecustomize.py" in opened(store, FileSetMismatch).message


def test_a_manifest_that_is_gone_is_refused(store: Store) -> None:
    store.add("enc", SOURCE)
    folder = store.root / "manifests" / store.entries[0].manifest_sha256
    folder.rename(store.root / "away")

    assert opened(store, FileSetMismatch).message == f"{folder} is not there: the store lost a manifest"

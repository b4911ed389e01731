"""Reading the store: the current generation, and plugins proven at the moment they are opened."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from manifests.errors import DigestMismatch, FileSetMismatch, LinkRefused, SpmError, TypeMismatch, Unsigned
from runtime.generation import current_generation
from runtime.installed import TrustedConf, dependencies, open_installed
from tests.runtime.stores import Store

SOURCE = "def make(context): ...\n"


def conf(store: Store) -> TrustedConf:
    return store.conf


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


def replaced(path: Path, text: str, mode: int = 0o444) -> None:
    path.unlink()
    path.write_text(text)
    path.chmod(mode)


UNLISTED = "these are there but not in the signed file table: "
SIGNED = hashlib.sha256(SOURCE.encode()).hexdigest()
EVIL = SOURCE.replace("...", "evl")
TREES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "an __init__.py": (lambda tree: (tree / "__init__.py").touch(), "file-set", f"{UNLISTED}'__init__.py'"),
    "a .pth": (lambda tree: (tree / "enc.pth").touch(), "file-set", f"{UNLISTED}'enc.pth'"),
    "a .pyc": (lambda tree: (tree / "enc.pyc").touch(), "file-set", f"{UNLISTED}'enc.pyc'"),
    "a .so": (lambda tree: (tree / "enc.so").touch(), "file-set", f"{UNLISTED}'enc.so'"),
    "a __pycache__": (lambda tree: (tree / "__pycache__").mkdir(), "file-set", f"{UNLISTED}'__pycache__'"),
    "a sitecustomize.py": (
        lambda tree: (tree / "sitecustomize.py").touch(),
        "file-set",
        f"{UNLISTED}'sitecustomize.py'",
    ),
    "a second name of a signed file": (
        lambda tree: os.link(tree / "enc.py", tree / "twin.py"),
        "file-set",
        f"{UNLISTED}'twin.py'",
    ),
    "a link beside it": (
        lambda tree: (tree / "twin.py").symlink_to("enc.py"),
        "link",
        "'twin.py' is a symbolic link, a plugin's tree has none",
    ),
    "a link in its place": (
        lambda tree: (tree / "enc.py").symlink_to((tree / "enc.py").rename(tree.parent / "moved")),
        "link",
        "'enc.py' is a symbolic link, a plugin's tree has none",
    ),
    "a pipe": (lambda tree: os.mkfifo(tree / "pipe"), "type", "'pipe' is neither a plain file nor a folder"),
    "an executable bit": (
        lambda tree: (tree / "enc.py").chmod(0o555),
        "type",
        "'enc.py' has the mode 0555, the signed file table says it is a data file",
    ),
    "a setuid bit": (
        lambda tree: (tree / "enc.py").chmod(0o4444),
        "type",
        "'enc.py' has the mode 4444, the signed file table says it is a data file",
    ),
    "a changed byte": (
        lambda tree: replaced(tree / "enc.py", EVIL),
        "digest",
        f"'enc.py' has the digest sha256:{hashlib.sha256(EVIL.encode()).hexdigest()}, "
        f"the signed file table says sha256:{SIGNED}: it was changed after signing",
    ),
    "a cut": (
        lambda tree: replaced(tree / "enc.py", SOURCE[:-1]),
        "size",
        "'enc.py' has 22 bytes, the signed file table says 23",
    ),
    "more bytes": (
        lambda tree: replaced(tree / "enc.py", SOURCE + "#"),
        "size",
        "'enc.py' has 24 bytes, the signed file table says 23",
    ),
    "nothing": (
        lambda tree: (tree / "enc.py").unlink(),
        "file-set",
        "these are in the signed file table but not there: 'enc.py'",
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_that_is_not_the_signed_one_is_refused_and_left_as_it_is(store: Store, name: str) -> None:
    change, reason, message = TREES[name]
    tree = store.add("enc", SOURCE)
    change(tree)
    before = sorted((str(path), path.lstat().st_ctime_ns) for path in store.root.rglob("*"))

    refusal = opened(store, SpmError)

    assert refusal.to_dict()["error"] | {"context": None} == {
        "exit": 25,
        "reason": reason,
        "message": f"enc 1.0.0 in {tree}: {message}",
        "context": None,
        "hint": "do not run what is there; `spm install enc==1.0.0` lays it out anew",
    }
    assert sorted((str(path), path.lstat().st_ctime_ns) for path in store.root.rglob("*")) == before


def test_a_signed_file_under_a_new_inode_is_as_good(store: Store) -> None:
    tree = store.add("enc", SOURCE)
    replaced(tree / "enc.py", SOURCE)

    assert open_installed(store.root, "enc", conf(store)).directory == tree

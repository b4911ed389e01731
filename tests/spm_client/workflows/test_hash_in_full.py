"""Receipts in the life of a store: written by an install, renewed by a verification, gone with what they are for."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from keys.keyring import LoaderConf
from keys.receipts import Receipt, sign
from keys.tree import BIG_FILE_BYTES, FileStamp
from keys.verified import VerifiedManifest
from manifests.errors import ConfigSyntax, DigestMismatch
from manifests.lockfile import InstalledEntry
from manifests.versions import Version
from runtime.installed import TrustedConf
from runtime.receipts import known_files
from spm_client.store.host_key import host_key
from spm_client.store.layout import Layout
from spm_client.store.staging import staging
from spm_client.workflows.hash_in_full import hash_in_full
from spm_client.workflows.place import Placement, remove_trees
from tests.e2e.snapshots import snapshot
from tests.keys import builders

BIG, SMALL = bytes(BIG_FILE_BYTES) + b"!", b"def make(context): ...\n"
CONTENTS = {"plugin.py": SMALL, "weights.bin": BIG}
CONF = TrustedConf(replace(LoaderConf.parse(builders.conf_text()), full_hash_bytes=0))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "store").mkdir()
    return Layout(tmp_path / "store")


@pytest.fixture
def folder_open_to_all() -> Iterator[Path]:
    """Yield a folder that another user reaches too; those of pytest are closed to others."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def release(version: str = "1.2.0") -> VerifiedManifest:
    files = tuple(builders.file_entry(path, data) for path, data in CONTENTS.items())
    return builders.verified(files=files, version=Version.parse(version))


def entry_of(verified: VerifiedManifest) -> InstalledEntry:
    manifest = verified.manifest
    return InstalledEntry(
        name=manifest.name,
        version=manifest.version,
        release=manifest.release,
        manifest_sha256=verified.sha256,
        type=manifest.type,
        keyids=tuple(verified.keyids),
        requested=True,
    )


def place(layout: Layout, verified: VerifiedManifest, *, vouches: bool = True, is_kept: bool = True) -> Path:
    with staging(layout) as scratch, Placement(layout, scratch) as placement:
        blob_of = {}
        for entry in verified.manifest.files:
            blob_of[entry.sha256] = scratch / entry.sha256
            blob_of[entry.sha256].write_bytes(CONTENTS[entry.path])
        placement.put(verified, blob_of)
        if vouches:
            placement.vouch(verified)
        placement.settle()
        if is_kept:
            placement.keep()
    return layout.tree(verified.manifest.name, verified.manifest.release)


def known(layout: Layout, verified: VerifiedManifest) -> dict[str, FileStamp]:
    return dict(known_files(layout.root, verified, 0))


def stamps(tree: Path) -> dict[str, FileStamp]:
    return {"weights.bin": FileStamp.of((tree / "weights.bin").stat())}


def test_a_placed_release_is_known_by_its_receipt(layout: Layout) -> None:
    verified = release()

    tree = place(layout, verified)

    assert known(layout, verified) == stamps(tree)
    assert known_files(layout.root, verified, verified.manifest.size) == {}
    assert sorted(os.listdir(layout.root)) == ["blobs", "host.key", "host.pub", "manifests", "plugins", "receipts"]


def test_a_placement_that_is_undone_takes_its_receipt_and_the_new_key_along(layout: Layout) -> None:
    place(layout, release(), is_kept=False)

    assert list(layout.root.iterdir()) == []


def test_a_placement_that_is_undone_leaves_an_older_key_and_other_receipts(layout: Layout) -> None:
    first = release()
    tree = place(layout, first)
    before = snapshot(layout.root)

    place(layout, release("2.0.0"), is_kept=False)

    assert snapshot(layout.root) == before
    assert (tree / "weights.bin").read_bytes() == BIG


def test_a_damaged_host_key_undoes_the_placement(layout: Layout) -> None:
    layout.host_key.write_bytes(b"damaged")
    layout.host_key.chmod(0o600)
    before = snapshot(layout.root)

    with pytest.raises(ConfigSyntax):
        place(layout, release())

    assert snapshot(layout.root) == before


def test_an_uninstalled_release_loses_its_receipt(layout: Layout) -> None:
    kept, gone = release(), release("2.0.0")
    place(layout, kept)
    place(layout, gone)

    with staging(layout) as scratch:
        remove_trees((entry_of(gone),), layout, scratch)

    assert [path.stem for path in (layout.root / "receipts").iterdir()] == [kept.sha256]


def test_a_verification_writes_the_receipt_that_is_missing(layout: Layout) -> None:
    verified = release()
    tree = place(layout, verified, vouches=False)
    assert known(layout, verified) == {}

    hashed = hash_in_full(layout.root, entry_of(verified), CONF)

    assert (hashed.renewed, hashed.hashed_at_load) == (("weights.bin",), ())
    assert known(layout, verified) == stamps(tree)
    assert not layout.tmp.exists()


def test_a_verification_leaves_a_receipt_that_fits(layout: Layout) -> None:
    verified = release()
    place(layout, verified)
    before = layout.receipt(verified.sha256).stat()

    hashed = hash_in_full(layout.root, entry_of(verified), CONF)

    assert (hashed.renewed, hashed.hashed_at_load) == ((), ())
    assert layout.receipt(verified.sha256).stat().st_ino == before.st_ino


def test_a_stamp_that_has_changed_is_renewed(layout: Layout) -> None:
    """As when another release links to the same blob."""
    verified = release()
    tree = place(layout, verified)
    os.link(tree / "weights.bin", layout.root / "another")

    hashed = hash_in_full(layout.root, entry_of(verified), CONF)

    assert (hashed.renewed, hashed.hashed_at_load) == (("weights.bin",), ())
    assert known(layout, verified) == stamps(tree)


def test_a_verification_hashes_what_a_receipt_covers(layout: Layout) -> None:
    """Bits that rot on a disk change no stamp; here the store's own key says that they are sound."""
    verified = release()
    tree = place(layout, verified)
    (tree / "weights.bin").chmod(0o644)
    (tree / "weights.bin").write_bytes(b"!" + BIG[1:])
    (tree / "weights.bin").chmod(0o444)
    with staging(layout) as scratch:
        sealed = sign(host_key(layout, scratch), Receipt(manifest_sha256=verified.sha256, files=stamps(tree)))
    layout.receipt(verified.sha256).write_bytes(sealed)
    assert known(layout, verified) == stamps(tree)

    with pytest.raises(DigestMismatch):
        hash_in_full(layout.root, entry_of(verified), CONF)


def test_a_file_that_somebody_may_write_to_gets_no_receipt(layout: Layout) -> None:
    verified = release()
    tree = place(layout, verified, vouches=False)
    (tree / "weights.bin").chmod(0o644)

    with (tree / "weights.bin").open("r+b"):
        hashed = hash_in_full(layout.root, entry_of(verified), CONF)

    assert (hashed.renewed, hashed.hashed_at_load) == ((), ("weights.bin",))
    assert not layout.receipt(verified.sha256).exists()
    assert not layout.host_key.exists()


def test_within_the_budget_no_receipt_is_written(layout: Layout) -> None:
    verified = release()
    place(layout, verified, vouches=False)
    before = snapshot(layout.root)

    hashed = hash_in_full(
        layout.root, entry_of(verified), TrustedConf(replace(CONF, full_hash_bytes=verified.manifest.size))
    )

    assert (hashed.renewed, hashed.hashed_at_load) == ((), ())
    assert snapshot(layout.root) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user, which only root can")
def test_who_is_not_the_store_s_owner_verifies_and_writes_nothing(folder_open_to_all: Path) -> None:
    (folder_open_to_all / "store").mkdir()
    layout = Layout(folder_open_to_all / "store")
    verified = release()
    place(layout, verified, vouches=False)
    before = snapshot(layout.root)

    with builders.acting_as(12345):
        hashed = hash_in_full(layout.root, entry_of(verified), CONF)

    assert (hashed.renewed, hashed.hashed_at_load) == ((), ("weights.bin",))
    assert snapshot(layout.root) == before

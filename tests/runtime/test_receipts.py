"""Loading by receipt: what the store vouches for is not read again, and nothing else is taken on its word."""

import hashlib
import os
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from keys.keyring import LoaderConf
from keys.public_key import pem_of
from keys.receipts import Receipt, sign
from keys.tree import BIG_FILE_BYTES, FileStamp
from keys.verified import InstalledPlugin
from manifests.errors import ConfigPermissions, LinkRefused, SpmError
from runtime.installed import TrustedConf, open_installed
from tests.runtime.stores import Store

SOURCE = "def make(context): ...\n"
BIG_SOURCE = SOURCE + "#" * BIG_FILE_BYTES
NO_BUDGET = "[load]\nfull_hash_bytes = 0\n"


@pytest.fixture
def key(store: Store) -> ec.EllipticCurvePrivateKey:
    """Give the store a host key; receipts are taken whenever they can be."""
    key = ec.generate_private_key(ec.SECP256R1())
    (store.root / "host.pub").write_bytes(pem_of(key.public_key()))
    (store.root / "host.key").touch(mode=0o600)
    (store.root / "receipts").mkdir()
    store.write_conf(NO_BUDGET)
    return key


def opened(store: Store, name: str = "enc") -> InstalledPlugin:
    return open_installed(store.root, name, TrustedConf(LoaderConf.read(store.root / "loader.conf")))


def place(store: Store, number: int = 0) -> Path:
    return store.root / "receipts" / f"{store.entries[number].manifest_sha256}.json"


def receipt(store: Store, path: Path, number: int = 0) -> Receipt:
    """Return what an install would say of the file as it is now."""
    return Receipt(manifest_sha256=store.entries[number].manifest_sha256, files={path.name: FileStamp.of(path.stat())})


def forged(path: Path) -> None:
    """Change a byte in place and put the time of the last change back."""
    before = path.stat()
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.write(b"D")
    path.chmod(0o444)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_file_that_a_receipt_covers_is_not_read_again(store: Store, key: ec.EllipticCurvePrivateKey) -> None:
    """The receipt is written after the change here, as no install would, to see that it is believed."""
    path = store.add("enc", BIG_SOURCE) / "enc.py"
    forged(path)
    place(store).write_bytes(sign(key, receipt(store, path)))

    assert opened(store).directory == path.parent


def test_within_the_budget_everything_is_hashed_whatever_receipts_say(
    store: Store, key: ec.EllipticCurvePrivateKey
) -> None:
    path = store.add("enc", BIG_SOURCE) / "enc.py"
    forged(path)
    place(store).write_bytes(sign(key, receipt(store, path)))

    for text in ("", f"[load]\nfull_hash_bytes = {len(BIG_SOURCE)}\n"):
        store.write_conf(text)
        assert told(store) == changed(path)


def told(store: Store) -> tuple[int, str, str]:
    with pytest.raises(SpmError) as caught:
        opened(store)
    return caught.value.exit_code, caught.value.reason, caught.value.message


def changed(path: Path) -> tuple[int, str, str]:
    """Return how a file of other bytes is refused once it is hashed in full."""
    found, signed = (hashlib.sha256(data).hexdigest() for data in (path.read_bytes(), BIG_SOURCE.encode()))
    return (
        25,
        "digest",
        f"enc 1.0.0 in {path.parent}: 'enc.py' has the digest sha256:{found}, the signed file table says "
        f"sha256:{signed}: it was changed after signing",
    )


Forgery = Callable[[Store, Path, ec.EllipticCurvePrivateKey, bytes], bytes]


def edited(store: Store, path: Path, key: ec.EllipticCurvePrivateKey, sealed: bytes) -> bytes:
    """Return the receipt with the stamp of the changed file, under the signature of the one before."""
    payload = receipt(store, path).to_bytes()
    return sealed.replace(sealed[12 : sealed.index(b'","payloadType')], b64encode(payload))


def of_another_store(store: Store, path: Path, key: ec.EllipticCurvePrivateKey, sealed: bytes) -> bytes:
    return sign(ec.generate_private_key(ec.SECP256R1()), receipt(store, path))


def of_another_plugin(store: Store, path: Path, key: ec.EllipticCurvePrivateKey, sealed: bytes) -> bytes:
    return sign(key, replace(receipt(store, path), manifest_sha256="ab" * 32))


def of_another_file(store: Store, path: Path, key: ec.EllipticCurvePrivateKey, sealed: bytes) -> bytes:
    return sign(key, replace(receipt(store, path), files={"other.py": FileStamp.of(path.stat())}))


RECEIPTS: dict[str, Forgery] = {
    "of before the change": lambda store, path, key, sealed: sealed,
    "edited": edited,
    "of another store": of_another_store,
    "of another plugin": of_another_plugin,
    "of another file": of_another_file,
    "empty": lambda store, path, key, sealed: b"",
    "cut": lambda store, path, key, sealed: sealed[:-1],
    "no envelope": lambda store, path, key, sealed: receipt(store, path).to_bytes(),
    "too big": lambda store, path, key, sealed: b" " * (9 << 20),
}


@pytest.mark.parametrize("name", RECEIPTS)
def test_a_receipt_that_is_not_the_store_s_word_on_this_file_saves_no_changed_file(
    store: Store, key: ec.EllipticCurvePrivateKey, name: str
) -> None:
    path = store.add("enc", BIG_SOURCE) / "enc.py"
    sealed = sign(key, receipt(store, path))
    forged(path)
    place(store).write_bytes(RECEIPTS[name](store, path, key, sealed))

    assert told(store) == changed(path)


@pytest.mark.parametrize("name", RECEIPTS)
def test_such_a_receipt_only_has_a_sound_file_hashed(store: Store, key: ec.EllipticCurvePrivateKey, name: str) -> None:
    path = store.add("enc", BIG_SOURCE) / "enc.py"
    sealed = sign(key, receipt(store, path))
    place(store).write_bytes(RECEIPTS[name](store, path, key, sealed))
    before = sorted((str(one), one.lstat().st_ctime_ns) for one in store.root.rglob("*"))

    assert opened(store).directory == path.parent

    assert sorted((str(one), one.lstat().st_ctime_ns) for one in store.root.rglob("*")) == before


def test_a_receipt_of_another_plugin_under_this_one_s_name_is_not_taken(
    store: Store, key: ec.EllipticCurvePrivateKey
) -> None:
    path = store.add("enc", BIG_SOURCE) / "enc.py"
    other = store.add("other", BIG_SOURCE.replace("...", "pass")) / "other.py"
    place(store, 1).write_bytes(sign(key, receipt(store, other, 1)))
    forged(path)
    place(store, 1).replace(place(store))

    assert told(store) == changed(path)


@pytest.mark.parametrize("public", [b"", b"damaged", None])
def test_without_the_public_host_key_no_receipt_counts(
    store: Store, key: ec.EllipticCurvePrivateKey, public: bytes | None
) -> None:
    path = store.add("enc", BIG_SOURCE) / "enc.py"
    forged(path)
    place(store).write_bytes(sign(key, receipt(store, path)))
    (store.root / "host.pub").unlink()
    if public is not None:
        (store.root / "host.pub").write_bytes(public)

    assert told(store) == changed(path)


def test_the_same_bytes_under_a_new_inode_are_hashed_and_loaded(store: Store, key: ec.EllipticCurvePrivateKey) -> None:
    path = store.add("enc", BIG_SOURCE) / "enc.py"
    place(store).write_bytes(sign(key, receipt(store, path)))
    path.unlink()
    path.write_text(BIG_SOURCE)
    path.chmod(0o444)

    assert opened(store).directory == path.parent


@pytest.mark.parametrize("name", ["receipts", "host.pub", "receipt"])
def test_receipts_that_others_could_write_are_refused(store: Store, key: ec.EllipticCurvePrivateKey, name: str) -> None:
    path = store.add("enc", BIG_SOURCE) / "enc.py"
    place(store).write_bytes(sign(key, receipt(store, path)))
    open_to_all = place(store) if name == "receipt" else store.root / name
    open_to_all.chmod(0o777)

    assert told(store) == (
        26,
        "conf-perms",
        f"{open_to_all} has the mode 0777: its group or everyone may change what is installed",
    )


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o610])
def test_a_host_key_that_others_may_use_is_refused(store: Store, key: ec.EllipticCurvePrivateKey, mode: int) -> None:
    store.add("enc", SOURCE)
    (store.root / "host.key").chmod(mode)

    with pytest.raises(ConfigPermissions) as caught:
        opened(store)

    assert caught.value.to_dict()["error"] == {
        "exit": 26,
        "reason": "conf-perms",
        "message": f"{store.root}/host.key has the mode {mode:04o}: others than its owner may use the key that "
        "receipts are signed with",
        "context": {"path": f"{store.root}/host.key", "mode": f"{mode:04o}"},
        "hint": f"`chmod 600 {store.root}/host.key`; if others had access, remove it with `host.pub` and run "
        "`spm verify`",
    }


@pytest.mark.parametrize("name", ["receipts", "host.pub", "host.key", "receipt"])
def test_a_link_in_their_place_is_refused(store: Store, key: ec.EllipticCurvePrivateKey, name: str) -> None:
    path = store.add("enc", BIG_SOURCE) / "enc.py"
    place(store).write_bytes(sign(key, receipt(store, path)))
    linked = place(store) if name == "receipt" else store.root / name
    linked.rename(store.root / "moved")
    linked.symlink_to(store.root / "moved")

    with pytest.raises(LinkRefused) as caught:
        opened(store)

    assert caught.value.message == f"{linked} is a symbolic link, the store has none"

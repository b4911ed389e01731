"""An installed tree that is no longer what was signed: verify and run refuse it, and an install lays it out anew."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.commands import Client
from tests.e2e.snapshots import unchanged

pytestmark = pytest.mark.e2e

HINT = "do not run what is there; `spm install gamma==1.0.0` lays it out anew"


def add_a_file(tree: Path) -> str:
    (tree / "torch.py").write_text("print('mine')\n")
    return "these are there but not in the signed file table: 'torch.py'"


def add_a_folder(tree: Path) -> str:
    (tree / "more").mkdir()
    return "these are there but not in the signed file table: 'more'"


def change_a_byte_in_place(tree: Path) -> str:
    path = tree / "gamma.py"
    signed = hashlib.sha256(path.read_bytes()).hexdigest()
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.write(b"'")
    path.chmod(0o444)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    return (
        f"'gamma.py' has the digest sha256:{found}, the signed file table says sha256:{signed}: "
        "it was changed after signing"
    )


def append_a_byte(tree: Path) -> str:
    path = tree / "gamma.py"
    size = path.stat().st_size
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data + b"\n")
    path.chmod(0o444)
    return f"'gamma.py' has {size + 1} bytes, the signed file table says {size}"


def put_a_link_in_its_place(tree: Path) -> str:
    path = tree / "gamma.py"
    copy = tree.parents[2] / "copy.py"
    copy.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(copy)
    return "'gamma.py' is a symbolic link, a plugin's tree has none"


def put_a_pipe_in_its_place(tree: Path) -> str:
    (tree / "gamma.py").unlink()
    os.mkfifo(tree / "gamma.py")
    return "'gamma.py' is neither a plain file nor a folder"


def make_data_executable(tree: Path) -> str:
    (tree / "gamma.py").chmod(0o555)
    return "'gamma.py' has the mode 0555, the signed file table says it is a data file"


def make_a_program_data(tree: Path) -> str:
    (tree / "bin" / "tool").chmod(0o444)
    return "'bin/tool' has the mode 0444, the signed file table says it is an executable"


def remove_a_file(tree: Path) -> str:
    (tree / "bin" / "tool").unlink()
    return "these are in the signed file table but not there: 'bin/tool'"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (add_a_file, "file-set"),
        (add_a_folder, "file-set"),
        (change_a_byte_in_place, "digest"),
        (append_a_byte, "size"),
        (put_a_link_in_its_place, "link"),
        (put_a_pipe_in_its_place, "type"),
        (make_data_executable, "type"),
        (make_a_program_data, "type"),
        (remove_a_file, "file-set"),
    ],
)
def test_a_damaged_tree_is_not_verified_and_is_mended_by_an_install(
    client: Client, damage: Callable[[Path], str], reason: str
) -> None:
    client.spm("install", "gamma").ok()
    found = damage(client.tree("gamma"))

    with unchanged(client.home):
        verified = client.spm("verify")

    message = f"gamma 1.0.0 in {client.tree('gamma')}: {found}"
    verified.refused(25, reason, message, HINT, said=f"REFUSED [{reason}] gamma 1.0.0\n")
    assert [plugin["status"] for plugin in verified.document["plugins"]] == ["refused"]
    client.spm("install", "gamma==1.0.0").ok()
    client.require_sound()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (add_a_file, "file-set"),
        (change_a_byte_in_place, "digest"),
        (put_a_link_in_its_place, "link"),
        (make_data_executable, "type"),
    ],
)
def test_a_damaged_tree_is_not_run(client: Client, tmp_path: Path, damage: Callable[[Path], str], reason: str) -> None:
    client.spm("install", "gamma").ok()
    (tmp_path / "x.json").write_text("[[1.0, 2.0]]")
    found = damage(client.tree("gamma"))

    with unchanged(client.home):
        ran = client.spm("run", "gamma", "--input", tmp_path / "x.json")

    ran.refused(25, reason, f"gamma 1.0.0 in {client.tree('gamma')}: {found}", HINT)


def test_a_required_plugin_that_was_changed_keeps_the_one_that_requires_it_from_running(
    client: Client, tmp_path: Path
) -> None:
    client.spm("install", "alpha").ok()
    (tmp_path / "x.json").write_text("[[1.0, 2.0]]")
    (client.tree("beta", "1.1.0") / "extra.py").touch()

    with unchanged(client.home):
        ran = client.spm("run", "alpha", "--input", tmp_path / "x.json")

    ran.refused(
        25,
        "file-set",
        f"beta 1.1.0 in {client.tree('beta', '1.1.0')}: these are there but not in the signed file table: 'extra.py'",
        "do not run what is there; `spm install beta==1.1.0` lays it out anew",
    )


@pytest.mark.parametrize("file", ["manifest.json", "manifest.sig"])
def test_an_installed_manifest_or_signature_with_a_flipped_byte_is_refused(client: Client, file: str) -> None:
    client.spm("install", "gamma").ok()
    (path,) = (client.store / "manifests").glob(f"*/{file}*")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))

    with unchanged(client.home):
        verified = client.spm("verify")

    expected = {"manifest.json": (25, "digest"), "manifest.sig": (20, "sig-invalid")}[file]
    assert (verified.code, verified.document["error"]["reason"]) == expected

"""Signing a packed folder: both classes verify, and a key that may not sign is refused before it does."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from keys.key_files import KeyRole, PublicKeyFile, load_private, new_key
from keys.keyring import LoaderConf, loader_block
from keys.verified import Expected, FetchedManifest, verify_manifest
from manifests.errors import KeyNamespaceMismatch, KeyRoleMismatch, KeyUnknown, NotCanonical, Unsigned, UsageError
from spm_client.workflows.packed import PackedFolder
from spm_client.workflows.sign import sign
from tests.spm_client.workflows.sources import packed, write_source


def release(tmp_path: Path, kind: str = "ext") -> PackedFolder:
    return PackedFolder.read(packed(write_source(tmp_path / "tone", type=kind), tmp_path / "dist").folder)


def key(tmp_path: Path, role: str, publisher: str = "audio-team", name: str = "") -> PublicKeyFile:
    return new_key(tmp_path / "keys", name or role, KeyRole(role), publisher, None)


def signed(tmp_path: Path, folder: PackedFolder, public: PublicKeyFile) -> Path:
    return sign(folder, public, load_private(tmp_path / "keys" / f"{public.name}.key", None))


@pytest.mark.parametrize("kind", ["core", "ext"])
def test_what_is_signed_verifies_with_the_key_pinned(tmp_path: Path, kind: str) -> None:
    folder, public = release(tmp_path, kind), key(tmp_path, kind)

    path = signed(tmp_path, folder, public)

    read = PackedFolder.read(folder.folder)
    assert path.name == {"core": f"manifest.sig.{public.keyid}", "ext": "manifest.jws"}[kind]
    assert read.signatures == {path.name: path.read_bytes()}
    pins = loader_block(public, ("tone",) if kind == "ext" else ())
    threshold = "[core]\nthreshold = 1\n"
    conf = LoaderConf.parse(f'[registry]\nid = "team.example"\nurl = "http://127.0.0.1:8080"\n{threshold}{pins}')
    verified = verify_manifest(
        FetchedManifest(data=read.data, signatures=read.signatures),
        conf.keyring,
        Expected(
            registry="team.example",
            name=read.manifest.name,
            version=read.manifest.version,
            manifest_sha256=read.sha256,
            variant_tag=None,
            type=read.manifest.type,
        ),
    )
    assert verified.keyids == (public.keyid,)


def test_two_core_keys_sign_side_by_side(tmp_path: Path) -> None:
    folder = release(tmp_path, "core")

    paths = {signed(tmp_path, folder, key(tmp_path, "core", name=name)) for name in ("one", "two")}

    assert set(PackedFolder.read(folder.folder).signatures) == {path.name for path in paths}
    assert len(paths) == 2


@pytest.mark.parametrize(("kind", "role"), [("core", "ext"), ("ext", "core")])
def test_a_key_of_the_other_role_is_refused(tmp_path: Path, kind: str, role: str) -> None:
    folder, public = release(tmp_path, kind), key(tmp_path, role)

    with pytest.raises(KeyRoleMismatch) as refused:
        signed(tmp_path, folder, public)

    assert (refused.value.message, refused.value.hint) == (
        f"`tone` is of the class {kind}, and the key `{role}` has the role {role}",
        f"sign it with a key made by `spm keys new --role {kind}`",
    )
    assert PackedFolder.read(folder.folder).signatures == {}


def test_another_publisher_s_key_is_refused(tmp_path: Path) -> None:
    folder, public = release(tmp_path), key(tmp_path, "ext", "video-team")

    with pytest.raises(KeyNamespaceMismatch) as refused:
        signed(tmp_path, folder, public)

    assert (refused.value.message, refused.value.hint) == (
        "`tone` was packed for the publisher `audio-team`, and the key `ext` is `video-team`'s",
        "pack it again: `spm pack DIR --publisher video-team`",
    )
    assert PackedFolder.read(folder.folder).signatures == {}


def test_halves_of_two_keys_are_refused(tmp_path: Path) -> None:
    folder, public = release(tmp_path), key(tmp_path, "ext")
    other = key(tmp_path, "ext", name="other")

    with pytest.raises(KeyUnknown) as refused:
        signed(tmp_path, folder, replace(public, name="other"))

    assert (refused.value.message, refused.value.hint) == (
        f"`other.key` is not the private half of `other.pub`: its key id is {other.keyid}, not {public.keyid}",
        "put back the two files that `spm keys new` wrote together",
    )
    assert PackedFolder.read(folder.folder).signatures == {}


def test_an_unsigned_folder_says_how_it_is_signed(tmp_path: Path) -> None:
    folder = release(tmp_path)

    with pytest.raises(Unsigned) as refused:
        folder.require_signed()

    assert (refused.value.message, refused.value.hint) == (
        f"`{folder.folder}` is not signed",
        f"sign it: `spm sign {folder.folder} --key NAME`",
    )


def test_a_folder_that_is_not_packed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        PackedFolder.read(tmp_path)

    assert (refused.value.message, refused.value.hint) == (
        f"`{tmp_path}` is not a packed plugin: it has no `manifest.json`",
        "make one with `spm pack DIR`",
    )


def test_a_manifest_that_was_edited_by_hand_is_refused(tmp_path: Path) -> None:
    folder = release(tmp_path).folder
    with (folder / "manifest.json").open("ab") as file:
        file.write(b"\n")

    with pytest.raises(NotCanonical) as refused:
        PackedFolder.read(folder)

    assert refused.value.message == "the manifest is not in RFC 8785 canonical form"


def test_only_signature_files_are_read_and_the_digest_is_of_the_bytes(tmp_path: Path) -> None:
    folder = release(tmp_path)
    for name in ("manifest.sig", "manifest.sig.ab", f"manifest.sig.{'AB' * 32}", "manifest.jws~", "notes"):
        (folder.folder / name).write_bytes(b"")

    read = PackedFolder.read(folder.folder)

    assert read.signatures == {}
    assert read.sha256 == hashlib.sha256((folder.folder / "manifest.json").read_bytes()).hexdigest()

"""Key pairs on disk: round trips, permissions, refusals."""

import os
import resource
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from keys import core_signature
from keys.key_files import KeyRole, PublicKeyFile, is_encrypted, keyid_of, list_keys, load_private, load_public, new_key
from manifests.errors import AlgorithmRefused, ConfigPermissions, ConfigSyntax, UsageError
from tests.keys.builders import CORE, EXT, UNHURRIED, keyid, pem, refusal_of

PUBLIC = PublicKeyFile(
    name="audio", role=KeyRole.EXT, publisher="audio-team", keyid=keyid(EXT), public_key_pem=pem(EXT)
)


def mode_of(path: Path) -> str:
    return f"{stat.S_IMODE(path.stat().st_mode):04o}"


@pytest.mark.parametrize("passphrase", [None, b"correct horse"])
@pytest.mark.parametrize("role", KeyRole)
def test_new_pair_is_read_back_and_signs(tmp_path: Path, role: KeyRole, passphrase: bytes | None) -> None:
    public = new_key(tmp_path / "keys", "release-1", role, "core-team", passphrase)

    private = load_private(tmp_path / "keys" / "release-1.key", passphrase)

    assert load_public(tmp_path / "keys" / "release-1.pub") == public
    assert list_keys(tmp_path / "keys") == (public,)
    assert public.keyid == keyid_of(private.public_key())
    assert (public.name, public.role, public.publisher) == ("release-1", role, "core-team")
    core_signature.verify(public.public_key_pem, b"{}", core_signature.sign(private, b"{}"))


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        new_key(tmp_path / "keys", "a", KeyRole.EXT, "team", b"secret")
    finally:
        os.umask(before)

    assert mode_of(tmp_path / "keys") == "0700"
    assert mode_of(tmp_path / "keys" / "a.key") == "0600"
    assert mode_of(tmp_path / "keys" / "a.pub") == "0644"


def test_private_key_is_encrypted_unless_told_otherwise(tmp_path: Path) -> None:
    new_key(tmp_path, "closed", KeyRole.EXT, "team", b"secret")
    new_key(tmp_path, "open", KeyRole.EXT, "team", None)

    assert (tmp_path / "closed.key").read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    assert (tmp_path / "open.key").read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----\n")


def test_key_file_tells_whether_it_needs_a_passphrase(tmp_path: Path) -> None:
    new_key(tmp_path, "closed", KeyRole.EXT, "team", b"secret")
    new_key(tmp_path, "open", KeyRole.EXT, "team", None)

    assert is_encrypted(tmp_path / "closed.key")
    assert not is_encrypted(tmp_path / "open.key")


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(UsageError) as caught:
        new_key(tmp_path / "file" / "keys", "a", KeyRole.EXT, "team", None)

    assert caught.value.message == f"the key file {tmp_path / 'file' / 'keys'} cannot be written: Not a directory"


def test_half_a_key_is_never_left_behind(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(UsageError) as caught:
            new_key(tmp_path, "a", KeyRole.EXT, "team", None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert caught.value.message == f"the key file {tmp_path / 'a.key'} cannot be written: File too large"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("existing", ["a.key", "a.pub"])
def test_no_key_is_ever_overwritten(tmp_path: Path, existing: str) -> None:
    (tmp_path / existing).write_text("precious")

    with pytest.raises(UsageError) as caught:
        new_key(tmp_path, "a", KeyRole.EXT, "team", None)

    assert caught.value.message == f"{tmp_path / existing} exists, and spm overwrites no key"
    assert caught.value.hint == "choose another name"
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(existing, "precious")]


@pytest.mark.parametrize("name", ["", "../a", "a/b", ".a", "a b", "a\n", "x" * 65])
def test_name_that_is_no_plain_file_name_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        new_key(tmp_path / "keys", name, KeyRole.EXT, "team", None)

    assert list(tmp_path.iterdir()) == []


def test_empty_passphrase_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        new_key(tmp_path, "a", KeyRole.EXT, "team", b"")

    assert caught.value.message == "the passphrase is empty"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o777])
def test_private_key_that_others_may_use_is_refused(tmp_path: Path, mode: int) -> None:
    new_key(tmp_path, "a", KeyRole.EXT, "team", None)
    path = tmp_path / "a.key"
    path.chmod(mode)

    with pytest.raises(ConfigPermissions) as caught:
        load_private(path, None)

    assert caught.value.message == f"{path} has the mode {mode:04o}: others than its owner may use this private key"
    assert caught.value.hint == f"`chmod 600 {path}`; if others had access, make a new key"
    assert caught.value.exit_code == 26


@pytest.mark.parametrize(
    ("passphrase", "message"),
    [
        (None, "{path} is encrypted and no passphrase was given"),
        (b"wrong", "{path} cannot be used: the passphrase does not open it"),
        (b"", "{path} cannot be used: the passphrase does not open it"),
    ],
)
def test_encrypted_key_needs_its_passphrase(tmp_path: Path, passphrase: bytes | None, message: str) -> None:
    new_key(tmp_path, "a", KeyRole.EXT, "team", b"right")

    with pytest.raises(UsageError) as caught:
        load_private(tmp_path / "a.key", passphrase)

    assert caught.value.message == message.format(path=tmp_path / "a.key")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "{path} cannot be used: it is not a private key in PKCS #8 PEM"),
        (
            b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "{path} cannot be used: it is not a private key in PKCS #8 PEM",
        ),
        (b"x" * 20_000, "the key file {path} has more than the 16384 bytes allowed"),
    ],
)
def test_file_that_is_no_private_key_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "a.key"
    path.touch(mode=0o600)
    path.write_bytes(data)

    with pytest.raises(UsageError) as caught:
        load_private(path, None)

    assert caught.value.message == why.format(path=path)


@pytest.mark.parametrize("private", [ec.derive_private_key(5, ec.SECP384R1()), ed25519.Ed25519PrivateKey.generate()])
def test_private_key_of_another_kind_is_refused(
    tmp_path: Path, private: ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
) -> None:
    path = tmp_path / "a.key"
    path.touch(mode=0o600)
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    with pytest.raises(AlgorithmRefused) as caught:
        load_private(path, None)

    assert caught.value.message == f"{path} is not a P-256 key, the only kind that spm signs with"


def test_missing_key_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_private(tmp_path / "a.key", None)

    assert caught.value.message == f"the key file {tmp_path / 'a.key'} cannot be read: No such file or directory"


def test_key_file_that_is_a_pipe_or_a_folder_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pub")
    (tmp_path / "folder.pub").mkdir()

    for name, why in (("pipe.pub", "is not a regular file"), ("folder.pub", "cannot be read: Is a directory")):
        with pytest.raises(UsageError) as caught:
            load_public(tmp_path / name)
        assert caught.value.message == f"the key file {tmp_path / name} {why}"


def test_folder_that_is_not_there_holds_no_keys(tmp_path: Path) -> None:
    assert list_keys(tmp_path / "none") == ()


def test_keys_are_listed_by_name(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        new_key(tmp_path, name, KeyRole.EXT, "team", None)

    assert [key.name for key in list_keys(tmp_path)] == ["a", "b", "c"]


@pytest.mark.property
@UNHURRIED
@given(
    name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
    publisher=st.from_regex(r"[a-z0-9]{1,9}(-[a-z0-9]{1,9}){0,4}", fullmatch=True),
    role=st.sampled_from(KeyRole),
    number=st.integers(1, 1 << 200),
)
def test_public_key_file_makes_the_round_trip(name: str, publisher: str, role: KeyRole, number: int) -> None:
    public = PublicKeyFile(name=name, role=role, publisher=publisher, keyid=keyid(number), public_key_pem=pem(number))

    assert PublicKeyFile.from_bytes(public.to_bytes()) == public


def test_public_key_file_is_one_line_of_canonical_json() -> None:
    escaped = pem(EXT).decode().replace("\n", "\\n")

    assert PUBLIC.to_bytes().decode() == (
        f'{{"_type":"spm.public-key/1","keyid":"{keyid(EXT)}","name":"audio","public_key":"{escaped}",'
        '"publisher":"audio-team","role":"ext"}\n'
    )


@pytest.mark.property
@UNHURRIED
@given(bit=st.integers(0, len(PUBLIC.to_bytes()) * 8 - 1))
def test_flipped_bit_never_changes_the_key_unseen(bit: int) -> None:
    changed = bytearray(PUBLIC.to_bytes())
    changed[bit // 8] ^= 1 << (bit % 8)

    refusal = refusal_of(lambda: PublicKeyFile.from_bytes(bytes(changed)))

    if refusal is None:
        read = PublicKeyFile.from_bytes(bytes(changed))
        assert (read.keyid, read.public_key_pem) == (PUBLIC.keyid, PUBLIC.public_key_pem)
    else:
        assert refusal.exit_code == 26


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            str(keyid(EXT)),
            str(keyid(CORE)),
            f"a.pub says `keyid` is {keyid(CORE)}, but its key has the id {keyid(EXT)}",
        ),
        ('"role":"ext"', '"role":"host"', "a.pub is refused: `role`: 'host' is not one of `core`, `ext`, `root`"),
        (
            "public-key/1",
            "public-key/2",
            "a.pub is refused: `_type`: 'spm.public-key/2' is not one of `spm.public-key/1`",
        ),
        ('"name"', '"nome"', "a.pub is refused: `name` is missing; `nome` is not a known member"),
        ('{"_type"', '{ "_type"', "a.pub is not in RFC 8785 canonical form"),
        ("}\n", "}\n\n", "a.pub is not in RFC 8785 canonical form"),
    ],
)
def test_public_key_file_with_a_fault_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigSyntax) as caught:
        PublicKeyFile.from_bytes(PUBLIC.to_bytes().decode().replace(old, new).encode(), what="a.pub")

    assert caught.value.message == message
    assert caught.value.exit_code == 26


def test_public_key_file_with_a_broken_key_says_why_and_how_to_mend_it() -> None:
    with pytest.raises(ConfigSyntax) as caught:
        PublicKeyFile.from_bytes(PUBLIC.to_bytes().replace(b"MFkw", b"MF*w"), what="a.pub")

    assert caught.value.message == (
        "a.pub is refused: `public_key`: the public key is not an EC P-256 key in PEM: its body is not base64 "
        "(write the key with `openssl pkey -pubin -in KEY -pubout -outform PEM -ec_conv_form uncompressed`)"
    )

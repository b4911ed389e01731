"""`spm keys` and passphrases: made once, shown as loader.conf takes them, never asked for where nobody can answer."""

import json
import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path

import pytest
from jwcrypto.jwk import JWK

from keys.key_files import is_encrypted, keyid_of, load_private, load_public
from tests.keys.refused_keys import HINT, REFUSED_KEYS
from tests.spm_client.cli.conftest import Spm

REPOSITORY = Path(__file__).parents[3]
SPM = [sys.executable, "-m", "spm_client.cli.main"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@contextmanager
def given(data: bytes) -> Iterator[str]:
    """Give a descriptor from which the data is read."""
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    yield str(reader)
    os.close(reader)


def new(spm: Spm, folder: Path, role: str, *more: str) -> str:
    told = spm("keys", "new", "--role", role, "--no-passphrase", "--keys", folder, "--json", *more)
    assert told.code == 0, told.err
    return str(told.document["keyid"])


def test_a_new_key_is_told_and_lies_in_the_folder(spm: Spm, folder: Path) -> None:
    told = spm("keys", "new", "--role", "ext", "--publisher", "audio-team", "--no-passphrase", "--keys", folder)

    public = load_public(folder / "ext.pub")
    assert (told.code, told.err) == (0, "")
    assert told.out == (
        f"made the ext key `ext` of `audio-team` in {folder}\n"
        f"  keyid   {public.keyid}\n"
        "  private ext.key (keep it), public ext.pub (hand it to the registry's administrator)\n"
    )
    assert not is_encrypted(folder / "ext.key")


def test_a_key_is_never_overwritten(spm: Spm, folder: Path) -> None:
    keyid = new(spm, folder, "ext")

    told = spm("keys", "new", "--role", "ext", "--no-passphrase", "--keys", folder)

    assert (told.code, told.err) == (
        2,
        f"error[usage]: {folder / 'ext.key'} exists, and spm overwrites no key\n  hint: choose another name\n",
    )
    assert load_public(folder / "ext.pub").keyid == keyid


def test_keys_are_listed_by_name(spm: Spm, folder: Path) -> None:
    ext, core = new(spm, folder, "ext", "--publisher", "audio-team"), new(spm, folder, "core")
    (folder / "core.key").unlink()

    told = spm("keys", "list", "--keys", folder)

    assert told.out == (
        "NAME  ROLE  PUBLISHER   PRIVATE KEY  KEYID\n"
        f"core  core  core        absent       {core}\n"
        f"ext   ext   audio-team  unencrypted  {ext}\n"
    )
    listed = spm("keys", "list", "--keys", folder, "--json").document["keys"]
    assert [(key["name"], key["private"]) for key in listed] == [("core", "absent"), ("ext", "unencrypted")]


def test_a_list_says_which_private_keys_need_a_passphrase_or_are_open_to_others(spm: Spm, folder: Path) -> None:
    with given(b"open sesame\n") as descriptor:
        spm("keys", "new", "--role", "ext", "--passphrase-fd", descriptor, "--keys", folder)
    new(spm, folder, "core")
    (folder / "core.key").chmod(0o644)

    listed = spm("keys", "list", "--keys", folder, "--json").document["keys"]

    assert [(key["name"], key["private"]) for key in listed] == [("core", "open to others"), ("ext", "encrypted")]


def test_an_empty_folder_has_no_keys(spm: Spm, folder: Path) -> None:
    assert spm("keys", "list", "--keys", folder).out == "there are no keys yet: `spm keys new` makes one\n"


@pytest.mark.parametrize(
    ("role", "more", "head", "tail"),
    [
        ("ext", [], '[[ext]]\npublisher = "ext"\n', 'names = ["*"]\n'),
        ("ext", ["--names", "audio-*", "log-mel"], '[[ext]]\npublisher = "ext"\n', 'names = ["audio-*", "log-mel"]\n'),
        ("core", [], "[[core.keys]]\n", ""),
    ],
)
def test_a_key_is_shown_with_the_lines_that_trust_it(
    spm: Spm, folder: Path, role: str, more: list[str], head: str, tail: str
) -> None:
    keyid = new(spm, folder, role)
    pem = load_public(folder / f"{role}.pub").public_key_pem.decode()

    told = spm("keys", "show", role, "--keys", folder, *more)

    assert (told.code, told.err) == (0, "")
    assert told.out == f'{pem}\n{head}keyid = "{keyid}"\npublic_key = """\n{pem}"""\n{tail}\n'


def test_a_core_key_takes_no_names(spm: Spm, folder: Path) -> None:
    new(spm, folder, "core")

    told = spm("keys", "show", "core", "--keys", folder, "--names", "audio-*")

    assert (told.code, told.err) == (2, "error[usage]: the core key `core` takes no names\n")


@pytest.mark.parametrize("data", [b"open sesame", b"open sesame\n", b"open sesame\r\n", b"open sesame\nmore\n"])
def test_a_passphrase_is_the_first_line_of_a_descriptor(spm: Spm, folder: Path, data: bytes) -> None:
    with given(data) as descriptor:
        told = spm("keys", "new", "--role", "ext", "--passphrase-fd", descriptor, "--keys", folder)

    assert (told.code, told.err) == (0, "")
    require_opened_by(folder / "ext.key", b"open sesame")


def test_a_passphrase_that_comes_in_pieces_is_read_whole(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*SPM, "keys", "new", "--role", "ext", "--passphrase-fd", "0", "--keys", str(tmp_path)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        bufsize=0,
    )
    assert process.stdin is not None
    process.stdin.write(b"open ")
    # Until it waits for more, the first piece lies in the pipe.
    while pending(process.stdin.fileno()):
        pass
    process.stdin.write(b"sesame\n")
    process.stdin.close()

    assert process.wait(30) == 0
    require_opened_by(tmp_path / "ext.key", b"open sesame")


def require_opened_by(path: Path, passphrase: bytes) -> None:
    """Assert that the passphrase opens the private key, whose public half lies beside it."""
    private = load_private(path, passphrase)
    assert keyid_of(private.public_key()) == load_public(path.with_suffix(".pub")).keyid


def pending(descriptor: int) -> int:
    """Return how many bytes lie unread in a pipe."""
    return int.from_bytes(ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the passphrase is empty"),
        (b"\n", "the passphrase is empty"),
        (b"x" * 1024, "the passphrase has more than the 1023 bytes allowed"),
        (b"x" * 5000 + b"\n", "the passphrase has more than the 1023 bytes allowed"),
    ],
)
def test_a_passphrase_that_is_none_makes_no_key(spm: Spm, folder: Path, data: bytes, message: str) -> None:
    with given(data) as descriptor:
        told = spm("keys", "new", "--role", "ext", "--passphrase-fd", descriptor, "--keys", folder)

    assert (told.code, told.err) == (2, f"error[usage]: {message}\n")
    assert not folder.exists()


def test_the_longest_passphrase_works(spm: Spm, folder: Path) -> None:
    with given(b"x" * 1023) as descriptor:
        told = spm("keys", "new", "--role", "ext", "--passphrase-fd", descriptor, "--keys", folder)

    assert told.code == 0
    require_opened_by(folder / "ext.key", b"x" * 1023)


@pytest.mark.parametrize(
    ("descriptor", "why"),
    [("999", "Bad file descriptor"), ("-1", "Bad file descriptor"), ("9" * 20, "it is no descriptor")],
)
def test_a_descriptor_that_is_none_is_refused(spm: Spm, folder: Path, descriptor: str, why: str) -> None:
    told = spm("keys", "new", "--role", "ext", f"--passphrase-fd={descriptor}", "--keys", folder)

    assert (told.code, told.err) == (2, f"error[usage]: file descriptor {descriptor} cannot be read: {why}\n")


def test_without_a_terminal_nobody_is_asked(tmp_path: Path) -> None:
    done = subprocess.run(
        [*SPM, "keys", "new", "--role", "ext", "--keys", str(tmp_path / "k")],
        cwd=REPOSITORY,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error[usage]: a passphrase is needed and there is no terminal to ask on\n"
        "  hint: use `--passphrase-fd N`, or `--no-passphrase` to leave the key unencrypted\n"
    )
    assert not (tmp_path / "k").exists()


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (b"open\nopen\n", 0, b""),
        (b"open\nshut\n", 2, b"error[usage]: the two passphrases differ; no key was made\r\n"),
        (b"\x04", 2, b"error[usage]: no passphrase was given\r\n"),
    ],
    ids=["same", "differ", "end"],
)
def test_on_a_terminal_it_is_asked_twice_and_not_shown(tmp_path: Path, typed: bytes, code: int, said: bytes) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(REPOSITORY)
        os.execv(sys.executable, [*SPM, "keys", "new", "--role", "ext", "--keys", str(tmp_path)])
    shown = b""
    pieces = iter(typed.splitlines(keepends=True))
    while piece := read(terminal):
        shown += piece
        if shown.endswith(b": "):
            os.write(terminal, next(pieces))
    os.close(terminal)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
    assert b"Passphrase for the new key `ext`: " in shown
    assert said in shown
    assert b"open\r" not in shown
    assert (tmp_path / "ext.key").exists() is (code == 0)


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1024)
    except OSError:
        return b""


def test_a_root_key_is_shown_with_what_it_is_for(spm: Spm, folder: Path) -> None:
    new(spm, folder, "root")
    pem = load_public(folder / "root.pub").public_key_pem.decode()

    told = spm("keys", "show", "root", "--keys", folder)

    line = "a root key signs no plugins: give it to `spm-registry root init root.pub`"
    assert (told.code, told.out, told.err) == (0, f"{pem}\n{line}\n", "")
    assert spm("keys", "show", "root", "--keys", folder, "--json").document["loader_conf"] is None


def test_a_root_key_takes_no_names(spm: Spm, folder: Path) -> None:
    new(spm, folder, "root")

    told = spm("keys", "show", "root", "--keys", folder, "--names", "*")

    assert (told.code, told.out) == (2, "")
    assert told.err == (
        "error[usage]: the root key `root` signs no plugins: it vouches for a registry's index\n"
        "  hint: give it to `spm-registry root init root.pub`; loader.conf then pins the root\n"
    )


@pytest.mark.parametrize("more", [[], ["--format", "pem"]])
def test_a_public_key_is_exported_in_pem(spm: Spm, folder: Path, more: list[str]) -> None:
    new(spm, folder, "ext")

    told = spm("keys", "export", "ext", "--keys", folder, *more)

    assert (told.code, told.out, told.err) == (0, load_public(folder / "ext.pub").public_key_pem.decode(), "")


def test_a_public_key_is_exported_as_a_jwk_under_its_key_id(spm: Spm, folder: Path) -> None:
    keyid = new(spm, folder, "core")

    told = spm("keys", "export", "core", "--format", "jwk", "--keys", folder)

    jwk = JWK.from_json(told.out)
    assert (told.code, told.err) == (0, "")
    assert (jwk["kid"], jwk.has_private) == (keyid, False)
    assert jwk.export_to_pem() == load_public(folder / "core.pub").public_key_pem
    assert set(json.loads(told.out)) == {"alg", "crv", "kid", "kty", "use", "x", "y"}


@pytest.mark.parametrize("format_", ["pem", "jwk"])
def test_an_export_goes_to_a_new_file(spm: Spm, folder: Path, tmp_path: Path, format_: str) -> None:
    keyid = new(spm, folder, "ext")
    printed = spm("keys", "export", "ext", "--format", format_, "--keys", folder).out
    path = tmp_path / "out"

    told = spm("keys", "export", "ext", "--format", format_, "--keys", folder, "--output", path)

    assert (told.code, told.out, told.err) == (0, f"wrote the public key `ext` to {path}\n", "")
    assert path.read_text() == printed
    assert path.stat().st_mode & 0o777 == 0o644
    document = spm("keys", "export", "ext", "--format", format_, "--keys", folder, "--json").document
    assert (document["keyid"], document["format"], document["text"], document["output"]) == (
        keyid,
        format_,
        printed,
        None,
    )


def test_an_export_overwrites_nothing(spm: Spm, folder: Path) -> None:
    new(spm, folder, "ext")
    before = (folder / "ext.key").read_bytes()

    told = spm("keys", "export", "ext", "--keys", folder, "--output", folder / "ext.key")

    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"error[usage]: {folder / 'ext.key'} exists, and spm overwrites no key\n  hint: choose another name\n"
    )
    assert (folder / "ext.key").read_bytes() == before


def test_a_key_that_is_not_there_is_not_exported(spm: Spm, folder: Path) -> None:
    told = spm("keys", "export", "ana", "--keys", folder)

    assert (told.code, told.out) == (2, "")
    assert told.err == f"error[usage]: the key file {folder / 'ana.pub'} cannot be read: No such file or directory\n"


def test_a_fingerprint_is_the_key_id_whatever_names_the_key(spm: Spm, folder: Path, tmp_path: Path) -> None:
    keyid = new(spm, folder, "root")
    spm("keys", "export", "root", "--keys", folder, "--output", tmp_path / "root.pem")

    for named in ("root", folder / "root.pub", tmp_path / "root.pem"):
        told = spm("keys", "fingerprint", named, "--keys", folder)
        assert (told.code, told.out, told.err) == (0, f"{keyid}\n", "")
    assert spm("keys", "fingerprint", "root", "--keys", folder, "--json").document == {
        "keyid": keyid,
        "path": str(folder / "root.pub"),
    }


def test_a_fingerprint_is_that_of_the_key_in_the_folder_before_a_file_of_that_name(
    spm: Spm, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyid, other = new(spm, folder, "ext"), new(spm, tmp_path / "other", "ext")
    (tmp_path / "ext").write_bytes(load_public(tmp_path / "other" / "ext.pub").public_key_pem)
    monkeypatch.chdir(tmp_path)

    assert spm("keys", "fingerprint", "ext", "--keys", folder).out == f"{keyid}\n"
    assert spm("keys", "fingerprint", "./ext", "--keys", folder).out == f"{other}\n"


def test_a_fingerprint_of_nothing_is_refused(spm: Spm, folder: Path) -> None:
    told = spm("keys", "fingerprint", "ana", "--keys", folder)

    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"error[usage]: there is no key `ana` in {folder}, and no file of that name\n"
        "  hint: `spm keys list` shows the keys there\n"
    )


def test_a_fingerprint_of_a_private_key_is_refused(spm: Spm, folder: Path) -> None:
    new(spm, folder, "ext")

    told = spm("keys", "fingerprint", folder / "ext.key", "--keys", folder)

    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"error[usage]: {folder / 'ext.key'} is a private key, and only the public half is asked for\n"
        "  hint: give the `.pub` file that `spm keys new` wrote beside it\n"
    )


@pytest.mark.parametrize("name", REFUSED_KEYS)
def test_a_key_of_another_kind_has_no_fingerprint(spm: Spm, tmp_path: Path, name: str) -> None:
    data, why = REFUSED_KEYS[name]
    path = tmp_path / "other.pem"
    path.write_bytes(data)

    told = spm("keys", "fingerprint", path)

    assert (told.code, told.out) == (20, "")
    assert told.err == (
        f"error[alg-refused]: {path}: the public key is not an EC P-256 key in PEM: {why}\n  hint: {HINT}\n"
    )

"""The commands on the signatures page, run as they stand there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from keys.ext_signature import MAX_TOKEN_BYTES
from keys.keyring import LoaderConf, RootPin
from keys.verified import FetchedManifest
from manifests.parts import PluginType
from tests.keys.builders import CORE, CORE_TWO, EXT, STRANGER, keyid, manifest, pem, signed_core, signed_ext

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "signatures.md"


def documented(language: str, word: str) -> str:
    """Return the one code block of the page in that language which has that word."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if word in block]
    return str(block)


def written(directory: Path, fetched: FetchedManifest) -> Path:
    (directory / "manifest.json").write_bytes(fetched.data)
    for name, signature in fetched.signatures.items():
        (directory / name).write_bytes(signature)
    (directory / "core.pem").write_bytes(pem(CORE))
    (directory / "ext.pem").write_bytes(pem(EXT))
    return directory


def shell(command: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": "/usr/bin:/bin", "KEYID": keyid(CORE)}
    return subprocess.run(["sh", "-c", command], cwd=directory, env=environment, capture_output=True, text=True)


@pytest.fixture
def core_release(tmp_path: Path) -> Path:
    return written(tmp_path, signed_core(manifest(PluginType.CORE, summary="Schön"), CORE))


def test_documented_openssl_pipe_accepts_a_core_signature(core_release: Path) -> None:
    result = shell(documented("sh", "-verify"), core_release)

    assert (result.returncode, result.stdout, result.stderr) == (0, "Verified OK\n", "")


@pytest.mark.parametrize("name", ["manifest.json", f"manifest.sig.{keyid(CORE)}"])
def test_documented_openssl_pipe_refuses_a_changed_file(core_release: Path, name: str) -> None:
    data = bytearray((core_release / name).read_bytes())
    data[-1] ^= 1
    (core_release / name).write_bytes(data)

    result = shell(documented("sh", "-verify"), core_release)

    assert result.returncode == 1
    assert "Verification failure" in result.stdout


def test_documented_openssl_pipe_refuses_another_key(core_release: Path) -> None:
    (core_release / "core.pem").write_bytes(pem(CORE_TWO))

    assert shell(documented("sh", "-verify"), core_release).returncode == 1


def test_documented_command_prints_the_key_id(core_release: Path) -> None:
    assert shell(documented("sh", "sha256sum"), core_release).stdout == f"{keyid(CORE)}\n"


def test_documented_program_verifies_an_ext_token_and_writes_the_manifest(tmp_path: Path) -> None:
    fetched = signed_ext(manifest())
    written(tmp_path, fetched)
    (tmp_path / "manifest.json").unlink()

    subprocess.run([sys.executable, "-c", documented("python", "jws")], cwd=tmp_path, check=True)

    assert (tmp_path / "manifest.json").read_bytes() == fetched.data


def test_documented_bound_is_the_real_one() -> None:
    assert f"at most {MAX_TOKEN_BYTES:,} bytes" in PAGE.read_text(encoding="utf-8")


def test_documented_loader_conf_is_read_as_it_says() -> None:
    text = documented("toml", "[registry]")
    for number in (CORE, EXT, STRANGER, CORE_TWO):
        text = text.replace("<64 hexadecimal digits>", keyid(number), 1)
    text = re.sub(r'"""\n.*?"""', f'"""\n{pem(CORE).decode()}"""', text, count=1, flags=re.DOTALL)
    text = text.replace('"""..."""', f'"""\n{pem(EXT).decode()}"""').replace("<digest of 1.root.json>", "ab" * 32)

    conf = LoaderConf.parse(text.replace("<digest of a manifest.json>", "cd" * 32))

    assert conf.root == RootPin(version=1, sha256="ab" * 32)
    assert [key.expires for key in conf.keyring.ext_keys] == ["2027-12-31T00:00:00Z"]
    assert [key.keyid for key in conf.keyring.core_keys] == [keyid(CORE)]
    assert [key.since for key in conf.keyring.revoked_keys] == ["2026-12-01T00:00:00Z", None]
    assert (conf.load_max_age_days, conf.bundle_max_age_days) == (30, 7)

"""The frozen vectors: through the whole of spm, and through a second verifier that knows the documentation alone."""

import base64
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keys.root_keyring import KEYRING_TYPE, RootKeyring
from keys.verified import Expected, FetchedManifest, VerifiedManifest, verify_manifest
from manifests.errors import SpmError
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.versions import Version
from tests.keys.builders import refusal_of
from tests.keys.documented_verifier import PageRefusal, verify_as_documented

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "vectors"
PAGE = ROOT / "docs" / "reference" / "writing-a-verifier.md"
DOCUMENTS = {name: json.loads((FOLDER / f"{name}.json").read_bytes()) for name in ("core", "ext")}
VECTORS = {f"{name}-{one['id']}": one for name, document in DOCUMENTS.items() for one in document["vectors"]}
MEMBERS = {"id", "comment", "clause", "asked", "keyring", "manifest", "signatures"}
MEMBERS |= {"result", "reason", "exit", "refused_at"}

each_vector = pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS.keys())


def fetched(vector: dict[str, Any]) -> FetchedManifest:
    signatures = {name: base64.b64decode(text, validate=True) for name, text in vector["signatures"].items()}
    return FetchedManifest(data=base64.b64decode(vector["manifest"], validate=True), signatures=signatures)


def asked(vector: dict[str, Any]) -> Expected:
    wanted = vector["asked"]
    return Expected(
        registry=wanted["registry"],
        name=PluginName(wanted["name"]),
        version=Version.parse(wanted["version"]),
        manifest_sha256=wanted["manifest_sha256"],
        variant_tag=wanted["variant"],
        type=PluginType(wanted["type"]) if wanted["type"] else None,
    )


def verified(vector: dict[str, Any]) -> VerifiedManifest:
    head = {"_type": KEYRING_TYPE, "registry": vector["asked"]["registry"], "serial": 1}
    keyring = RootKeyring.from_dict(head | vector["keyring"]).keyring
    return verify_manifest(fetched(vector), keyring, asked(vector))


def outcome(refusal: SpmError | None) -> tuple[str, str | None, int]:
    return ("invalid", refusal.reason, refusal.exit_code) if refusal else ("valid", None, 0)


@each_vector
def test_spm_ends_as_the_vector_says(vector: dict[str, Any]) -> None:
    refusal = refusal_of(lambda: verified(vector))

    assert outcome(refusal) == (vector["result"], vector["reason"], vector["exit"])


@each_vector
def test_verifier_written_from_the_page_agrees_on_reason_and_step(vector: dict[str, Any]) -> None:
    result: tuple[str | None, int | None] = (None, None)

    try:
        verify_as_documented(vector)
    except PageRefusal as refusal:
        result = (refusal.reason, refusal.step)

    is_about_form = vector["refused_at"] in range(4) or vector["reason"] == "non-canonical"
    assert result == ((vector["reason"], vector["refused_at"]) if is_about_form else (None, None))


@pytest.mark.parametrize(("name", "good", "bad"), [("core", 18, 205), ("ext", 17, 216)])
def test_no_vector_is_lost(name: str, good: int, bad: int) -> None:
    results = Counter(vector["result"] for vector in DOCUMENTS[name]["vectors"])

    assert results == {"valid": good, "invalid": bad}


@pytest.mark.parametrize("name", ["core", "ext"])
def test_file_says_how_to_read_it(name: str) -> None:
    document = DOCUMENTS[name]

    assert set(document) == {"format", "class", "about", "vectors"}
    assert (document["format"], document["class"]) == ("spm.vectors/1", name)
    assert PAGE.relative_to(ROOT).as_posix() in document["about"][0]
    assert all(set(vector) == MEMBERS and vector["comment"] and vector["clause"] for vector in document["vectors"])
    assert len({vector["id"] for vector in document["vectors"]}) == len(document["vectors"])


def test_page_names_every_reason_with_its_exit_code() -> None:
    rows = set(re.findall(r"^\| `([a-z-]+)` \| ([0-9]+) \|", PAGE.read_text("utf-8"), re.MULTILINE))

    assert {(one["reason"], str(one["exit"])) for one in VECTORS.values() if one["reason"]} <= rows


def test_worked_example_of_the_page_is_the_first_core_vector(tmp_path: Path) -> None:
    page, vector = PAGE.read_text("utf-8"), DOCUMENTS["core"]["vectors"][0]
    [signature] = fetched(vector).signatures.values()
    [program] = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "tests").symlink_to(ROOT / "tests")

    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    command = "openssl dgst -sha256 -verify core.pem -signature signature message"
    said = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    assert f"`{command}`" in page
    assert said == "Verified OK\n"
    shown = page.replace("\n", "")
    assert fetched(vector).data.decode() in shown
    assert signature.hex() in shown
    assert f"{vector['asked']['manifest_sha256']}{vector['keyring']['core']['keys'][0]['keyid']}" in shown


def test_good_core_vectors_verify_with_openssl(tmp_path: Path) -> None:
    good = [vector for vector in DOCUMENTS["core"]["vectors"] if vector["result"] == "valid"]

    said = [said_by_openssl(vector, keyid, tmp_path) for vector in good for keyid in verified(vector).keyids]

    assert said == ["Verified OK\n"] * 22


def said_by_openssl(vector: dict[str, Any], keyid: str, folder: Path) -> str:
    [pem] = [key["public_key"] for key in vector["keyring"]["core"]["keys"] if key["keyid"] == keyid]
    manifest = fetched(vector).data
    (folder / "key.pem").write_text(pem)
    (folder / "signature").write_bytes(fetched(vector).signatures[f"manifest.sig.{keyid}"])
    message = b"DSSEv1 42 application/vnd.spm.manifest.core+json;v=1 %d " % len(manifest) + manifest
    command = ["openssl", "dgst", "-sha256", "-verify", "key.pem", "-signature", "signature"]
    done = subprocess.run(command, cwd=folder, input=message, capture_output=True, check=False)
    return done.stdout.decode()

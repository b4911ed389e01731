"""Keys, manifests and trees for the tests of this folder. The private keys are small numbers and protect nothing."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, settings

from keys import core_signature, ext_signature
from keys.keyring import LoaderConf
from keys.pinned_keys import Keyring
from keys.public_key import KeyId, keyid_of, pem_of
from keys.verified import (
    JWS_FILE,
    SIGNATURE_FILE_PREFIX,
    Expected,
    FetchedManifest,
    VerifiedManifest,
    verify_manifest,
)
from manifests.errors import SpmError
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.parts import FileEntry, PluginType
from manifests.ranges import Range
from manifests.versions import Version

# A shared machine may stall for a second; that says nothing of the law under test.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

CORE, CORE_TWO, EXT, STRANGER = 1001, 1002, 2001, 9001
FILES = {"plugin.py": b"def make(context): ...\n", "data/weights.bin": bytes(range(256)), "data/deep/run.sh": b"true\n"}
EXECUTABLES = {"data/deep/run.sh"}


def private(number: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(number, ec.SECP256R1())


def pem(number: int) -> bytes:
    return pem_of(private(number).public_key())


def keyid(number: int) -> KeyId:
    return keyid_of(private(number).public_key())


def pinned(number: int) -> str:
    return f'keyid = "{keyid(number)}"\npublic_key = """\n{pem(number).decode()}"""\n'


def conf_text(
    core: tuple[int, ...] = (CORE,),
    ext: tuple[int, ...] = (EXT,),
    *,
    threshold: int = 1,
    names: str = '["audio-*", "log-mel"]',
    more: str = "",
) -> str:
    text = '[registry]\nid = "team.example"\nurl = "http://127.0.0.1:8080"\n'
    text += f"[core]\nthreshold = {threshold}\n"
    text += "".join(f"[[core.keys]]\n{pinned(number)}" for number in core)
    text += "".join(f'[[ext]]\npublisher = "audio-team"\n{pinned(number)}names = {names}\n{more}' for number in ext)
    return text


def keyring(*args: Any, **kwargs: Any) -> Keyring:
    return LoaderConf.parse(conf_text(*args, **kwargs)).keyring


def file_entry(path: str, data: bytes, mode: str = "r") -> FileEntry:
    return FileEntry(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode=mode)


def manifest(kind: PluginType = PluginType.EXT, **changes: Any) -> Manifest:
    files = tuple(file_entry(path, FILES[path], "x" if path in EXECUTABLES else "r") for path in sorted(FILES))
    made = Manifest(
        registry="team.example",
        publisher="audio-team",
        created="2026-01-31T12:00:00Z",
        name=PluginName("audio-encoder"),
        version=Version.parse("1.2.0"),
        type=kind,
        summary="Turns sound into vectors",
        license="Apache-2.0",
        entry="plugin:make",
        seedance_version=Range.parse(">=2.0,<3"),
        files=files,
    )
    return replace(made, **changes)


def signed_core(made: Manifest, *numbers: int) -> FetchedManifest:
    data = made.to_bytes()
    return FetchedManifest(
        data=data,
        signatures={
            SIGNATURE_FILE_PREFIX + keyid(number): core_signature.sign(private(number), data) for number in numbers
        },
    )


def signed_ext(made: Manifest, number: int = EXT) -> FetchedManifest:
    data = made.to_bytes()
    token = ext_signature.sign(private(number), keyid(number), data)
    return FetchedManifest(data=data, signatures={JWS_FILE: token})


def expected(made: Manifest, **changes: Any) -> Expected:
    asked = Expected(
        registry=made.registry,
        name=made.name,
        version=made.version,
        manifest_sha256=hashlib.sha256(made.to_bytes()).hexdigest(),
        variant_tag=made.variant.tag if made.variant else None,
        type=made.type,
    )
    return replace(asked, **changes)


def verified(**changes: Any) -> VerifiedManifest:
    made = manifest(**changes)
    return verify_manifest(signed_ext(made), keyring(), expected(made))


def refusal_of(call: Callable[[], object]) -> SpmError | None:
    """Return the refusal that a call ends in, or None where it succeeds; any other exception is a failure."""
    try:
        call()
    except SpmError as error:
        return error
    return None


@contextmanager
def acting_as(user: int) -> Iterator[None]:
    """Lower the rights of this process to those of a user for a while; needs root."""
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)


def write_tree(directory: Path) -> Path:
    for path, data in FILES.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
        (directory / path).chmod(0o555 if path in EXECUTABLES else 0o444)
    return directory

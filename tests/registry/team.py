"""A team for the tests: a registry with pinned keys, people with tokens, and releases they sign. No claims."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from sqlalchemy import create_engine, text
from werkzeug.test import TestResponse

from keys import core_signature, ext_signature
from keys.key_files import KeyRole, PublicKeyFile, load_private, load_public, new_key
from manifests.batching import BatchPolicy
from manifests.devices import parse_affinity
from manifests.manifest import Manifest
from manifests.names import parse_name
from manifests.parts import FileEntry, PluginType
from manifests.ranges import Range
from manifests.versions import Version
from registry.app import create_app
from registry.services import tokens
from registry.services.pins import pin_key
from registry.services.policy import Role
from registry.services.root_ceremony import found_root
from registry.services.setup import make_registry
from registry.services.tokens import TokenRequest
from registry.storage.site import Site, open_site

START = 1_800_000_000
FILES = {"audio_encoder.py": b"def create(context):\n    return abs\n", "weights.bin": bytes(range(256)) * 8}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def file_table(files: Mapping[str, bytes]) -> tuple[FileEntry, ...]:
    return tuple(
        FileEntry(path=path, size=len(data), sha256=digest(data), mode="r") for path, data in sorted(files.items())
    )


def manifest_of(files: Mapping[str, bytes] = FILES, **changes: Any) -> Manifest:
    """Return a manifest without fault; `changes` may take names, versions and ranges as text."""
    manifest = Manifest(
        registry="team.local",
        publisher="audio-team",
        created="2026-12-01T09:00:00Z",
        name=parse_name(changes.pop("name", "audio-encoder")),
        version=Version.parse(changes.pop("version", "1.0.0")),
        type=PluginType.EXT,
        summary="Turns speech into vectors",
        license="MIT",
        entry="audio_encoder:create",
        seedance_version=Range.parse(">=2.0.5,<3"),
        device_affinity=parse_affinity(["cpu"]),
        batch_policy=BatchPolicy.from_value("adaptive"),
        files=file_table(files),
    )
    return replace(manifest, **changes)


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    now: int = START

    def __call__(self) -> int:
        return self.now


@dataclass
class Key:
    """A key pair of somebody in the team."""

    directory: Path
    public: PublicKeyFile

    def sign(self, manifest: bytes) -> dict[str, bytes]:
        private = load_private(self.directory / f"{self.public.name}.key", None)
        if self.public.role is KeyRole.EXT:
            return {"manifest.jws": ext_signature.sign(private, self.public.keyid, manifest)}
        return {f"manifest.sig.{self.public.keyid}": core_signature.sign(private, manifest)}


def make_key(directory: Path, name: str, role: KeyRole, publisher: str = "audio-team") -> Key:
    return Key(directory=directory, public=new_key(directory, name, role, publisher, None))


def entry_of(manifest: bytes, signatures: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "manifest": b64encode(manifest).decode(),
        "signatures": {name: b64encode(data).decode() for name, data in signatures.items()},
    }


@dataclass
class Team:
    """A registry in a folder, seen both over HTTP and from behind."""

    root: Path
    site: Site
    ext: Key
    core: Key
    client: FlaskClient
    admin: str
    clock: Clock

    def token(self, label: str, role: Role = Role.PUBLISHER, names: tuple[str, ...] = ("*",), days: int = 90) -> str:
        request = TokenRequest(label=label, role=role, names=names, days=days)
        with self.site.database.writing() as records:
            return tokens.issue(records, request, secret=self.site.secret, actor="test", now=self.clock())[0]

    def ask(self, method: str, path: str, token: str | None = None, **more: Any) -> TestResponse:
        headers = dict(more.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return self.client.open(path, method=method, headers=headers, **more)

    def body(self, *manifests: Manifest, key: Key | None = None) -> bytes:
        """Return the request that opens an upload."""
        entries = []
        for manifest in manifests:
            signer = key or (self.core if manifest.type is PluginType.CORE else self.ext)
            entries.append(entry_of(manifest.to_bytes(), signer.sign(manifest.to_bytes())))
        return json.dumps({"manifests": entries}).encode()

    def submit(self, token: str, *manifests: Manifest, key: Key | None = None) -> TestResponse:
        return self.ask("POST", "/v1/uploads", token, data=self.body(*manifests, key=key))

    def send(self, token: str, upload: str, data: bytes, sha256: str | None = None) -> TestResponse:
        path = f"/v1/uploads/{upload}/blobs/{sha256 or digest(data)}"
        return self.ask("PUT", path, token, data=data)

    def publish(self, token: str, *manifests: Manifest, files: Mapping[str, bytes] = FILES) -> TestResponse:
        """Publish whole, asserting each step but the last."""
        opened = self.submit(token, *manifests)
        assert opened.status_code == 201, opened.text
        for data in files.values():
            if digest(data) in opened.json["missing"]:  # type: ignore[index]
                sent = self.send(token, opened.json["upload"], data)  # type: ignore[index]
                assert sent.status_code == 200, sent.text
        return self.ask("POST", f"/v1/uploads/{opened.json['upload']}/commit", token)  # type: ignore[index]

    def state(self) -> str:
        """Return all rows and files as text; when a token was last used is left out."""
        return state_of(self.root)


def state_of(root: Path) -> str:
    """Return all rows and files of a registry as text; when a token was last used is left out."""
    engine = create_engine(f"sqlite:///{root / 'registry.db'}")
    lines = []
    with engine.connect() as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"))
        for name in names.scalars().all():
            rows = connection.execute(text(f"SELECT * FROM {name}")).mappings()
            told = [{key: value for key, value in row.items() if key != "last_used_at"} for row in rows]
            lines += sorted(f"{name} {row}" for row in told)
    engine.dispose()
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.name.startswith("registry.db"):
            lines.append(f"{path.relative_to(root)} {digest(path.read_bytes())}")
    return "\n".join(lines)


def found_registry(root: Path, keys: Path, now: int = START) -> str:
    """Make a registry with a root of trust, which trusts one ext and one core key; return its admin token."""
    new = make_registry(root, "team.local", "http://127.0.0.1:8080", now)
    site = open_site(root)
    offline = make_key(keys, "root", KeyRole.ROOT, "team")
    found_root(site, [(offline.public, load_private(keys / "root.key", None))], 1, now)
    pin_key(site, make_key(keys, "ext", KeyRole.EXT).public, ("audio-*", "log-mel"), now)
    pin_key(site, make_key(keys, "core", KeyRole.CORE, "core-team").public, (), now)
    site.database.close()
    return new.token


def join_team(root: Path, keys: Path, admin: str, clock: Clock) -> Team:
    """Open a registry that `found_registry` made."""
    site = open_site(root)
    ext, core = (Key(directory=keys, public=load_public(keys / f"{name}.pub")) for name in ("ext", "core"))
    client = create_app(site, clock).test_client()
    return Team(root=root, site=site, ext=ext, core=core, client=client, admin=admin, clock=clock)


def problem(response: TestResponse) -> dict[str, Any]:
    """Return a problem body, checked for its frame."""
    assert response.content_type == "application/problem+json", response.text
    body: dict[str, Any] = json.loads(response.data)
    assert body["status"] == response.status_code
    return body

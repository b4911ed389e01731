"""A registry without a server: its signed index, manifests and blobs in memory, made with keys of the test's own.

It is a `Source`, and `file` is what `ServedFiles` serves of it. Makes no claims.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from keys import ext_signature
from keys.keyring import LoaderConf
from keys.pinned_keys import RevocationReason, RevokedKey
from keys.public_key import KeyId, keyid_of, pem_of
from manifests.batching import BatchPolicy
from manifests.devices import parse_affinity
from manifests.errors import NotFound
from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.parts import FileEntry, PluginType, Requires
from manifests.ranges import Range
from manifests.versions import Version
from tests.keys.trust_builders import Trust, make_trust

PUBLISHER = "team"


def fresh_index() -> Trust:
    """Return an index that was signed just now, by this host's clock; its root's end is too far off to be told of."""
    lifetimes = {"root": timedelta(days=400), "targets": timedelta(days=400)}
    return make_trust(now=datetime.now(UTC).replace(microsecond=0), lifetimes=lifetimes)


@dataclass
class SimulatedRegistry:
    """`publish` signs a release of one small file, and lists it; `index` is the signed index, for a test to change."""

    index: Trust = field(default_factory=fresh_index)
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    documents: dict[str, bytes] = field(default_factory=dict)
    shards: dict[str, Shard] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def keyid(self) -> KeyId:
        return keyid_of(self.key.public_key())

    def loader_conf(self, url: str = "http://127.0.0.1:8080", more: str = "") -> str:
        """Return a loader.conf that pins the root and the publisher's key."""
        pem = pem_of(self.key.public_key()).decode()
        return (
            f'[registry]\nid = "{self.index.registry}"\nurl = "{url}"\n{self.index.root_table}'
            f'[[ext]]\npublisher = "{PUBLISHER}"\nkeyid = "{self.keyid}"\npublic_key = """\n{pem}"""\n'
            f'names = ["*"]\n{more}'
        )

    def publish(self, name: str, version: str = "1.0.0", *, requires: Sequence[str] = (), **more: Any) -> str:
        """Publish a release and return its manifest's digest."""
        files = {f"{name.replace('-', '_')}.py": f'"""{name} {version}."""\n'.encode()}
        manifest = self._manifest(name, version, files, requires, more)
        data = manifest.to_bytes()
        digest = hashlib.sha256(data).hexdigest()
        self.documents[f"/v1/manifests/{digest}"] = data
        self.documents[f"/v1/manifests/{digest}/manifest.jws"] = ext_signature.sign(self.key, self.keyid, data)
        for blob in files.values():
            self.documents[f"/v1/blobs/{hashlib.sha256(blob).hexdigest()}"] = blob
        variant = VariantEntry.of(manifest, sha256=digest, size=len(data), keyids=[self.keyid])
        before = self.shards.get(name) or Shard(registry=self.index.registry, name=PluginName(name))
        self.list(before.with_release(ReleaseEntry.of(manifest, (variant,))))
        return digest

    def list(self, shard: Shard) -> None:
        """Put a shard in the place of the one that is signed."""
        self.shards[shard.name] = shard
        self.index.publish_shard(shard.name, shard.to_bytes())

    def revoke_key(self, since: str | None = None) -> None:
        """Revoke the publisher's key: as compromised, or as retired since a moment."""
        reason = RevocationReason.RETIRED if since else RevocationReason.COMPROMISED
        revoked = RevokedKey(keyid=self.keyid, reason=reason, since=since)
        self.index.publish_keyring(self.index.keyring.with_revoked(revoked).following())

    def revoke_manifest(self, digest: str) -> None:
        self.index.publish_keyring(self.index.keyring.with_revoked_manifest(digest).following())

    def file(self, path: str) -> bytes | None:
        """Return what lies under a path of the registry's URL."""
        if path.startswith("/v1/tuf/"):
            return self.index.files.get(path.removeprefix("/v1/tuf/"))
        return self.documents.get(path)

    # A source, as a command takes it

    def connect(self, conf: LoaderConf) -> AbstractContextManager["SimulatedRegistry"]:
        """Return itself, as a client of the registry of a loader.conf."""
        del conf
        return nullcontext(self)

    def document(self, path: str, *, max_bytes: int) -> bytes:
        self.asked.append(path)
        if (data := self.file(path)) is None:
            raise NotFound(f"this registry has no {path}")
        return data[: max_bytes + 1]

    def metadata(self, path: str, *, max_bytes: int, held: bytes | None = None, seconds: float | None = None) -> bytes:
        del seconds
        data = self.document(f"/v1/tuf/{path}", max_bytes=max_bytes)
        return held if held is not None and held == data else data

    def blob(self, sha256: str, *, size: int, offset: int = 0) -> Iterator[bytes]:
        yield self.document(f"/v1/blobs/{sha256}", max_bytes=size)[offset:]

    def _manifest(
        self, name: str, version: str, files: dict[str, bytes], requires: Sequence[str], more: dict[str, Any]
    ) -> Manifest:
        members: dict[str, Any] = {
            "registry": self.index.registry,
            "publisher": PUBLISHER,
            "created": "2026-01-31T12:00:00Z",
            "name": PluginName(name),
            "version": Version.parse(version),
            "type": PluginType.EXT,
            "summary": "a plugin for tests",
            "license": "MIT",
            "entry": f"{name.replace('-', '_')}:make",
            "seedance_version": Range.parse(">=2.0,<3"),
            "requires": Requires(plugins=tuple((PluginName(other), Range.parse("^1.0")) for other in requires)),
            "device_affinity": parse_affinity(["cpu"]),
            "batch_policy": BatchPolicy.from_value("adaptive"),
            "files": tuple(
                FileEntry(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode="r")
                for path, data in files.items()
            ),
        }
        return Manifest(**(members | more))

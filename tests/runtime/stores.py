"""Stores made by hand: signed manifests and trees exactly as an install leaves them. Drives no client."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from keys import core_signature, ext_signature
from keys.keyring import LoaderConf
from keys.public_key import KeyId, keyid_of, pem_of
from keys.root_keyring import RootKeyring
from manifests.batching import BatchPolicy
from manifests.devices import parse_affinity
from manifests.lockfile import Bindings, Generation, InstalledEntry
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.parts import Capabilities, Controls, FileEntry, PluginType, Requires, TensorSpec, Variant
from manifests.ranges import Range
from manifests.versions import Version
from runtime.installed import TrustedConf, trusted_conf
from tests.keys.trust_builders import Trust, make_trust, write_state

REGISTRY = "team.example"
PUBLISHER = "audio-team"
BATCHED = TensorSpec(name="x", dtype="float32", shape=(-1, 4))


def moment() -> datetime:
    """Return this host's time in whole seconds, as signed metadata has it."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass
class Store:
    """A store under `root`. `add` installs a plugin whose one module is `source`."""

    root: Path
    ext_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    core_key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    entries: list[InstalledEntry] = field(default_factory=list)
    trust: Trust = field(default_factory=lambda: make_trust(REGISTRY, now=moment()))

    def __post_init__(self) -> None:
        (self.root / "generations").mkdir(parents=True)
        self.write_conf()
        self.remember()

    def write_conf(self, more: str = "") -> None:
        conf = self.root / "loader.conf"
        conf.write_text(
            f'[registry]\nid = "{REGISTRY}"\nurl = "http://127.0.0.1:8080"\n[core]\nthreshold = 1\n'
            f'[[core.keys]]\n{_pinned(self.core_key)}[[ext]]\npublisher = "{PUBLISHER}"\n{_pinned(self.ext_key)}'
            f'names = ["*"]\n{self.trust.root_table}{more}'
        )
        conf.chmod(0o644)

    @property
    def conf(self) -> TrustedConf:
        """Return what this store trusts now."""
        return trusted_conf(self.root, LoaderConf.read(self.root / "loader.conf"), datetime.now(UTC))

    def remember(self) -> None:
        """Let the store know all that its registry has signed by now."""
        write_state(self.root, self.trust.state, number=self.trust.versions["timestamp"])

    def publish_keyring(self, keyring: RootKeyring) -> None:
        """Let the registry's root keys sign another keyring, and the store learn of it."""
        self.trust.publish_keyring(keyring.following())
        self.remember()

    def add(
        self,
        name: str,
        source: str,
        *,
        type: PluginType = PluginType.EXT,  # noqa: A002
        requires: Sequence[str] = (),
        inputs: Sequence[TensorSpec] = (BATCHED,),
        outputs: Sequence[TensorSpec] = (BATCHED,),
        batch_policy: BatchPolicy | None = None,
        affinity: Sequence[str] | None = ("cpu",),
        capabilities: Capabilities | None = None,
        controls: Controls | None = None,
        bindings: Bindings | None = None,
        torch: str | None = None,
        python: str | None = None,
        seedance_version: str = ">=2.0,<3",
        variant: Variant | None = None,
        version: str = "1.0.0",
        entry: str | None = None,
    ) -> Path:
        """Install a release and return its tree."""
        module = name.replace("-", "_")
        files = {f"{module}.py": source.encode()}
        manifest = Manifest(
            registry=REGISTRY,
            publisher=PUBLISHER,
            created="2026-01-31T12:00:00Z",
            name=PluginName(name),
            version=Version.parse(version),
            type=type,
            summary="a plugin for tests",
            license="MIT",
            entry=entry or f"{module}:make",
            seedance_version=Range.parse(seedance_version),
            requires=Requires(
                plugins=tuple((PluginName(other), Range.parse("^1.0")) for other in requires),
                torch=Range.parse(torch) if torch else None,
                python=Range.parse(python) if python else None,
            ),
            device_affinity=parse_affinity(affinity) if affinity is not None else None,
            batch_policy=batch_policy,
            controls=controls or Controls(),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            capabilities=capabilities or Capabilities(),
            variant=variant,
            files=tuple(_entry(path, data) for path, data in sorted(files.items())),
        )
        self.entries.append(
            self._sign(manifest, tuple(PluginName(other) for other in requires), bindings or Bindings())
        )
        self._commit()
        return self._write_tree(name, manifest.release, files)

    def runs(self) -> list[dict[str, Any]]:
        """Return the run records."""
        return [json.loads(line) for line in (self.root / "runs.jsonl").read_text().splitlines()]

    def _sign(self, manifest: Manifest, requires: tuple[PluginName, ...], bindings: Bindings) -> InstalledEntry:
        data = manifest.to_bytes()
        digest = hashlib.sha256(data).hexdigest()
        folder = self.root / "manifests" / digest
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_bytes(data)
        key = self.core_key if manifest.type is PluginType.CORE else self.ext_key
        keyid = keyid_of(key.public_key())
        if manifest.type is PluginType.CORE:
            (folder / f"manifest.sig.{keyid}").write_bytes(core_signature.sign(key, data))
        else:
            (folder / "manifest.jws").write_bytes(ext_signature.sign(key, KeyId(keyid), data))
        return InstalledEntry(
            name=manifest.name,
            version=manifest.version,
            release=manifest.release,
            manifest_sha256=digest,
            type=manifest.type,
            keyids=(keyid,),
            requested=True,
            requires=requires,
            bindings=bindings,
        )

    def _write_tree(self, name: str, release: str, files: Mapping[str, bytes]) -> Path:
        tree = self.root / "plugins" / name / release
        tree.mkdir(parents=True)
        for path, data in files.items():
            (tree / path).write_bytes(data)
            (tree / path).chmod(0o444)
        return tree

    def _commit(self) -> None:
        number = len(self.entries)
        generation = Generation(
            number=number,
            registry=REGISTRY,
            created="2026-01-31T12:00:00Z",
            plugins=tuple(sorted(self.entries, key=lambda entry: entry.name)),
        )
        (self.root / "generations" / f"{number:06}.json").write_bytes(generation.to_bytes())
        (self.root / "current").write_text(f"{number:06}\n")


def _pinned(key: ec.EllipticCurvePrivateKey) -> str:
    public = key.public_key()
    return f'keyid = "{keyid_of(public)}"\npublic_key = """\n{pem_of(public).decode()}"""\n'


def _entry(path: str, data: bytes) -> FileEntry:
    return FileEntry(path=path, size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode="r")

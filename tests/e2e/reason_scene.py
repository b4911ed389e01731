"""A simulated registry over HTTP, and a machine that has installed from it. Makes no claims."""

import copy
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from keys import core_signature, ext_signature
from keys.public_key import keyid_of, pem_of
from keys.trust_file import trust_file
from manifests.parts import PluginType
from tests.e2e.commands import Client
from tests.e2e.sources import noise
from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry
from tests.keys.tokens import encode, raw
from tests.spm_client.workflows.bundles import publish_files

BIG = (1 << 20) + 1
"""Bytes of a file that a receipt may vouch for, so that the store has receipts too."""
RECEIPTS = "[load]\nfull_hash_bytes = 0\n"
HELD = {"loader.conf", "trust", "blobs", "manifests", "plugins", "generations", "current", "receipts"}


@dataclass
class Scene:
    """One machine with `beta` 1.0.0, its registry, and a folder for what a command is given."""

    registry: SimulatedRegistry
    client: Client
    url: str
    folder: Path

    @classmethod
    @contextmanager
    def founded(cls, folder: Path) -> Iterator["Scene"]:
        """Give a machine that has just installed `beta`."""
        registry = SimulatedRegistry()
        publish_files(registry, "beta", {"weights.bin": noise(BIG)})
        with cls.served(folder, registry, Client(folder / "machine")) as scene:
            scene.client.spm("install", "beta").ok()
            yield scene

    @classmethod
    @contextmanager
    def served(cls, folder: Path, registry: SimulatedRegistry, client: Client) -> Iterator["Scene"]:
        with ServedFiles(registry.file) as served:
            scene = cls(registry, client, served.url, folder)
            scene.pin()
            yield scene

    @contextmanager
    def copied(self, folder: Path) -> Iterator["Scene"]:
        """Give the same machine and registry anew, for a test to do with as it likes."""
        with self.served(folder, copy.deepcopy(self.registry), self.client.copy(folder.name)) as scene:
            yield scene

    @property
    def beta(self) -> str:
        """The digest of the installed manifest."""
        return self.registry.shards["beta"].releases[-1].variants[0].manifest_sha256

    @property
    def installed(self) -> Path:
        """Where the installed manifest and its signature lie."""
        return self.client.store / "manifests" / self.beta

    def pin(self, more: str = "", *, tables: str = "") -> None:
        """Write loader.conf: `more` is of the publisher's key."""
        self.client.trust(self.registry.loader_conf(self.url, more) + tables + RECEIPTS)

    def write(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)

    def export_trust(self) -> bytes:
        """Return a trust file as the registry's metadata now stands."""
        return trust_file(self.registry.index.state)

    # What an author may have signed

    def replace_manifest(self, name: str, data: bytes) -> None:
        """Put other bytes, signed as well, in the place of a release's manifest."""
        digest = hashlib.sha256(data).hexdigest()
        self.registry.documents[f"/v1/manifests/{digest}"] = data
        self.replace_token(digest, ext_signature.sign(self.registry.key, self.registry.keyid, data))
        self._relist(name, manifest_sha256=digest, manifest_size=len(data))

    def replace_token(self, digest: str, token: bytes) -> None:
        self.registry.documents[f"/v1/manifests/{digest}/manifest.jws"] = token

    def publish_core(self, name: str, *signers: ec.EllipticCurvePrivateKey) -> None:
        """Publish a core release that these keys have signed."""
        digest = self.registry.publish(name, type=PluginType.CORE)
        keyids = {keyid_of(key.public_key()): key for key in signers}
        for keyid, key in keyids.items():
            signature = core_signature.sign(key, self.manifest(digest))
            self.registry.documents[f"/v1/manifests/{digest}/manifest.sig.{keyid}"] = signature
        self._relist(name, signatures=tuple(sorted(keyids)))

    def manifest(self, digest: str) -> bytes:
        return self.registry.documents[f"/v1/manifests/{digest}"]

    def _relist(self, name: str, **members: object) -> None:
        shard = self.registry.shards[name]
        *others, last = shard.releases
        variant = replace(last.variants[0], **members)  # type: ignore[arg-type]
        self.registry.list(replace(shard, releases=(*others, replace(last, variants=(variant,)))))


def core_table(threshold: int, keys: Sequence[ec.EllipticCurvePrivateKey]) -> str:
    """Return the tables of loader.conf that pin core keys."""
    blocks = [
        f'[[core.keys]]\nkeyid = "{keyid_of(key.public_key())}"\n'
        f'public_key = """\n{pem_of(key.public_key()).decode()}"""\n'
        for key in keys
    ]
    return f"[core]\nthreshold = {threshold}\n" + "".join(blocks)


def token_with(header: bytes, key: ec.EllipticCurvePrivateKey, payload: bytes) -> bytes:
    """Return a token with any header, well signed."""
    signed = encode(header) + b"." + encode(payload)
    return signed + b"." + encode(raw(*core_signature.sign_low_s(key, signed)))

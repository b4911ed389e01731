"""Roots of trust made by hand with python-tuf, to hand the signed index exactly what a test means. No claims."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from securesystemslib.signer import CryptoSigner, Key, Signer, SSlibKey
from tuf.api.metadata import Delegations, Metadata, Root, SuccinctRoles, TargetFile, Targets

from keys.public_key import keyid_of
from keys.root_keyring import KEYRING_TARGET
from keys.trust_policy import REGISTRY_MEMBER
from registry.services.online_key import newest_online_key, signer_with
from registry.services.signed_index import (
    ROOT_SECONDS,
    TARGETS_SECONDS,
    OfflineFiles,
    found,
    moment,
    online_keyid,
    publish_shard,
    replace,
)
from registry.storage.records import Records
from registry.storage.rows import PluginRow, ShardRow
from registry.storage.site import Site

_BOUND = {REGISTRY_MEMBER: "team.local"}


def new_signer() -> CryptoSigner:
    private_key = ec.generate_private_key(ec.SECP256R1())
    public_key = private_key.public_key()
    return CryptoSigner(private_key, SSlibKey.from_crypto(public_key, keyid=keyid_of(public_key)))


def keyring_document(serial: int = 1) -> bytes:
    core: dict[str, Any] = {"threshold": 1, "keys": []}
    document: dict[str, Any] = {"_type": "spm.keyring/1", "registry": "team.local", "serial": serial, "core": core}
    document |= {"ext": [], "revoked_keys": [], "revoked_manifests": []}
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


@dataclass
class HandMadeRoot:
    """The offline key of a registry, and what it signs."""

    site: Site
    now: int
    bits: int = 6
    signer: CryptoSigner = field(default_factory=new_signer)

    def root(self, version: int, online: Key) -> bytes:
        root = Root(version=version, expires=moment(self.now + ROOT_SECONDS), unrecognized_fields=dict(_BOUND))
        for role in ("root", "targets"):
            root.add_key(self.signer.public_key, role)
        for role in ("snapshot", "timestamp"):
            root.add_key(online, role)
        return self._signed(root)

    def targets(self, version: int, online: Key, keyring: bytes) -> bytes:
        bins = SuccinctRoles([online.keyid], 1, self.bits, "bin")
        delegations = Delegations({online.keyid: online}, succinct_roles=bins)
        listed = TargetFile(len(keyring), {"sha256": hashlib.sha256(keyring).hexdigest()}, KEYRING_TARGET)
        expires = moment(self.now + TARGETS_SECONDS)
        listing = {KEYRING_TARGET: listed}
        return self._signed(Targets(version, None, expires, listing, delegations, dict(_BOUND)))

    def _signed(self, signed: Any) -> bytes:
        metadata = Metadata(signed)
        metadata.sign(self.signer)
        return metadata.to_bytes()

    def files(self, version: int, online: Key, keyring: bytes) -> OfflineFiles:
        return OfflineFiles(
            root=self.root(version, online), targets=self.targets(version, online, keyring), keyring=keyring
        )

    def found(self) -> None:
        online = newest_online_key(self.site)
        with self.site.database.writing() as records:
            found(records, self.files(1, online, keyring_document()), signer_with(self.site, online.keyid), self.now)

    def replace(self, files: OfflineFiles, now: int, keyid: str | None = None) -> None:
        with self.site.database.writing() as records:
            replace(records, files, signer_with(self.site, keyid or online_keyid(records)), now)


def put_shard(records: Records, name: str, text: str, now: int) -> None:
    """Write a shard; the index does not look into it."""
    if records.plugin(name) is None:
        records.add_plugin(PluginRow(name=name, confusable=name, type="ext"), owner="maria")
    earlier = records.shard(name)
    if earlier is not None:
        records.signed.keep_shard(earlier, now)
    data = json.dumps({"name": name, "text": text}).encode()
    records.put_shard(ShardRow(name=name, data=data, etag=f'"{hashlib.sha256(data).hexdigest()}"'))


def publish(site: Site, name: str, text: str, now: int, signer: Signer | None = None) -> None:
    """Write a shard and sign it in."""
    with site.database.writing() as records:
        records.next_serial()
        put_shard(records, name, text, now)
        publish_shard(records, signer or signer_with(site, online_keyid(records)), name, now)

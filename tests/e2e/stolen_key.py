"""What somebody can serve who holds a registry's online key: an index of their own, well signed. Makes no claims."""

import hashlib
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from securesystemslib.signer import CryptoSigner, SSlibKey
from tuf.api.metadata import Metadata, MetaFile, TargetFile

from keys.public_key import keyid_of
from tests.e2e.team import Team
from tests.fakes import tampering_proxy
from tests.fakes.tampering_proxy import TamperingProxy


def serve_shard(team: Team, wire: TamperingProxy, name: str, shard: bytes) -> None:
    """Serve another shard of a plugin on the wire, in a bin, snapshot and timestamp that the online key has signed."""
    signer = _online_signer(team)
    timestamp = _fetched(team, "timestamp.json")
    snapshot = _fetched(team, f"{timestamp.signed.snapshot_meta.version}.snapshot.json")
    targets = _fetched(team, f"{snapshot.signed.meta['targets.json'].version}.targets.json")
    path = f"index/{name}.json"
    role = targets.signed.delegations.succinct_roles.get_role_for_target(path)
    listed = _fetched(team, f"{snapshot.signed.meta[f'{role}.json'].version}.{role}.json")

    digest = hashlib.sha256(shard).hexdigest()
    listed.signed.targets[path] = TargetFile(len(shard), {"sha256": digest}, path)
    snapshot.signed.meta[f"{role}.json"] = _serve(wire, role, listed, signer)
    timestamp.signed.snapshot_meta = _serve(wire, "snapshot", snapshot, signer)
    _serve(wire, "timestamp", timestamp, signer)
    wire.alter(f"/v1/tuf/targets/index/{digest}[.]{name}[.]json", tampering_proxy.body(shard))


def _online_signer(team: Team) -> CryptoSigner:
    key = load_pem_private_key((team.root / "online.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    public = key.public_key()
    return CryptoSigner(key, SSlibKey.from_crypto(public, keyid=keyid_of(public)))


def _fetched(team: Team, path: str) -> Metadata[Any]:
    return Metadata.from_bytes(team.fetch(f"/v1/tuf/{path}"))


def _serve(wire: TamperingProxy, role: str, metadata: Metadata[Any], signer: CryptoSigner) -> MetaFile:
    metadata.signed.version += 1
    metadata.sign(signer)
    data, version = metadata.to_bytes(), metadata.signed.version
    name = "timestamp" if role == "timestamp" else f"{version}.{role}"
    wire.alter(f"/v1/tuf/{name}[.]json", tampering_proxy.body(data))
    return MetaFile(version, len(data), {"sha256": hashlib.sha256(data).hexdigest()})

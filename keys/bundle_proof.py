"""What a bundle carries of a signed index: all that proves some shards to who has only the root. Verifies nothing."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from keys.root_keyring import KEYRING_TARGET
from keys.trust_folder import TrustFolder
from keys.trust_state import TrustState


def proof(folder: Path, state: TrustState, shards: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return by path below `/v1/tuf/`: roots, timestamp, snapshot, targets, the shards' bins, the keyring, the shards.

    `folder` is that of the refresh by which the shards, by their target paths, were verified.
    """
    roles = [text for text in (*state.roots, state.snapshot, state.targets) if text]
    found = {_numbered(text): text.encode() for text in roles}
    found |= {_numbered(text, name): text.encode() for name, text in _bins(TrustFolder(folder), shards).items()}
    if state.timestamp:
        found["timestamp.json"] = state.timestamp.encode()
    keyring = {KEYRING_TARGET: state.keyring.encode()} if state.keyring else {}
    return found | {_addressed(path, data): data for path, data in (keyring | dict(shards)).items()}


def _bins(folder: TrustFolder, shards: Mapping[str, bytes]) -> dict[str, str]:
    """Return the texts of the bins that list the shards, each role under its own name."""
    delegations = folder.targets().signed.delegations
    bins = delegations.succinct_roles if delegations else None
    assert bins is not None, "strict targets hand on to bins"
    names = {bins.get_role_for_target(path) for path in shards}
    return {name: (folder.read(name) or b"").decode() for name in sorted(names)}


def _numbered(text: str, role: str = "") -> str:
    signed = json.loads(text)["signed"]
    return f"{signed['version']}.{role or signed['_type']}.json"


def _addressed(path: str, data: bytes) -> str:
    """Return the path under which a registry serves a target."""
    folder, slash, name = path.rpartition("/")
    return f"targets/{folder}{slash}{hashlib.sha256(data).hexdigest()}.{name}"

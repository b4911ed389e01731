"""What a store last knew to be revoked, by ids alone and fast: for a listing. Verifies nothing, and decides no load.

It reads the newest trust state as JSON, without what holds it to its form; where that cannot be done, it marks nothing.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

_MAX_BYTES = 32 << 20


class RevokedGlance(NamedTuple):
    """Keys that no longer vouch for anything, and manifests; a key retired since a moment is not among them.

    No dataclass, since a listing waits for what those load.
    """

    keyids: frozenset[str] = frozenset()
    manifests: frozenset[str] = frozenset()
    core_threshold: int = 1

    def marks(self, manifest_sha256: str, keyids: Iterable[str], *, is_core: bool) -> bool:
        """Tell whether an installed plugin is revoked, or is signed by too few keys that are not."""
        signers = set(keyids)
        needed = min(self.core_threshold if is_core else 1, len(signers))
        return manifest_sha256 in self.manifests or len(signers - self.keyids) < needed


def glance(store_root: Path) -> RevokedGlance:
    """Return what the newest trust state of a store has as revoked; nothing where it cannot be read."""
    try:
        return _of(_newest_state(store_root / "trust"))
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return RevokedGlance()


def _newest_state(folder: Path) -> dict[str, Any]:
    newest = max(name for name in os.listdir(folder) if len(name) == 11 and name.endswith(".json"))
    with open(folder / newest, "rb") as file:
        state: dict[str, Any] = json.loads(file.read(_MAX_BYTES))
    return state


def _of(state: dict[str, Any]) -> RevokedGlance:
    editions = [json.loads(state[name]) for name in ("keyring", "imported_keyring") if name in state]
    newest = max(editions, key=lambda edition: int(edition["serial"]))
    return RevokedGlance(
        keyids=frozenset(one["keyid"] for one in newest["revoked_keys"] if one.get("since") is None),
        manifests=frozenset(newest["revoked_manifests"]),
        core_threshold=newest["core"]["threshold"],
    )

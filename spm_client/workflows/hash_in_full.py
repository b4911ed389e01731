"""An installed plugin verified with every file hashed, and its receipt renewed. Takes no file by a receipt."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from keys.receipts import may_use_receipt
from keys.tree import BIG_FILE_BYTES, FileStamp
from keys.verified import InstalledPlugin, VerifiedManifest, verify_tree
from manifests.lockfile import InstalledEntry
from runtime.guard import require_guarded
from runtime.installed import TrustedConf, read_manifest
from runtime.receipts import known_files
from spm_client.store.layout import Layout, refusals
from spm_client.store.receipts import StampClock, may_vouch, write_receipt
from spm_client.store.staging import staging


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedInFull:
    """A sound plugin, and what loading it costs: nothing is said of one within the budget of full hashing."""

    plugin: InstalledPlugin
    renewed: tuple[str, ...] = ()
    """Files that each load had to hash, and that the receipt now covers."""
    hashed_at_load: tuple[str, ...] = ()
    """Big files that no receipt covers: each load goes on hashing them."""


def hash_in_full(root: Path, entry: InstalledEntry, conf: TrustedConf) -> HashedInFull:
    """Verify signature and every byte of a plugin; renew its receipt where this user keeps the store's host key.

    Raises: as `open_entry`; as `host_key`.
    """
    require_guarded(root, entry)
    verified = read_manifest(root, entry, conf)
    layout = Layout(root)
    tree = layout.tree(entry.name, entry.release)
    if not may_use_receipt(verified.manifest, conf.full_hash_bytes):
        return HashedInFull(plugin=verify_tree(verified, tree))
    known = known_files(root, verified, conf.full_hash_bytes)
    plugin = _vouched(verified, tree, layout, known) if may_vouch(layout) else verify_tree(verified, tree)
    before = _uncovered(plugin, known)
    after = _uncovered(plugin, known_files(root, verified, conf.full_hash_bytes))
    return HashedInFull(
        plugin=plugin, renewed=tuple(path for path in before if path not in after), hashed_at_load=after
    )


def _vouched(verified: VerifiedManifest, tree: Path, layout: Layout, known: Mapping[str, FileStamp]) -> InstalledPlugin:
    with refusals(layout.root), staging(layout) as scratch, StampClock(scratch) as clock:
        plugin = verify_tree(verified, tree, is_settled=clock.is_settled)
        if plugin.stamps and plugin.stamps != known:
            write_receipt(layout, plugin, scratch)
    return plugin


def _uncovered(plugin: InstalledPlugin, known: Mapping[str, FileStamp]) -> tuple[str, ...]:
    return tuple(
        entry.path
        for entry in plugin.manifest.files
        if entry.size > BIG_FILE_BYTES
        and known.get(entry.path) != FileStamp.of(os.lstat(plugin.directory / entry.path))
    )

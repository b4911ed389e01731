"""The manifest of what is installed, known by its digest alone. Verifies no signature: whoever loads it does."""

import hashlib

from manifests.errors import DigestMismatch
from manifests.lockfile import InstalledEntry
from manifests.manifest import MAX_MANIFEST_BYTES, Manifest
from runtime.generation import read_bounded
from spm_client.store.layout import Layout


def installed_manifest(layout: Layout, entry: InstalledEntry) -> Manifest:
    """Return what an installed release says of itself.

    Raises: FileSetMismatch, DigestMismatch.
    """
    folder = layout.manifest(entry.manifest_sha256)
    data = read_bounded(folder / "manifest.json", MAX_MANIFEST_BYTES)
    if (found := hashlib.sha256(data).hexdigest()) != entry.manifest_sha256:
        raise DigestMismatch(
            f"{folder}/manifest.json has the digest sha256:{found}, but its name says another",
            hint=f"`spm uninstall {entry.name}`, or install it anew where there is a registry",
            found=found,
            expected=entry.manifest_sha256,
        )
    return Manifest.from_bytes(data)

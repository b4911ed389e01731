"""Which big files of a plugin may be known again by their stamps: the store's receipts, read and verified. Writes none.

Whatever is amiss with a receipt, the answer is that nothing is known of the plugin; its files are then hashed in full.
"""

from collections.abc import Mapping
from pathlib import Path

from keys.public_key import MAX_PEM_BYTES
from keys.receipts import MAX_ENVELOPE_BYTES, may_use_receipt, verify
from keys.tree import FileStamp
from keys.verified import VerifiedManifest
from manifests.errors import SpmError
from runtime.generation import read_bounded


def known_files(root: Path, verified: VerifiedManifest, full_hash_bytes: int) -> Mapping[str, FileStamp]:
    """Return the stamps by which the store vouches for files of this plugin; none within the budget of full hashing."""
    if not may_use_receipt(verified.manifest, full_hash_bytes):
        return {}
    try:
        public_key = read_bounded(root / "host.pub", MAX_PEM_BYTES)
        data = read_bounded(root / "receipts" / f"{verified.sha256}.json", MAX_ENVELOPE_BYTES)
        return verify(public_key, data, verified.sha256).files
    except SpmError:
        return {}

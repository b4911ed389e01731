"""Reading packed folders back: manifest, signatures, blobs. Verifies no signature; the registry and clients do."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from keys.verified import JWS_FILE, MAX_MANIFEST_BYTES, SIGNATURE_FILE_PREFIX
from manifests.errors import Unsigned, UsageError
from manifests.manifest import Manifest

_SIGNATURE = re.compile(rf"{re.escape(JWS_FILE)}|{re.escape(SIGNATURE_FILE_PREFIX)}[0-9a-f]{{64}}")
_MAX_SIGNATURE = 2 * MAX_MANIFEST_BYTES


@dataclass(frozen=True, slots=True)
class PackedFolder:
    """One variant that `spm pack` laid out, as it lies on disk."""

    folder: Path
    data: bytes
    manifest: Manifest
    signatures: dict[str, bytes]

    @classmethod
    def read(cls, folder: Path) -> "PackedFolder":
        """Read a folder that `spm pack` made.

        Raises: UsageError when it is not one; the refusals of `Manifest.from_bytes`.
        """
        path = folder / "manifest.json"
        if not path.is_file():
            raise UsageError(
                f"`{folder}` is not a packed plugin: it has no `manifest.json`", hint="make one with `spm pack DIR`"
            )
        data = _read(path, MAX_MANIFEST_BYTES + 1)
        signatures = {
            found.name: _read(found, _MAX_SIGNATURE)
            for found in sorted(folder.iterdir())
            if is_signature_name(found.name)
        }
        return cls(folder, data, Manifest.from_bytes(data), signatures)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    def blob(self, sha256: str) -> Path:
        return self.folder / "blobs" / sha256

    def require_signed(self) -> None:
        if not self.signatures:
            raise Unsigned(
                f"`{self.folder}` is not signed",
                hint=f"sign it: `spm sign {self.folder} --key NAME`",
            )


def is_signature_name(name: str) -> bool:
    return _SIGNATURE.fullmatch(name) is not None


def _read(path: Path, max_bytes: int) -> bytes:
    with path.open("rb") as file:
        return file.read(max_bytes)

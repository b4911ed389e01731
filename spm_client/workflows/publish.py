"""Publish: all variants of one release to the registry, resumed where an earlier try stopped. Signs nothing."""

import base64
import os
from dataclasses import dataclass
from typing import Any

from manifests.errors import BadResponse, SizeMismatch, UsageError
from manifests.parts import FileEntry
from spm_client.adapters.http import RegistryClient
from spm_client.adapters.problems import plain_text
from spm_client.progress import Progress
from spm_client.workflows.packed import PackedFolder

MAX_WARNINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A release that the registry now has; `was_there` when it had these very bytes before."""

    name: str
    version: str
    was_there: bool
    uploaded_blobs: int
    warnings: tuple[str, ...] = ()
    """What the registry took and still thinks worth a look."""


def publish(packed: tuple[PackedFolder, ...], client: RegistryClient, progress: Progress) -> Published:
    """Send the manifests, then the blobs that the registry lacks, then commit.

    Raises: Unsigned before anything is sent; PublishRefused with all problems at once; VersionExists.
    """
    name, version = _one_release(packed)
    for folder in packed:
        folder.require_signed()
    answer = client.call("POST", "/v1/uploads", {"manifests": [_offer(folder) for folder in packed]})
    if answer.get("published") is True:
        return Published(name=name, version=version, was_there=True, uploaded_blobs=0, warnings=_warnings(answer))
    upload, missing = answer.get("upload"), answer.get("missing")
    if not isinstance(upload, str) or not isinstance(missing, list):
        raise BadResponse("the registry answered an upload without its id and missing blobs")
    _send_blobs(packed, [str(digest) for digest in missing], f"/v1/uploads/{upload}/blobs", client, progress)
    done = client.call("POST", f"/v1/uploads/{upload}/commit", {})
    return Published(name=name, version=version, was_there=False, uploaded_blobs=len(missing), warnings=_warnings(done))


def _warnings(answer: dict[str, Any]) -> tuple[str, ...]:
    listed = answer.get("warnings")
    found = listed[:MAX_WARNINGS] if isinstance(listed, list) else []
    return tuple(plain_text(one.get("detail")) for one in found if isinstance(one, dict))


def _one_release(packed: tuple[PackedFolder, ...]) -> tuple[str, str]:
    releases = sorted({(str(folder.manifest.name), str(folder.manifest.version)) for folder in packed})
    if len(releases) != 1:
        named = ", ".join(f"{name} {version}" for name, version in releases)
        raise UsageError(f"one publish is one release with its variants, not {named}")
    return releases[0]


def _offer(folder: PackedFolder) -> dict[str, object]:
    return {
        "manifest": base64.b64encode(folder.data).decode(),
        "signatures": {name: base64.b64encode(data).decode() for name, data in folder.signatures.items()},
    }


def _send_blobs(
    packed: tuple[PackedFolder, ...], missing: list[str], path: str, client: RegistryClient, progress: Progress
) -> None:
    entries = {entry.sha256: (folder, entry) for folder in packed for entry in folder.manifest.files}
    if strange := [digest for digest in missing if digest not in entries]:
        raise BadResponse(f"the registry asks for the blob {strange[0][:64]!r}, which is not in the release")
    advance = progress("Uploading", sum(entries[digest][1].size for digest in missing))
    for digest in missing:
        folder, entry = entries[digest]
        offset = client.upload_offset(f"{path}/{digest}")
        with folder.blob(digest).open("rb") as file:
            _require_size(os.fstat(file.fileno()).st_size, entry, folder)
            client.upload(f"{path}/{digest}", file, offset=offset, size=entry.size)
        advance(entry.size)


def _require_size(found: int, entry: FileEntry, folder: PackedFolder) -> None:
    """Refuse before sending: a registry would wait for bytes that are not there."""
    if found != entry.size:
        raise SizeMismatch(
            f"`{folder.blob(entry.sha256)}` has {found} bytes, but the manifest says {entry.size}: "
            "it was changed after packing",
            hint="pack and sign it again",
            path=entry.path,
            found=found,
            expected=entry.size,
        )

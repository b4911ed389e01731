"""The body of a publish request: manifests with their signatures, still unverified. Judges none of them."""

import binascii
import json
import re
from base64 import b64decode
from dataclasses import dataclass
from typing import Any

from keys.verified import FetchedManifest
from manifests.errors import UsageError

MAX_BODY = 8 << 20
MAX_MANIFESTS = 64
MAX_SIGNATURES = 64
# What a whole body can have of these at most: a short text of many empty lists would become a hundred times as large.
_MAX_PUNCTUATION = MAX_MANIFESTS * (MAX_SIGNATURES + 8)
_SIGNATURE_NAME = re.compile(r"manifest\.(?:jws|sig\.[0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """All variants of one version, as their publisher sent them."""

    manifests: tuple[FetchedManifest, ...]

    @classmethod
    def parse(cls, body: bytes) -> "Submission":
        """Read a request body.

        Raises:
            UsageError: it is not of the documented shape.
        """
        document = _json(body)
        if not isinstance(document, dict) or set(document) != {"manifests"}:
            raise _malformed("it must be an object with the one member `manifests`")
        entries = document["manifests"]
        if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_MANIFESTS:
            raise _malformed(f"`manifests` must be a list of 1 to {MAX_MANIFESTS} manifests")
        return cls(manifests=tuple(_manifest(entry, f"manifests[{place}]") for place, entry in enumerate(entries)))


def _manifest(entry: Any, path: str) -> FetchedManifest:
    if not isinstance(entry, dict) or set(entry) != {"manifest", "signatures"}:
        raise _malformed(f"`{path}` must be an object with the members `manifest` and `signatures`")
    signatures = entry["signatures"]
    if not isinstance(signatures, dict) or len(signatures) > MAX_SIGNATURES:
        raise _malformed(f"`{path}.signatures` must be an object of at most {MAX_SIGNATURES} signature files")
    for name in signatures:
        if not _SIGNATURE_NAME.fullmatch(name):
            raise _malformed(f"`{path}.signatures` has {name!r:.100}, which is no name of a signature file")
    return FetchedManifest(
        data=_base64(entry["manifest"], f"{path}.manifest"),
        signatures={name: _base64(text, f"{path}.signatures.{name}") for name, text in signatures.items()},
    )


def _json(body: bytes) -> Any:
    if sum(body.count(mark) for mark in (b",", b"[", b"{")) > _MAX_PUNCTUATION:
        raise _malformed(f"it has more parts than {MAX_MANIFESTS} manifests with {MAX_SIGNATURES} signatures each")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _malformed("it is not JSON") from error


def _base64(text: Any, path: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise _malformed(f"`{path}` is not base64") from error


def _malformed(why: str) -> UsageError:
    return UsageError(f"the request body is refused: {why}")

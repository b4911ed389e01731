"""TUF metadata as values: strict JSON, what was signed, when. Verifies no signature, reads no file."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any, NoReturn

from securesystemslib.exceptions import FormatError
from securesystemslib.formats import encode_canonical
from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, Signed

from keys.trust_state import MOMENT
from manifests.errors import BadResponse

ISSUED = "issued"
"""A member that the registry adds to its timestamp: when it was signed, by the registry's clock."""
MAX_DEPTH = 32


def check_metadata(data: bytes, path: str) -> None:
    """Accept strict JSON that says in full what the library reads from it.

    It verifies what it has read, written anew: `"expires":"2026-6-1T..."` would pass for what was signed, and so would
    a member that it leaves out.
    Raises: BadResponse.
    """
    value = check_json(data, path)
    try:
        read = Metadata[Any].from_bytes(data).signed_bytes
        is_whole = encode_canonical(value["signed"]) == read.decode("utf-8")
    except (RepositoryError, FormatError) as error:
        raise _no_metadata(path, str(error.__cause__ or error)) from error
    if not is_whole:
        raise _no_metadata(path, "it says more, or otherwise, than what is signed in it")


def check_json(data: bytes, path: str) -> Any:
    """Return JSON without duplicate members, NaN or deep nesting, so that no two readers see two documents.

    Raises: BadResponse.
    """

    def refuse(text: str) -> NoReturn:
        raise ValueError(f"it holds {text}")

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) != len(pairs):
            raise ValueError("it has a member twice")
        return dict(pairs)

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=members, parse_constant=refuse)
        _check_depth(value, 0)
    except (ValueError, RecursionError) as error:
        raise _no_metadata(path, str(error)) from error
    return value


def issued_at(signed: Signed) -> datetime | None:
    """Return when metadata says that it was signed, or None where it does not.

    Raises: BadResponse when it says so in another form.
    """
    text = signed.unrecognized_fields.get(ISSUED)
    if text is None:
        return None
    try:
        return datetime.strptime(text, MOMENT).replace(tzinfo=UTC)
    except (TypeError, ValueError) as error:
        raise BadResponse(f"`{signed.type}` says that it was issued at {str(text)[:40]!r}, which is no time") from error


def signed_digest(metadata: Metadata[Any]) -> str:
    """Return the SHA-256 of what was signed: signatures are no identity, the same content may be signed twice."""
    return hashlib.sha256(metadata.signed_bytes).hexdigest()


def _no_metadata(path: str, why: str) -> BadResponse:
    return BadResponse(
        f"`{path}` is not the metadata of a registry: {_on_one_line(why)}",
        hint="check `registry.url` in loader.conf and the way there",
        path=path,
    )


def _on_one_line(text: str) -> str:
    return ascii(text[:200])[1:-1]


def _check_depth(value: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_depth(inner, depth + 1)

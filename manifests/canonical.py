"""RFC 8785 bytes: writing them, and reading them strictly. Knows no document."""

import json
from collections import Counter
from contextlib import suppress
from typing import Any, NoReturn

from manifests.errors import ContentError, NotCanonical, TooBig

MAX_DEPTH = 32
_MAX_INTEGER = 2**53 - 1
_SHOWN = 80


def canonical_bytes(value: Any) -> bytes:
    """Return the value as RFC 8785 canonical JSON.

    Raises: ContentError on a float (documents of spm hold none), an integer of 2**53 or more, or an unsupported type.
    """
    if _is_plain(value):
        with suppress(UnicodeEncodeError):  # a lone surrogate, for which the other writer has words
            return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return _canonical_bytes_of_any(value)


def _is_plain(value: Any) -> bool:
    """Tell whether `json`, many times faster than rfc8785, writes the same bytes.

    It does where no float, subclass or odd type is in the value, numbers are within bounds, and names sort by code
    point as they do by UTF-16: ASCII names do.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for each in level:
            kind = type(each)
            if kind is dict:
                if not all(type(name) is str and name.isascii() for name in each):
                    return False
                below += each.values()
            elif kind is list or kind is tuple:
                below += each
            elif kind is int:
                if not -_MAX_INTEGER <= each <= _MAX_INTEGER:
                    return False
            elif kind is not str and kind is not bool and each is not None:
                return False
        level = below
    return not level


def _canonical_bytes_of_any(value: Any) -> bytes:
    # Imported here, since few documents come this far, and a listing waits for each import.
    import rfc8785

    _check(value, "the document", depth=0)
    try:
        return rfc8785.dumps(value)
    # rfc8785 sorts members by their UTF-16 form, which a lone surrogate in a name does not have.
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise ContentError(f"the document cannot be written as canonical JSON: {error}", reason="type") from error


def parse_strict(data: bytes, *, what: str, max_bytes: int) -> dict[str, Any]:
    """Return the object in canonical JSON bytes, refusing any other spelling of it.

    Raises: TooBig beyond `max_bytes`; NotCanonical unless the bytes are UTF-8 without a byte-order mark, without
    duplicate members, floats or NaN, at most 32 levels deep, and equal to their own RFC 8785 form.
    """
    if len(data) > max_bytes:
        raise TooBig(f"{what} has {len(data)} bytes, more than the {max_bytes} allowed")
    value = _parse(data, what)
    if not isinstance(value, dict):
        raise NotCanonical(f"{what} is not a JSON object")
    try:
        is_canonical = canonical_bytes(value) == data
    except ContentError as error:
        raise NotCanonical(f"{what} is not canonical JSON: {error.message}") from error
    if not is_canonical:
        raise NotCanonical(f"{what} is not in RFC 8785 canonical form")
    return value


def _parse(data: bytes, what: str) -> Any:
    def refuse_number(text: str) -> NoReturn:
        raise NotCanonical(f"{what} has the number {text[:40]!r}; only integers are allowed")

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice = next(name for name, count in counts.items() if count > 1)
            raise NotCanonical(f"{what} has the member {twice[:_SHOWN]!r} twice")
        return found

    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=members,
            parse_float=refuse_number,
            parse_constant=refuse_number,
        )
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise NotCanonical(f"{what} is not JSON: {error}") from error


def _check(value: Any, path: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ContentError(f"{path[:_SHOWN]} is nested deeper than {MAX_DEPTH} levels", reason="type")
    if isinstance(value, dict):
        for name, inner in value.items():
            _check(inner, f"{path}.{name}", depth + 1)
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            _check(inner, f"{path}[{place}]", depth + 1)
    elif isinstance(value, float):
        raise ContentError(
            f"{path[:_SHOWN]} is the float {value}; documents hold integers and text only", reason="type"
        )

"""Request bodies, never longer than they may be. Reads no meaning into them beyond JSON objects."""

import json
from io import BytesIO
from typing import Any, BinaryIO, cast

from flask import Response, g, request

from manifests.errors import RegistryRefused, SizeMismatch, TooBig, UsageError

CHUNK = 1 << 20


def declared_length() -> int:
    """Return how long the body says it is.

    Raises:
        RegistryRefused: it does not say (`length-required`).
    """
    # A request without `Content-Length` has no body (RFC 9112, 6.3), unless it is sent in chunks.
    if "HTTP_TRANSFER_ENCODING" in request.environ:
        raise RegistryRefused(
            "the request does not say how long its body is",
            reason="length-required",
            hint="send `Content-Length`, not a chunked body",
        )
    return request.content_length or 0


class CountedBody:
    """A request body that never gives more than it declared, and knows what is left of it."""

    def __init__(self, source: BinaryIO, length: int) -> None:
        self._source = source
        self.left = length

    def read(self, size: int) -> bytes:
        """Return some bytes; none when the body is over, be it too early."""
        chunk = self._source.read(min(size, self.left))
        self.left -= len(chunk)
        return chunk


def source() -> CountedBody:
    """Return the body of this request."""
    if "body" not in g:
        g.body = CountedBody(cast(BinaryIO, request.environ["wsgi.input"]), declared_length())
    return cast(CountedBody, g.body)


def pass_over() -> None:
    """Take in what is left of the body and forget it: its sender looks for an answer only after the last byte."""
    body = source()
    while body.left and body.read(CHUNK):
        pass


def read_body(limit: int) -> bytes:
    """Return a whole body of at most `limit` bytes.

    Raises:
        TooBig: it says it is longer.
        SizeMismatch: it ended before its length.
    """
    length = declared_length()
    if length > limit:
        raise TooBig(f"the request body has {length} bytes, more than the {limit} allowed", limit=limit, got=length)
    body, held = source(), BytesIO()
    while body.left and (chunk := body.read(CHUNK)):
        held.write(chunk)
    if body.left:
        raise SizeMismatch(f"the request declared {length} bytes and ended after {length - body.left}")
    return held.getvalue()


def read_object(limit: int) -> dict[str, Any]:
    """Return a body that is one JSON object.

    Raises:
        UsageError: it is not.
    """
    body = read_body(limit)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UsageError("the request body is refused: it is not JSON") from error
    if not isinstance(value, dict):
        raise UsageError("the request body is refused: it is not a JSON object")
    return value


def json_response(value: dict[str, Any], status: int = 200, **headers: str) -> Response:
    """Return a JSON answer that nobody may keep; `Upload_Offset` is the header `Upload-Offset`."""
    response = Response(json.dumps(value, ensure_ascii=False), status=status, content_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    for name, text in headers.items():
        response.headers[name.replace("_", "-")] = text
    return response

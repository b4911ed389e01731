"""Routes of a publish: open, send files, commit. The rules are in `registry.services.publishing`."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, request

from manifests.errors import UsageError
from registry.api.bodies import declared_length, json_response, pass_over, read_body, source
from registry.api.conditions import content_range
from registry.api.guarded import caller
from registry.api.slots import Slots
from registry.services.policy import Action
from registry.services.publishing import Chunk, Published, commit_upload, open_upload, receive, upload_offset
from registry.services.submission import MAX_BODY
from registry.storage.site import Site

MAX_SENDERS = 64
# Each may hold a whole request body in memory.
MAX_OPENERS = 8
_FILE = "/v1/uploads/<string(length=32):upload_id>/blobs/<string(length=64):sha256>"


def upload_routes(site: Site, now: Callable[[], int]) -> Blueprint:
    """Return the routes."""
    routes = Blueprint("uploads", __name__)
    senders = Slots(MAX_SENDERS, "files on their way in")
    openers = Slots(MAX_OPENERS, "publishes that begin")

    @routes.post("/v1/uploads", action=Action.OPEN_UPLOAD)
    def open_() -> Response:
        with openers:
            opened = open_upload(site, read_body(MAX_BODY), caller(), now())
        if isinstance(opened, Published):
            return _published(opened)
        return json_response({"upload": opened.upload_id, "missing": list(opened.missing)}, 201)

    @routes.route(_FILE, methods=["HEAD"], action=Action.SEE_UPLOAD)
    def see(upload_id: str, sha256: str) -> Response:
        offset, size = upload_offset(site, upload_id, sha256, caller(), now())
        return json_response({}, Upload_Offset=str(offset), Upload_Length=str(size))

    @routes.put(_FILE, action=Action.SEND_BLOB)
    def send(upload_id: str, sha256: str) -> Response:
        chunk = _chunk()
        with senders:
            offset, size = receive(site, upload_id, sha256, chunk, caller(), now())
            pass_over()
        return json_response({"offset": offset, "complete": offset == size}, Upload_Offset=str(offset))

    @routes.post("/v1/uploads/<string(length=32):upload_id>/commit", action=Action.COMMIT_UPLOAD)
    def commit(upload_id: str) -> Response:
        return _published(commit_upload(site, upload_id, caller(), now()))

    return routes


def _published(published: Published) -> Response:
    value: dict[str, Any] = {
        "published": True,
        "name": published.name,
        "version": published.version,
        "serial": published.serial,
        "warnings": [{"type": warning.reason, "detail": warning.whole} for warning in published.warnings],
    }
    return json_response(value, 201 if published.is_new else 200)


def _chunk() -> Chunk:
    length = declared_length()
    header = request.headers.get("Content-Range")
    if header is None:
        return Chunk(source=source(), start=None, length=length, total=None)
    span, total = content_range(header)
    if span.length != length:
        raise UsageError(f"`Content-Range` speaks of {span.length} bytes, and the body has {length}")
    return Chunk(source=source(), start=span.first, length=length, total=total)

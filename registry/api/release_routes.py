"""Routes that change a published release: yank and unyank."""

from collections.abc import Callable

from flask import Blueprint, Response

from manifests.errors import UsageError
from registry.api.bodies import json_response, read_object
from registry.api.guarded import caller
from registry.api.slots import Slots
from registry.services.policy import Action
from registry.services.yanking import Yanked, unyank, yank
from registry.storage.site import Site

MAX_YANKERS = 8
_MAX_BODY = 16 << 10
_YANK = "/v1/plugins/<string(maxlength=64):name>/<string(maxlength=64):version>/yank"


def release_routes(site: Site, now: Callable[[], int]) -> Blueprint:
    """Return the routes."""
    routes = Blueprint("releases", __name__)
    yankers = Slots(MAX_YANKERS, "yanks")

    @routes.post(_YANK, action=Action.YANK)
    def yank_(name: str, version: str) -> Response:
        with yankers:
            reason = _reason()
        return _yanked(yank(site, name, version, reason, caller(), now()))

    @routes.delete(_YANK, action=Action.UNYANK)
    def unyank_(name: str, version: str) -> Response:
        return _yanked(unyank(site, name, version, caller(), now()))

    return routes


def _reason() -> str:
    body = read_object(_MAX_BODY)
    if set(body) != {"reason"} or not isinstance(body["reason"], str):
        raise UsageError('the request body is refused: it must be `{"reason": "..."}`')
    return body["reason"]


def _yanked(yanked: Yanked) -> Response:
    return json_response(
        {"name": yanked.name, "version": yanked.version, "yanked": yanked.reason, "serial": yanked.serial}
    )

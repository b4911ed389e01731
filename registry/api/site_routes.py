"""Routes about the registry itself: health, identity, and who is asking."""

from flask import Blueprint, Response

from registry.api.bodies import json_response
from registry.api.guarded import caller
from registry.services.policy import Action
from registry.storage.site import Site


def site_routes(site: Site) -> Blueprint:
    """Return the routes."""
    routes = Blueprint("site", __name__)

    @routes.get("/healthz", action=Action.SEE_HEALTH)
    def healthz() -> Response:
        with site.database.reading() as records:
            records.serial()
        return json_response({"status": "ok"})

    @routes.get("/v1/registry", action=Action.SEE_REGISTRY)
    def registry() -> Response:
        with site.database.reading() as records:
            return json_response({"_type": "spm.registry/1", "id": records.registry_id(), "serial": records.serial()})

    @routes.get("/v1/whoami", action=Action.WHOAMI)
    def whoami() -> Response:
        return json_response({"label": caller().label, "role": caller().role.value, "names": list(caller().names)})

    return routes

"""The route that finds plugins and nearest names. What it answers is signed by nobody."""

from typing import Any

from flask import Blueprint, Response, request

from registry.api.bodies import json_response
from registry.api.slots import Slots
from registry.services.policy import Action
from registry.services.searching import Question, search
from registry.storage.rows import ListingRow
from registry.storage.site import Site

MAX_SEARCHERS = 8


def search_routes(site: Site) -> Blueprint:
    """Return the routes."""
    routes = Blueprint("search", __name__)
    searchers = Slots(MAX_SEARCHERS, "searches")

    @routes.get("/v1/search", action=Action.SEARCH)
    def search_() -> Response:
        question = Question.parse(request.args.to_dict(flat=False))
        with searchers, site.database.reading() as records:
            found, registry = search(records, question), records.registry_id()
        answer: dict[str, Any] = {
            "_type": "spm.search/1",
            "registry": registry,
            "results": [_result(row) for row in found.results],
            "is_cut": found.is_cut,
        }
        return json_response(answer | ({} if question.near is None else {"near": list(found.near)}))

    return routes


def _result(row: ListingRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "version": row.version,
        "type": row.type,
        "summary": row.summary,
        "devices": list(row.devices),
        "batch": row.batch,
        "yanked": row.yanked,
    }

"""What `--json` prints, held against the schemas of the documentation: nothing missing, nothing unnamed."""

import json
from pathlib import Path
from typing import Any

from tests.manifests.json_schema import faults

SCHEMAS = Path(__file__).parents[2] / "docs" / "reference" / "schemas"
_COMMON = "common.json#"


def schema_of(name: str) -> dict[str, Any]:
    """Return a schema with what it takes from `common.json` in it, and closed to members that it does not name."""
    schema, common = (_localized(json.loads((SCHEMAS / f"{file}.json").read_text())) for file in (name, "common"))
    made: dict[str, Any] = _closed(schema | {"$defs": common["$defs"]})
    return made


def require_documented(name: str, document: Any) -> None:
    """Assert that a document is what its schema says, and no more."""
    schema = schema_of(name)
    found = [*faults(document, schema, schema)]
    assert found == [], f"{name}.json: " + "\n".join(_deepest(document, schema, schema))


def _deepest(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "") -> list[str]:
    """Return the faults of the innermost members, since that of the whole document names only the whole."""
    schema = root["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    inner: list[str] = []
    if isinstance(value, dict):
        members = schema.get("properties", {})
        inner = [f"{path}.{name} is not documented" for name in value.keys() - members.keys() if members]
        for name, item in value.items():
            inner += _deepest(item, members.get(name, {}), root, f"{path}.{name}")
    if isinstance(value, list):
        inner = [line for item in value for line in _deepest(item, schema.get("items", {}), root, f"{path}[]")]
    return inner or [f"{path}: {fault[:300]}" for fault in faults(value, schema, root)]


def _localized(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: item.replace(_COMMON, "#") if key == "$ref" else _localized(item) for key, item in value.items()}
    return [_localized(item) for item in value] if isinstance(value, list) else value


def _closed(value: Any) -> Any:
    if isinstance(value, dict):
        made = {name: _closed(item) for name, item in value.items()}
        is_object = made.get("type") == "object" and "properties" in made
        return {"additionalProperties": False, **made} if is_object else made
    return [_closed(item) for item in value] if isinstance(value, list) else value

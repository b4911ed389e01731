"""The few keywords of JSON Schema that the project's schemas use, checked plainly. Knows no other keyword."""

import re
from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
_NOTES = {"$schema", "$id", "title", "description", "$defs"}


def faults(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Iterator[str]:
    """Yield every keyword that the value breaks."""
    for keyword, wanted in schema.items():
        if keyword not in _NOTES and not _holds(keyword, wanted, value, schema, root):
            yield f"{keyword}: {wanted!r} is not met by {value!r}"


def _is_valid(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    return not any(faults(value, schema, root))


def _holds(keyword: str, wanted: Any, value: Any, schema: dict[str, Any], root: dict[str, Any]) -> bool:
    match keyword:
        case "$ref":
            return _is_valid(value, root["$defs"][wanted.removeprefix("#/$defs/")], root)
        case "type":
            kinds = [wanted] if isinstance(wanted, str) else wanted
            return any(isinstance(value, _TYPES[kind]) and not _is_false_number(value, kind) for kind in kinds)
        case "enum":
            return bool(value in wanted)
        case "oneOf":
            return sum(_is_valid(value, choice, root) for choice in wanted) == 1
    if isinstance(value, dict):
        return _object_holds(keyword, wanted, value, schema, root)
    if isinstance(value, list):
        return _array_holds(keyword, wanted, value, root)
    return _scalar_holds(keyword, wanted, value)


def _is_false_number(value: Any, kind: str) -> bool:
    # To Python a truth value is a whole number.
    return isinstance(value, bool) and kind != "boolean"


def _object_holds(
    keyword: str, wanted: Any, value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]
) -> bool:
    match keyword:
        case "required":
            return set(wanted) <= set(value)
        case "properties":
            return all(_is_valid(value[name], inner, root) for name, inner in wanted.items() if name in value)
        case "additionalProperties":
            others = [inner for name, inner in value.items() if name not in schema.get("properties", {})]
            return not others if wanted is False else all(_is_valid(inner, wanted, root) for inner in others)
        case "propertyNames":
            return all(_is_valid(name, wanted, root) for name in value)
        case "maxProperties":
            return bool(len(value) <= wanted)
        case "minProperties":
            return bool(len(value) >= wanted)
    return _is_for_another_type(keyword)


def _array_holds(keyword: str, wanted: Any, value: list[Any], root: dict[str, Any]) -> bool:
    match keyword:
        case "items":
            return all(_is_valid(item, wanted, root) for item in value)
        case "minItems":
            return bool(len(value) >= wanted)
        case "maxItems":
            return bool(len(value) <= wanted)
        case "uniqueItems":
            return all(item not in value[:place] for place, item in enumerate(value))
    return _is_for_another_type(keyword)


def _scalar_holds(keyword: str, wanted: Any, value: Any) -> bool:
    match keyword:
        case "pattern" if isinstance(value, str):
            return re.search(wanted, value, re.ASCII) is not None and not value.endswith("\n")
        case "minLength" if isinstance(value, str):
            return bool(len(value) >= wanted)
        case "maxLength" if isinstance(value, str):
            return bool(len(value) <= wanted)
        case "minimum" if isinstance(value, int | float):
            return bool(value >= wanted)
        case "maximum" if isinstance(value, int | float):
            return bool(value <= wanted)
        case "exclusiveMinimum" if isinstance(value, int | float):
            return bool(value > wanted)
    return _is_for_another_type(keyword)


def _is_for_another_type(keyword: str) -> bool:
    known = {"required", "properties", "additionalProperties", "propertyNames", "maxProperties", "items", "minItems"}
    known |= {
        "minProperties",
        "maxItems",
        "uniqueItems",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
    }
    if keyword not in known:
        raise AssertionError(f"the keyword `{keyword}` is not known to this test")
    return True

"""What is installed, as the current generation's file has it, and fast: for a listing. Verifies and decides nothing.

Reading a generation as a value means to load what makes values of its members, and takes a listing twice its time. So a
file that is plainly well is shown as it is written; whatever else is there is the strict reader's, which has the words.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manifests.canonical import parse_strict
from manifests.errors import SpmError
from manifests.names import REGISTRY_ID

_MAX_BYTES = 8 << 20
_MEMBERS = {
    "name": str,
    "version": str,
    "release": str,
    "manifest_sha256": str,
    "type": str,
    "keyids": list,
    "requested": bool,
    "requires": list,
}
_OPTIONAL = {"fallback": str, "registry": str, "bindings": dict}


def shown_generation(root: Path) -> dict[str, Any]:
    """Return the document of the current generation; number 0 where nothing was ever installed.

    Raises: what `current_generation` raises.
    """
    if not os.path.lexists(root / "current"):
        return {"number": 0, "registry": "none", "plugins": []}
    try:
        document = _written(root)
    except (OSError, ValueError, SpmError):
        document = {}
    return document if _is_well(document) else _strictly(root)


def _written(root: Path) -> dict[str, Any]:
    number = _read(root / "current", 7).decode("ascii").removesuffix("\n")
    if len(number) != 6 or not number.isdecimal():
        raise ValueError(number)
    data = _read(root / "generations" / f"{number}.json", _MAX_BYTES)
    return parse_strict(data, what="the generation file", max_bytes=_MAX_BYTES)


def _read(path: Path, max_bytes: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        return file.read(max_bytes + 1)


def _is_well(document: Mapping[str, Any]) -> bool:
    plugins = document.get("plugins")
    return (
        set(document) == {"_type", "number", "registry", "created", "plugins"}
        and document["_type"] == "spm.generation/1"
        and type(document["number"]) is int
        and type(document["registry"]) is str
        and isinstance(plugins, list)
        and all(isinstance(plugin, dict) and _is_plugin(plugin) for plugin in plugins)
    )


def _is_plugin(plugin: Mapping[str, Any]) -> bool:
    return (
        set(_MEMBERS) <= set(plugin) <= {*_MEMBERS, *_OPTIONAL}
        and all(type(value) is (_MEMBERS.get(name) or _OPTIONAL[name]) for name, value in plugin.items())
        and all(type(word) is str for word in (*plugin["keyids"], *plugin["requires"]))
        and re.fullmatch(REGISTRY_ID, plugin.get("registry", "own")) is not None
        and _is_binding(plugin.get("bindings", {}))
    )


def _is_binding(bindings: Mapping[str, Any]) -> bool:
    affinity, policy = bindings.get("affinity", []), bindings.get("batch_policy", "none")
    mode = policy.get("mode") if isinstance(policy, dict) else policy
    return isinstance(affinity, list) and all(type(device) is str for device in affinity) and type(mode) is str


def _strictly(root: Path) -> dict[str, Any]:
    from runtime.generation import current_generation

    generation = current_generation(root)
    return parse_strict(generation.to_bytes(), what="the generation", max_bytes=_MAX_BYTES)

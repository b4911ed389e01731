"""The trust class of a plugin. Knows no key, and no other part of a manifest."""

from enum import StrEnum
from typing import Any

from manifests import fields


class PluginType(StrEnum):
    """The trust class: `core` starts with the host and is signed by core keys, `ext` loads on demand."""

    CORE = "core"
    EXT = "ext"


def read_type(value: Any) -> PluginType:
    return PluginType(fields.one_of("core", "ext")(value))

"""The resource controls that a manifest asks for, and which of them this host can enforce. Pure; applies nothing."""

from dataclasses import dataclass

from manifests.manifest import Manifest
from manifests.parts import Capabilities

NOT_ENFORCEABLE = "not enforceable here"

_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """The bytes a worker may use beyond torch itself (None: no limit), and each control's effective value in words."""

    memory_bytes: int | None
    controls: dict[str, str]


def effective(manifest: Manifest, ceiling: int | None) -> Effective:
    """Return what is in force: the smaller of what the plugin asks for and what loader.conf allows."""
    asked = _bytes_of(manifest.controls.memory)
    bounds = [bound for bound in (asked, ceiling) if bound is not None]
    memory = min(bounds) if bounds else None
    controls = dict.fromkeys(manifest.controls.to_dict(), NOT_ENFORCEABLE)
    if memory is not None:
        controls["memory"] = f"{memory} bytes of address space beyond torch itself"
    return Effective(memory_bytes=memory, controls=dict(sorted(controls.items())))


def policy_of(capabilities: Capabilities) -> dict[str, str]:
    """Return each capability's effective state in words, for `stats()` and the run record."""
    return {
        "env": ", ".join(capabilities.env) or "none",
        "exec": "allowed" if capabilities.exec else f"denial {NOT_ENFORCEABLE}",
        "network": "denied",
        "processes": f"{capabilities.processes} asked for; threads and processes together are limited",
        "read": "own tree, required plugins, interpreter and system libraries",
        "write": "scratch only",
    }


def ungranted(capabilities: Capabilities) -> list[str]:
    """Return the capabilities that are asked for and that no worker can be given yet."""
    asked = {"network": capabilities.network, "read": bool(capabilities.read), "write": bool(capabilities.write)}
    return [name for name, is_asked in asked.items() if is_asked]


def _bytes_of(size: str | None) -> int | None:
    return None if size is None else int(size[:-3]) * _UNITS[size[-3:]]

"""Runs verified plugins in sandboxed torch workers. Installs nothing; importing it does not import torch."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.host import Host as Host
    from runtime.instance import Instance as Instance

__all__ = ["Host", "Instance"]


def __getattr__(name: str) -> Any:
    # The worker imports this package too, and must not pull in the host's side of it.
    if name == "Host":
        from runtime.host import Host

        return Host
    if name == "Instance":
        from runtime.instance import Instance

        return Instance
    raise AttributeError(f"module 'runtime' has no attribute {name!r}")

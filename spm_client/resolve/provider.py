"""Where the solver learns which releases a plugin has. Says nothing about how they are fetched."""

from collections.abc import Sequence
from typing import Protocol

from manifests.index import ReleaseEntry
from manifests.names import PluginName


class Provider(Protocol):
    """The releases of plugins, asked for by name and at most once each.

    Usage: `resolve(provider, requirements, target)`.
    """

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        """Return every release of the plugin, yanked ones too, in any order.

        Raises: NotFound when the registry does not have the plugin. Any other error means that the answer could not
        be had; it passes through the solver untouched and is never read as "no such version".
        """
        ...

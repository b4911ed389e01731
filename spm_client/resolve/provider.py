"""Where the solver learns which releases a plugin has. Says nothing about how they are fetched."""

from collections.abc import Callable, Sequence
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


class Prefetching(Provider, Protocol):
    """A provider that can use the time until it is asked: `provider.prefetch(["mel", "fft"])`."""

    def prefetch(self, names: Sequence[PluginName], /) -> None:
        """Begin to fetch what will probably be asked for next. Raises nothing: an error belongs to the one who asks."""
        ...


def prefetcher(provider: Provider | Prefetching) -> Callable[[Sequence[PluginName]], None]:
    """Return how to tell a provider what will be asked for next; most have no use for it."""
    return getattr(provider, "prefetch", _ignore)


def _ignore(_names: Sequence[PluginName]) -> None:
    """Do nothing: the provider fetches when it is asked."""

"""Whether what a lock holds is a fallback, and in which words: as the resolver says it, never as the lock does.

The lock's words stand only where the resolver says just the same of the releases that there were up to some version:
what has come out since makes no new lock of what was true when it was written.
"""

from collections.abc import Callable, Sequence

from manifests.errors import IncompatibleTarget, ResolutionError, Undecided
from manifests.index import ReleaseEntry
from manifests.names import PluginName
from manifests.versions import Version
from spm_client.resolve import Pin, Provider, Resolution
from spm_client.resolve.budget import LimitSpent

MAX_LOOKS = 16

Resolve = Callable[[Provider], Resolution]


def fallback_words(pin: Pin, recorded: str | None, provider: Provider, resolve: Resolve) -> str | None:
    """Return the words for what is held and was accepted; None where only the lock keeps it from what is better.

    `resolve` resolves the same again, but for this plugin, which the lock does not hold there.
    Raises: Undecided where the time is over; what the provider raises.
    """
    now = _words(pin, provider, resolve)
    if recorded is None or recorded == now:
        return now
    newer = sorted({one.version for one in provider.releases(pin.name) if one.version > pin.version}, reverse=True)
    for last in newer[1 : MAX_LOOKS + 1]:
        if _words(pin, _UpTo(provider, pin.name, last), resolve) == recorded:
            return recorded
    return now


def _words(pin: Pin, provider: Provider, resolve: Resolve) -> str | None:
    try:
        found = next((one for one in resolve(provider).pins if one.name == pin.name), None)
    except LimitSpent:
        raise
    except (ResolutionError, IncompatibleTarget, Undecided):
        return None
    is_same = found is not None and found.variant.manifest_sha256 == pin.variant.manifest_sha256
    return found.fallback if found is not None and is_same else None


class _UpTo:
    """A provider as it was before releases of one plugin came out that are newer than a version."""

    def __init__(self, provider: Provider, name: PluginName, last: Version) -> None:
        self._provider = provider
        self._name = name
        self._last = last

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        releases = self._provider.releases(name)
        return [one for one in releases if one.version <= self._last] if name == self._name else releases

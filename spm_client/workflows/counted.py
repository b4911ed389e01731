"""A provider that tells how many plugins were asked for. Knows nothing of what it hands on."""

from collections.abc import Iterable, Sequence

from manifests.index import ReleaseEntry
from manifests.names import PluginName
from spm_client.progress import Advance
from spm_client.workflows.registries import RegistryIndexes


class Counted:
    """Usage: `resolve(Counted(index, advance), ...)`."""

    def __init__(self, index: RegistryIndexes, advance: Advance) -> None:
        self._index = index
        self._advance = advance

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        releases = self._index.releases(name)
        self._advance(1)
        return releases

    def prefetch(self, names: Iterable[PluginName]) -> None:
        self._index.prefetch(names)

"""The store's own registry as the only one that is asked, for bundles: each carries plugins of one registry."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path

from keys.keyring import LoaderConf
from manifests.errors import AmbiguousSource
from manifests.names import PluginName
from spm_client.store.layout import Layout
from spm_client.workflows.registries import Connect, OpenRegistry, RegistryIndexes


class OwnAlone(RegistryIndexes):
    """Refuses a name that belongs to another registry, and asks none for it.

    `carried` are the names that a bundle speaks of, none meaning all; what is installed beside them is read from the
    store by the bundle's own index, whosever it is.
    """

    def __init__(
        self,
        layout: Layout,
        conf: LoaderConf,
        connect: Connect,
        *,
        scratch: Path,
        now: datetime,
        opened: OpenRegistry | None = None,
        carried: Collection[str] | None = None,
        wished: dict[PluginName, frozenset[str]] | None = None,
    ) -> None:
        super().__init__(layout, conf, connect, scratch=scratch, now=now, wished=wished)
        self._carried = carried
        if opened is not None:
            self._opened[self.own] = opened

    def registry_of(self, name: PluginName) -> str:
        if self._carried is not None and name not in self._carried:
            return self.own
        registry = super().registry_of(name)
        if registry != self.own:
            raise AmbiguousSource(
                f"`{name}` belongs to the registry `{registry}`, and this bundle is of `{self.own}`: a bundle carries "
                "plugins of one registry, the store's own",
                hint=f"use a store whose own registry is `{registry}` (`--root DIR`)",
                name=name,
                registries=[self.own, registry],
            )
        return registry

"""Installing without what is required: releases stripped of their requirements, and a generation that is whole.

A generation in which something required is missing would never load, so what is not installed is refused, not left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from manifests.errors import Unsatisfiable
from manifests.index import ReleaseEntry
from manifests.lockfile import InstalledEntry
from manifests.names import PluginName
from manifests.ranges import Range
from manifests.versions import Version
from spm_client.resolve import Pin, Provider, Resolution
from spm_client.store.layout import Layout
from spm_client.workflows.installed_manifest import installed_manifest


class WithoutRequired:
    """A provider whose releases require no plugin."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        releases = self._provider.releases(name)
        return [replace(one, requires=replace(one.requires, plugins=())) for one in releases]

    def whole(self, resolution: Resolution) -> Resolution:
        """Return the resolution with the releases as the index has them."""
        return Resolution(pins=tuple(self._whole(pin) for pin in resolution.pins))

    def _whole(self, pin: Pin) -> Pin:
        releases = self._provider.releases(pin.name)
        return replace(pin, release=next(one for one in releases if one.version == pin.version))


def require_whole(resolution: Resolution, kept: Iterable[InstalledEntry], layout: Layout) -> None:
    """Accept pins that go together with what is installed, with nothing else.

    Raises: Unsatisfiable naming all that is missing; DigestMismatch where the store has lost a manifest.
    """
    kept = tuple(kept)
    versions = {entry.name: entry.version for entry in kept} | {pin.name: pin.version for pin in resolution.pins}
    pinned = {pin.name for pin in resolution.pins}
    missing = [lack for pin in resolution.pins for lack in _lacks(pin, versions)]
    missing += [lack for entry in kept if pinned & set(entry.requires) for lack in _broken(entry, versions, layout)]
    if missing:
        raise Unsatisfiable(
            f"`--no-deps` installs nothing that is required: {'; '.join(text for text, _ in missing)}",
            hint="leave out `--no-deps`, which installs what is required too, or install that first",
            missing=[lack for _, lack in missing],
        )


_Lack = tuple[str, dict[str, str | None]]


def _lacks(pin: Pin, versions: dict[PluginName, Version]) -> Iterator[_Lack]:
    for name, wanted in pin.release.requires.plugins:
        found = versions.get(name)
        if found is None or not wanted.contains(found, pre=True):
            has = "which is not installed" if found is None else f"and {found} is installed"
            yield _lack(f"`{pin.name}` {pin.version}", name, wanted, found, has)


def _broken(entry: InstalledEntry, versions: dict[PluginName, Version], layout: Layout) -> Iterator[_Lack]:
    for name, wanted in installed_manifest(layout, entry).requires.plugins:
        found = versions.get(name)
        if found is not None and not wanted.contains(found, pre=True):
            yield _lack(f"the installed `{entry.name}` {entry.version}", name, wanted, found, f"and not {found}")


def _lack(who: str, name: PluginName, wanted: Range, found: Version | None, has: str) -> _Lack:
    told = {"name": name, "range": wanted.text, "installed": str(found) if found else None}
    return f"{who} requires `{name}` `{wanted.text}`, {has}", told

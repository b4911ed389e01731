"""Outdated: what is locked or installed, the newest in range, the newest of all, and what keeps it back. Pure.

Nothing here is resolved anew: the reason is the first fact that stands between what is there and the newest release.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manifests.fit import Misfit, Unknown
from manifests.index import ReleaseEntry
from manifests.names import PluginName
from manifests.ranges import Range
from manifests.target import Target
from manifests.versions import Version
from spm_client.resolve.fit import judge

LOCKED, INSTALLED = "locked", "installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """A range that is put on a plugin, and by whom."""

    by: str
    range: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One release that is there: for which targets (by name), and what is required of it."""

    name: PluginName
    version: Version
    targets: Mapping[str, Target]
    wants: tuple[Want, ...]
    requires: tuple[tuple[PluginName, Range], ...] = ()
    is_pre: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated:
    """A release that is not the newest, or was yanked."""

    name: PluginName
    version: Version
    targets: tuple[str, ...]
    in_range: Version | None
    newest: Version | None
    yanked: str | None
    kept_back_by: str

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": str(self.version),
            "targets": list(self.targets),
            "in_range": None if self.in_range is None else str(self.in_range),
            "newest": None if self.newest is None else str(self.newest),
            "yanked": self.yanked,
            "kept_back_by": self.kept_back_by,
        }


def outdated(
    held: Sequence[Held], releases_of: Callable[[PluginName], Sequence[ReleaseEntry]], *, kind: str
) -> tuple[Outdated, ...]:
    """Return what has a newer release, or was yanked; `kind` says whether it is locked or installed."""
    versions: dict[PluginName, set[Version]] = {}
    for one in held:
        versions.setdefault(one.name, set()).add(one.version)
    found = (_look(one, releases_of(one.name), versions, kind) for one in held)
    return tuple(one for one in found if one is not None)


def _look(
    held: Held, releases: Sequence[ReleaseEntry], versions: Mapping[PluginName, set[Version]], kind: str
) -> Outdated | None:
    offered = [
        release
        for release in sorted(releases, key=lambda release: release.version)
        if release.yanked is None and (held.is_pre or held.version.is_prerelease or not release.version.is_prerelease)
    ]
    fitting = [one for one in offered if all(want.range.contains(one.version, pre=True) for want in held.wants)]
    newest = offered[-1] if offered else None
    in_range = fitting[-1] if fitting else None
    yanked = next((one.yanked for one in releases if one.version == held.version), None)
    is_behind = newest is not None and newest.version > held.version
    if not is_behind and yanked is None:
        return None
    return Outdated(
        name=held.name,
        version=held.version,
        targets=tuple(sorted(held.targets)),
        in_range=in_range.version if in_range else None,
        newest=newest.version if newest else None,
        yanked=yanked,
        kept_back_by=_reason(held, newest, in_range, versions, kind) if newest is not None and is_behind else "",
    )


def _reason(
    held: Held,
    newest: ReleaseEntry,
    in_range: ReleaseEntry | None,
    versions: Mapping[PluginName, set[Version]],
    kind: str,
) -> str:
    if in_range is not None and in_range.version > held.version:
        return (
            _stands_against(held, in_range, versions)
            or f"it is {kind}: {_command(held.name, kind)} takes {in_range.version}"
        )
    out = [want for want in held.wants if not want.range.contains(newest.version, pre=True)]
    if out:
        return " and ".join(f"{want.by} wants `{want.range}`" for want in out)
    return _stands_against(held, newest, versions) or "nothing"


def _stands_against(held: Held, release: ReleaseEntry, versions: Mapping[PluginName, set[Version]]) -> str | None:
    """Return the fact that excludes a release in range: a target's, or another plugin's version."""
    for name, target in sorted(held.targets.items()):
        verdict = judge(release, target)
        if isinstance(verdict, Misfit | Unknown):
            return f"{release.version} {verdict.text}" + (f" (`{name}`)" if name else "")
    for name, wanted in release.requires.plugins:
        out = sorted(one for one in versions.get(name, ()) if not wanted.contains(one, pre=True))
        if out:
            return f"{release.version} requires `{name}` `{wanted}`, and {out[0]} is there"
    return None


def _command(name: PluginName, kind: str) -> str:
    return f"`spm upgrade {name}`" if kind == LOCKED else f"`spm install {name}`"

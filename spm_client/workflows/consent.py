"""What an install may do only if it was asked for: bind devices, move a plugin back. Pure; changes nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from manifests.devices import matches, outside
from manifests.errors import FallbackRefused, IncompatibleTarget, UsageError
from manifests.index import ReleaseEntry
from manifests.lockfile import Bindings
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.target import Target
from manifests.versions import Version
from spm_client.resolve import Pin, Requirement, Resolution

if TYPE_CHECKING:
    from manifests.project_lock import LockedRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the one who installs asks for."""

    requirements: tuple[Requirement, ...]
    bindings: Bindings = Bindings()
    unbind: bool = False
    accept_fallback: frozenset[PluginName] = frozenset()
    pre: frozenset[PluginName] = frozenset()
    is_strict: bool = False
    is_dry_run: bool = False
    target_option: str = ""
    """How the target was named, for the remedies of what is found."""
    is_carried: bool = False
    """The requirements were read from a bundle, where whoever carried it may have written them."""
    locked: "Mapping[PluginName, LockedRelease]" = field(default_factory=dict)
    """What spm.lock says of plugins: nothing else is taken of them, and fallbacks that it records are accepted."""
    is_exact: bool = False
    """Install just the resolution: what is not in it is removed, and what was installed before has no say."""
    bindings_of: Mapping[PluginName, Bindings] = field(default_factory=dict)
    """What a project binds, in the place of the bindings that a plugin has."""
    no_deps: bool = False
    """Install what is wished for alone: what it requires must be installed already."""
    exclude_newer: datetime | None = None
    """Releases that were published later are as good as not there."""
    force_arch: str | None = None
    """Of variants that are built for architectures, only those for just this one, as in `sm_86`."""
    is_known_idle: bool = False
    """Who installs knows that no host runs what is replaced."""

    def laid_over(self, before: Bindings) -> Bindings:
        """Return the wished bindings laid over those that a plugin has, member by member."""
        kept = Bindings() if self.unbind else before
        return Bindings(
            affinity=self.bindings.affinity or kept.affinity,
            batch_policy=self.bindings.batch_policy or kept.batch_policy,
        )

    def bindings_for(self, name: PluginName, before: Bindings) -> Bindings:
        """Return the bindings that a plugin is to have, given those that it has."""
        if self.is_exact or name in self.bindings_of:
            return self.bindings_of.get(name, Bindings())
        return self.laid_over(before) if name in self.names else before

    @property
    def accepted(self) -> frozenset[PluginName]:
        """The plugins that may be fallbacks: by word of who installs, or as spm.lock records it."""
        return self.accept_fallback | {name for name, locked in self.locked.items() if locked.fallback}

    @property
    def names(self) -> frozenset[PluginName]:
        return frozenset(requirement.name for requirement in self.requirements)


def require_bindable(wishes: Wishes, target: Target) -> None:
    """Refuse a binding to devices that the target does not have: it could never be kept."""
    if (wishes.bindings != Bindings() or wishes.unbind) and len(wishes.names) != 1:
        raise UsageError("`--affinity`, `--batch-policy` and `--unbind` are for one plugin: install it alone")
    _require_devices("`--affinity={wanted}`", wishes.bindings, target)
    for name, bindings in sorted(wishes.bindings_of.items()):
        _require_devices(f"the affinity `{{wanted}}` of `{name}` in spm.toml", bindings, target)


def _require_devices(what: str, bindings: Bindings, target: Target) -> None:
    for wanted in bindings.affinity or ():
        if not any(matches(wanted, device) for device in target.devices):
            has = ", ".join(device.id for device in target.devices)
            raise IncompatibleTarget(
                f"{what.format(wanted=wanted)} cannot be kept: this target has {has}",
                reason="device",
                hint="bind it to a device that is there, or name the right target with `--target`",
                affinity=str(wanted),
            )


def require_within(manifest: Manifest, bindings: Bindings, target: Target) -> None:
    """Refuse a binding to a device that the author did not name: nothing outside the signed affinity is ever used."""
    declared = manifest.device_affinity
    for bound in bindings.affinity or ():
        if declared is not None and (strange := outside(declared, bound, target.devices)):
            named = ", ".join(f"`{device}`" for device in declared)
            raise IncompatibleTarget(
                f"`{manifest.name}` {manifest.version} cannot be bound to `{bound}`: its author names only {named}",
                reason="device",
                hint="bind it to one of those, or ask its publisher for a release that names more",
                affinity=str(bound),
                devices=list(strange),
            )


def require_used(wishes: Wishes, resolution: Resolution) -> None:
    """Refuse an acceptance that accepts nothing: it is a slip of the pen, or a wrong picture of what happens."""
    taken = {pin.name for pin in resolution.pins}
    for name in sorted(wishes.accept_fallback - taken):
        raise UsageError(f"`--accept-fallback {name}`: `{name}` is not among what would be installed")
    for name in sorted(wishes.bindings_of.keys() - taken):
        raise UsageError(f"spm.toml binds `{name}`, which is not among what would be installed")


def move_back(pin: Pin, before: Version, wishes: Wishes, releases: Iterable[ReleaseEntry]) -> str | None:
    """Say what a pin older than the installed version is taken for; None where just that was asked for."""
    if pin.name in wishes.locked:
        return None
    ranges = [wish.range for wish in wishes.requirements if wish.name == pin.name and not wishes.is_carried]
    if any(not wanted.contains(before, pre=True) for wanted in ranges):
        return None
    return moved_back(pin.version, before, releases)


def moved_back(version: Version, before: Version, releases: Iterable[ReleaseEntry]) -> str | None:
    """Say why a release would stand where a newer one is installed; None where it is not older."""
    if before <= version:
        return None
    listed = next((release for release in releases if release.version == before), None)
    if listed is None:
        why = "is no longer offered"
    elif listed.yanked:
        why = f"was yanked: {listed.yanked}"
    else:
        why = "does not go with the rest of what was asked for"
    return f"{version} instead of the installed {before}, which {why}"


def would_move_back(pin: Pin, why: str, wishes: Wishes) -> FallbackRefused:
    """Return the refusal to put an older release in an installed one's place unasked."""
    command = "spm bundle import FILE" if wishes.is_carried else "spm install"
    return FallbackRefused(
        f"`{pin.name}` would move back: {why}",
        hint=f"`{command} {pin.name}=={pin.version}` asks for that; "
        f"`--accept-fallback {pin.name}` accepts and records it",
        fallbacks=[{"name": pin.name, "version": str(pin.version), "why": why}],
        accept=[pin.name],
    )

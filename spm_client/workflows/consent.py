"""What an install may do only if it was asked for: bind devices, move a plugin back. Pure; changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass

from manifests.devices import matches, outside
from manifests.errors import FallbackRefused, IncompatibleTarget, UsageError
from manifests.index import ReleaseEntry
from manifests.lockfile import Bindings
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.target import Target
from manifests.versions import Version
from spm_client.resolve import Pin, Requirement, Resolution


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

    def laid_over(self, before: Bindings) -> Bindings:
        """Return the wished bindings laid over those that a plugin has, member by member."""
        kept = Bindings() if self.unbind else before
        return Bindings(
            affinity=self.bindings.affinity or kept.affinity,
            batch_policy=self.bindings.batch_policy or kept.batch_policy,
        )

    @property
    def names(self) -> frozenset[PluginName]:
        return frozenset(requirement.name for requirement in self.requirements)


def require_bindable(wishes: Wishes, target: Target) -> None:
    """Refuse a binding to devices that the target does not have: it could never be kept."""
    if (wishes.bindings != Bindings() or wishes.unbind) and len(wishes.names) != 1:
        raise UsageError("`--affinity`, `--batch-policy` and `--unbind` are for one plugin: install it alone")
    for wanted in wishes.bindings.affinity or ():
        if not any(matches(wanted, device) for device in target.devices):
            has = ", ".join(device.id for device in target.devices)
            raise IncompatibleTarget(
                f"`--affinity={wanted}` cannot be kept: this target has {has}",
                reason="device",
                hint="bind it to a device that is there, or name the right host with `--target FILE`",
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


def move_back(pin: Pin, before: Version, wishes: Wishes, releases: Iterable[ReleaseEntry]) -> str | None:
    """Say what a pin older than the installed version is taken for; None where just that was asked for."""
    ranges = [wish.range for wish in wishes.requirements if wish.name == pin.name and not wishes.is_carried]
    if any(not wanted.contains(before, pre=True) for wanted in ranges):
        return None
    listed = next((release for release in releases if release.version == before), None)
    if listed is None:
        why = "is no longer offered"
    elif listed.yanked:
        why = f"was yanked: {listed.yanked}"
    else:
        why = "does not go with the rest of what was asked for"
    return f"{pin.version} instead of the installed {before}, which {why}"


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

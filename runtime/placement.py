"""Whether a release may run on a target, and on which device. Pure: facts in, refusal out; looks at no machine."""

from collections.abc import Sequence

from manifests.devices import Device, matches
from manifests.errors import IncompatibleTarget, Undecided
from manifests.fit import Unknown, first_doubt, release_doubt, variant_doubt
from manifests.manifest import Manifest
from manifests.parts import Variant
from manifests.target import Target, TargetDevice


def require_fit(manifest: Manifest, target: Target) -> None:
    """Check contract, torch, Python and the variant's machine anew: the host may have changed since the install.

    Raises: IncompatibleTarget with the fact; Undecided when the fact that would decide is unknown.
    """
    doubt = first_doubt(
        (
            release_doubt(manifest.seedance_version, manifest.requires, target),
            variant_doubt(manifest.variant or Variant(), target),
        )
    )
    if doubt is None:
        return
    release = f"`{manifest.name}` {manifest.version}"
    hint = f"`spm info {manifest.name}` shows which releases fit this host"
    if isinstance(doubt, Unknown):
        message = f"{release} cannot be known to fit this host: it {doubt.text}"
        raise Undecided(message, reason=f"unknown:{doubt.fact}", hint=hint, plugin=manifest.name)
    message = f"{release} does not fit this host: it {doubt.text}"
    raise IncompatibleTarget(message, reason=doubt.reason, hint=hint, plugin=manifest.name)


def place(
    plugin: str, affinity: Sequence[Device] | None, target: Target, *, wanted: Device | None = None
) -> TargetDevice:
    """Return the target's first device that the affinity names, in the affinity's order, and never another.

    `wanted` is the caller's own choice; it must be a device that the affinity names too.
    Raises: IncompatibleTarget with the reason `device`.
    """
    named = [device for entry in _entries(plugin, affinity, target, wanted) for device in _named(entry, target)]
    allowed = [device for device in named if wanted is None or matches(wanted, device)]
    if allowed:
        return allowed[0]
    have = ", ".join(f"`{device.id}`" for device in target.devices)
    chosen = f", and the device `{wanted}` was asked for" if wanted else ""
    raise IncompatibleTarget(
        f"`{plugin}` runs on {_listed(affinity)} only{chosen}, but this host has {have}",
        reason="device",
        hint=f"bind it to a device that this host has: `spm install {plugin} --affinity DEVICE`",
        plugin=plugin,
        affinity=[str(entry) for entry in affinity or ()],
        devices=[device.id for device in target.devices],
    )


def _entries(plugin: str, affinity: Sequence[Device] | None, target: Target, wanted: Device | None) -> Sequence[Device]:
    if affinity is not None:
        return affinity
    if wanted is not None:
        return (wanted,)
    if not target.accelerators:
        return (Device(kind="cpu"),)
    # Neither leaving an accelerator idle nor taking one unasked is ours to choose.
    raise IncompatibleTarget(
        f"`{plugin}` names no device affinity and this host has "
        + ", ".join(f"`{device.id}`" for device in target.accelerators),
        reason="device",
        hint=f"bind it: `spm install {plugin} --affinity {target.accelerators[0].id}`",
        plugin=plugin,
        devices=[device.id for device in target.devices],
    )


def _named(entry: Device, target: Target) -> list[TargetDevice]:
    return [device for device in target.devices if matches(entry, device)]


def _listed(affinity: Sequence[Device] | None) -> str:
    return ", ".join(f"`{entry}`" for entry in affinity) if affinity else "any device"

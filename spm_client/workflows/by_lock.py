"""Whether what would be installed is what spm.lock says. Pure; resolves nothing, reads no file.

1. Before the resolution: the lock's releases are of the registry that is asked, and bound it to their versions.
2. After it: each manifest is one that the lock names, what the lock says of it is what the registry says (and what is
   verified next), and each fallback is one that it records or that was accepted.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from manifests.errors import FallbackRefused, LockDrift
from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve import Pin, Requirement, Resolution
from spm_client.workflows.consent import Wishes

if TYPE_CHECKING:
    from manifests.project_lock import LockedRelease

_LOCK = "spm.lock"


def lock_bounds(wishes: Wishes, own: str, registry_of: Callable[[PluginName], str]) -> tuple[Requirement, ...]:
    """Return what bounds each locked plugin to its version, and asks for none.

    Raises: LockDrift for a release that was locked from another registry than its name belongs to here; what
    `registry_of` raises.
    """
    for name, locked in sorted(wishes.locked.items()):
        was, registry = locked.registry or own, registry_of(name)
        if was != registry:
            raise LockDrift(
                f"{_LOCK} has `{name}` {locked.version} from the registry `{was}`, but here the name belongs to "
                f"`{registry}`",
                hint=f"let it belong to `{was}` here too, by `registry.names` in that one's loader.conf; or, if the "
                "change is meant, `spm lock` locks it anew",
                name=name,
                expected=was,
                found=registry,
            )
    return tuple(
        Requirement(name=name, range=Range.parse(f"=={locked.version}"), source=_LOCK)
        for name, locked in sorted(wishes.locked.items())
    )


def require_locked(wishes: Wishes, resolution: Resolution) -> None:
    """Accept a resolution that takes of every locked plugin what the lock says.

    Raises: LockDrift; FallbackRefused for one that the lock does not record.
    """
    for pin in resolution.pins if wishes.locked else ():
        locked = wishes.locked.get(pin.name)
        if locked is not None:
            _require_as_locked(pin, locked, wishes)
        elif wishes.is_exact:
            raise LockDrift(
                f"`{pin.name}` {pin.version} would be installed, and {_LOCK} does not name it",
                hint="`spm lock` locks what spm.toml needs now",
                name=pin.name,
                found=str(pin.version),
            )
    _require_as_recorded(wishes, resolution)


def _require_as_locked(pin: Pin, locked: "LockedRelease", wishes: Wishes) -> None:
    if pin.variant.manifest_sha256 not in locked.manifests:
        raise _drift(pin, locked)
    if pin.fallback and pin.name not in wishes.accepted:
        raise FallbackRefused(
            f"`{pin.name}` {pin.version} would be a fallback here, which {_LOCK} does not record: {pin.fallback}",
            hint=f"`spm lock --accept-fallback {pin.name}` for this target accepts and records it",
            fallbacks=[{"name": pin.name, "version": str(pin.version), "why": pin.fallback}],
            accept=[pin.name],
        )


def _require_as_recorded(wishes: Wishes, resolution: Resolution) -> None:
    """Accept what the lock says of releases beside their digests.

    Raises: LockDrift listing each difference.
    """
    recorded = [
        (locked.recorded, pin.release)
        for pin in resolution.pins
        if (locked := wishes.locked.get(pin.name)) is not None and locked.recorded is not None
    ]
    if not recorded:
        return
    from spm_client.workflows.lock_drift import drifted, recorded_drift

    if drift := [told for plugin, release in recorded for told in recorded_drift(plugin, release)]:
        raise drifted(
            drift,
            hint=f"find out who changed {_LOCK}; `spm lock` writes what the registry and the signatures say",
        )


def _drift(pin: Pin, locked: "LockedRelease") -> LockDrift:
    taken, named = pin.variant.manifest_sha256, sorted(locked.manifests)
    listed = {variant.manifest_sha256 for variant in pin.release.variants}
    if listed & locked.manifests:
        tag = pin.variant.variant.tag if pin.variant.variant else "any"
        why = f"this target takes the variant `{tag}`, for which it was not locked"
        hint = "`spm lock` with this target among those of spm.toml locks it too"
    else:
        why = "the registry lists none of the locked manifests, and a release never changes"
        hint = "do not lock anew before the registry's administrator has told you why"
    return LockDrift(
        f"`{pin.name}` {pin.version} would be installed from the manifest sha256:{taken}, but {_LOCK} names "
        f"sha256:{', sha256:'.join(named)}: {why}",
        hint=hint,
        name=pin.name,
        version=str(pin.version),
        expected=named,
        found=taken,
    )

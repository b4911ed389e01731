"""Device affinity: the grammar, and which device of a target an entry means. Never looks at a machine."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from manifests import fields
from manifests.errors import UsageError

ACCELERATORS = ("cuda", "npu", "xpu", "mps")
MAX_AFFINITY = 16

_DEVICE = re.compile(
    r"(?P<only>cpu|mps)|(?P<kind>cuda|npu|xpu)(?::?(?P<index>0|[1-9][0-9]{0,2}))?|cuda:sm_(?P<sm>[1-9][0-9]{1,2}[af]?)"
)


class HasDevice(Protocol):
    """What matching needs of a target's device."""

    @property
    def id(self) -> str: ...
    @property
    def sm(self) -> str | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """One entry of an affinity: a kind, one device of it (`cuda:1`), or a compute capability (`cuda:sm_86`)."""

    kind: str
    index: int | None = None
    sm: str | None = None

    def __str__(self) -> str:
        if self.index is not None:
            return f"{self.kind}:{self.index}"
        return f"{self.kind}:{self.sm}" if self.sm else self.kind


def parse_device(text: str) -> Device:
    """Return the device that the text names.

    Raises: UsageError unless it is `cpu`, `mps`, a kind (`cuda`, `npu`, `xpu`), one device of it (`npu:0` or `npu0`),
    or a compute capability (`cuda:sm_86`).
    """
    match = _DEVICE.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise UsageError(
            f"{str(text)[:40]!r} is not a device: write `cpu`, `cuda`, `cuda:0`, `cuda:sm_86`, `npu`, `npu:0`, "
            "`xpu` or `mps`"
        )
    if match["sm"]:
        return Device(kind="cuda", sm=f"sm_{match['sm']}")
    index = int(match["index"]) if match["index"] else None
    return Device(kind=match["only"] or match["kind"], index=index)


def parse_affinity(entries: Iterable[str]) -> tuple[Device, ...]:
    """Return an author's or installer's ordered choice of devices.

    Raises: UsageError when it is empty, longer than 16, or names a device twice.
    """
    devices = tuple(parse_device(entry) for entry in entries)
    if not devices or len(devices) > MAX_AFFINITY:
        raise UsageError(f"a device affinity names 1 to {MAX_AFFINITY} devices, not {len(devices)}")
    if len(set(devices)) != len(devices):
        raise UsageError(f"the device affinity {[str(device) for device in devices]} names a device twice")
    return devices


def read_affinity(value: Any) -> tuple[Device, ...]:
    """Read the list of a document.

    Raises: as `parse_affinity`.
    """
    return parse_affinity(fields.many(fields.text, MAX_AFFINITY)(value))


def outside(declared: tuple[Device, ...], bound: Device, devices: Iterable[HasDevice]) -> tuple[str, ...]:
    """Return the devices of a target that a binding could mean and that the author's affinity does not name."""
    meant = [device for device in devices if matches(bound, device)]
    return tuple(device.id for device in meant if not any(matches(entry, device) for entry in declared))


def matches(wanted: Device, device: HasDevice) -> bool:
    """Tell whether a target's device is what an affinity entry means. An unknown sm matches no sm entry."""
    kind, _, index = device.id.partition(":")
    if kind != wanted.kind:
        return False
    if wanted.index is not None:
        return index == str(wanted.index)
    return wanted.sm is None or device.sm == wanted.sm

"""A small index in memory that is a Provider, and short ways to write releases, targets and wishes for tests."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from manifests.errors import NotFound
from manifests.index import ReleaseEntry, VariantEntry
from manifests.names import PluginName, parse_name
from manifests.parts import PluginType, Requires, Variant
from manifests.ranges import Range
from manifests.target import Target, TargetDevice, TorchFacts
from manifests.versions import Version
from spm_client.resolve import Requirement, Resolution, parse_spec, resolve

HOST = Target(
    os="linux",
    cpu="x86_64",
    python="3.11.2",
    contract="2.0.5",
    devices=(TargetDevice(id="cpu", name="a cpu"),),
    torch=TorchFacts(version="2.13.0+cpu"),
)


def gpu_host(*sms: str | None, torch: TorchFacts | None = None) -> Target:
    """Return a host with one cuda device for each compute capability."""
    devices = tuple(TargetDevice(id=f"cuda:{index}", name="a gpu", sm=sm) for index, sm in enumerate(sms))
    return replace(HOST, devices=(*HOST.devices, *devices), torch=torch or TorchFacts(version="2.13.0", cuda="12.6"))


def variant(**members: Any) -> VariantEntry:
    """Return a variant entry; ranges are given as text, `sm` as words."""
    ranges: dict[str, Any] = {
        name: Range.parse(members[name]) for name in ("cuda", "torch", "python") if name in members
    }
    sm = tuple(members.get("sm", "").split())
    return _entry(Variant(**(members | ranges | {"sm": sm})))


def release(
    version: str,
    *variants: VariantEntry,
    requires: Mapping[str, str] | None = None,
    torch: str | None = None,
    python: str | None = None,
    contract: str = "*",
    yanked: str | None = None,
) -> ReleaseEntry:
    plugins = tuple(sorted((parse_name(name), Range.parse(text)) for name, text in (requires or {}).items()))
    return ReleaseEntry(
        version=Version.parse(version),
        type=PluginType.EXT,
        seedance_version=Range.parse(contract),
        requires=Requires(
            plugins=plugins,
            torch=Range.parse(torch) if torch else None,
            python=Range.parse(python) if python else None,
        ),
        variants=variants or (_entry(None),),
        yanked=yanked,
    )


class Universe:
    """The releases of every plugin there is. `asked` records the order in which plugins were asked for."""

    def __init__(self, **plugins: Sequence[ReleaseEntry]) -> None:
        self.plugins = {parse_name(name.replace("_", "-")): tuple(releases) for name, releases in plugins.items()}
        self.asked: list[PluginName] = []

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        self.asked.append(name)
        if name not in self.plugins:
            raise NotFound(f"the registry has no plugin `{name}`")
        return self.plugins[name]


def wishes(*specs: str) -> list[Requirement]:
    return [parse_spec(spec) for spec in specs]


def versions(resolution: Resolution) -> dict[str, str]:
    return {pin.name: str(pin.version) for pin in resolution.pins}


def solve(universe: Universe, *specs: str, target: Target = HOST, **options: Any) -> dict[str, str]:
    """Return name to version of what `resolve` takes."""
    return versions(resolve(universe, wishes(*specs), target, **options))


def names(*texts: str) -> frozenset[PluginName]:
    return frozenset(map(parse_name, texts))


def locks(**held: str) -> dict[PluginName, Version]:
    return {parse_name(name): Version.parse(text) for name, text in held.items()}


def only(entries: Iterable[Any]) -> Any:
    (entry,) = entries
    return entry


def _entry(value: Variant | None) -> VariantEntry:
    return VariantEntry(variant=value, manifest_sha256="0" * 64, manifest_size=1, signatures=(), blobs_size=0)

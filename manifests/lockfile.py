"""What is installed at one moment: a generation, with digests, key ids, accepted fallbacks and bindings. No I/O."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from manifests import fields
from manifests.batching import BatchPolicy
from manifests.canonical import canonical_bytes, parse_strict
from manifests.devices import Device, read_affinity
from manifests.errors import UsageError
from manifests.fields import Fields
from manifests.names import REGISTRY_ID, PluginName, parse_name
from manifests.plugin_type import PluginType, read_type
from manifests.versions import Version

GENERATION_TYPE = "spm.generation/1"
MAX_GENERATION_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """An installer's own choice of devices and batch policy, laid over a signed manifest."""

    affinity: tuple[Device, ...] | None = None
    batch_policy: BatchPolicy | None = None

    @classmethod
    def read(cls, reader: Fields) -> "Bindings":
        return cls(
            affinity=reader.optional("affinity", read_affinity),
            batch_policy=reader.optional("batch_policy", BatchPolicy.from_value),
        )

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = {}
        if self.affinity is not None:
            value["affinity"] = [str(device) for device in self.affinity]
        if self.batch_policy is not None:
            value["batch_policy"] = self.batch_policy.to_value()
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledEntry:
    """One installed plugin. `fallback` is the accepted fallback in words, `release` its folder in the store.

    `registry` is None where it came from the generation's own registry.
    """

    name: PluginName
    version: Version
    release: str
    manifest_sha256: str
    type: PluginType
    keyids: tuple[str, ...]
    requested: bool
    requires: tuple[PluginName, ...] = ()
    fallback: str | None = None
    bindings: Bindings = Bindings()
    registry: str | None = None

    @classmethod
    def read(cls, reader: Fields) -> "InstalledEntry":
        entry = cls(
            name=reader.required("name", parse_name),
            version=reader.required("version", Version.parse),
            release=reader.required("release", fields.matching(r"[0-9][A-Za-z0-9._+-]{0,199}", "a release folder")),
            manifest_sha256=reader.required("manifest_sha256", fields.sha256),
            type=reader.required("type", read_type),
            keyids=reader.required("keyids", fields.many(fields.sha256, 64)),
            requested=reader.required("requested", fields.boolean),
            requires=reader.required("requires", fields.many(parse_name, 256)),
            fallback=reader.optional("fallback", fields.text),
            bindings=reader.optional("bindings", fields.nested(Bindings.read)) or Bindings(),
            registry=reader.optional("registry", fields.matching(REGISTRY_ID, "a registry id")),
        )
        if None not in (entry.version, entry.release) and not f"{entry.release}+".startswith(f"{entry.version}+"):
            raise UsageError(f"the release folder `{entry.release}` is not one of version {entry.version}")
        return entry

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "name": self.name,
            "version": self.version.text,
            "release": self.release,
            "manifest_sha256": self.manifest_sha256,
            "type": self.type.value,
            "keyids": list(self.keyids),
            "requested": self.requested,
            "requires": list(self.requires),
        }
        if self.fallback is not None:
            value["fallback"] = self.fallback
        if self.registry is not None:
            value["registry"] = self.registry
        return value | ({"bindings": bindings} if (bindings := self.bindings.to_dict()) else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """All that is installed at one moment, by name. Number 0 is the empty store."""

    number: int
    registry: str
    created: str
    plugins: tuple[InstalledEntry, ...] = ()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Generation":
        """Read a generation file.

        Raises: TooBig, NotCanonical, or TypeMismatch listing every problem.
        """
        value = parse_strict(data, what="the generation file", max_bytes=MAX_GENERATION_BYTES)
        with fields.document("the generation file") as problems:
            reader = Fields(value, "", problems)
            reader.required("_type", fields.one_of(GENERATION_TYPE))
            generation = cls(
                number=reader.required("number", fields.whole(1, 999_999)),
                registry=reader.required("registry", fields.matching(REGISTRY_ID, "a registry id")),
                created=reader.required("created", fields.moment),
                plugins=reader.required("plugins", fields.many(fields.nested(InstalledEntry.read), 4096)),
            )
            reader.close()
            if not problems:
                problems.extend((*_twins(generation), *_dangling(generation)))
        return generation

    def to_bytes(self) -> bytes:
        return canonical_bytes(
            {
                "_type": GENERATION_TYPE,
                "number": self.number,
                "registry": self.registry,
                "created": self.created,
                "plugins": [entry.to_dict() for entry in self.plugins],
            }
        )

    def find(self, name: str) -> InstalledEntry | None:
        return next((entry for entry in self.plugins if entry.name == name), None)

    def dependants(self, name: str) -> tuple[PluginName, ...]:
        """Return the installed plugins that require the named one."""
        return tuple(entry.name for entry in self.plugins if name in entry.requires)

    def closure(self, name: str) -> tuple[InstalledEntry, ...]:
        """Return the named plugin and all that it requires, each once, the named one first."""
        wanted, found = [name], list[InstalledEntry]()
        while wanted:
            entry = self.find(wanted.pop(0))
            if entry is not None and entry not in found:
                found.append(entry)
                wanted.extend(entry.requires)
        return tuple(found)

    def following(
        self, *, created: str, plugins: tuple[InstalledEntry, ...], registry: str | None = None
    ) -> "Generation":
        """Return the next generation, plugins sorted by name; of another registry where one is named."""
        ordered = tuple(sorted(plugins, key=lambda entry: entry.name))
        return replace(
            self, number=self.number + 1, created=created, plugins=ordered, registry=registry or self.registry
        )


def _twins(generation: Generation) -> list[str]:
    counts = Counter(entry.name for entry in generation.plugins)
    return [f"`{name}` is installed twice" for name, count in counts.items() if count > 1]


def _dangling(generation: Generation) -> list[str]:
    names = {entry.name for entry in generation.plugins}
    return [
        f"`{entry.name}` requires `{wanted}`, which is not installed"
        for entry in generation.plugins
        for wanted in entry.requires
        if wanted not in names
    ]

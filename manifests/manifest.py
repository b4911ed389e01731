"""The signed document of one variant: what it is, needs, may do, and the table of its files. Verifies no signature."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from manifests import fields
from manifests.batching import BatchPolicy
from manifests.canonical import canonical_bytes, parse_strict
from manifests.devices import Device, read_affinity
from manifests.errors import SpmError
from manifests.fields import Fields
from manifests.names import REGISTRY_ID, PluginName, parse_name
from manifests.parts import (
    Capabilities,
    Controls,
    FileEntry,
    Requires,
    TensorSpec,
    Variant,
    read_waivers,
)
from manifests.paths import check_distinct
from manifests.plugin_type import PluginType, read_type
from manifests.ranges import Range
from manifests.versions import Version

MANIFEST_TYPE = "spm.manifest/1"
MAX_MANIFEST_BYTES = 1 << 20
MAX_FILES = 4096

_MODULE = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*"


def read_shared(reader: Fields) -> dict[str, Any]:
    """Read the members that the author's YAML and the signed manifest have in common."""
    return {
        "name": reader.required("name", parse_name),
        "version": reader.required("version", Version.parse),
        "type": reader.required("type", read_type),
        "summary": reader.required("summary", fields.text),
        "license": reader.required("license", fields.text),
        "entry": reader.required("entry", fields.matching(_MODULE, "`module:factory`")),
        "seedance_version": reader.required("seedance_version", Range.parse),
        "requires": reader.optional("requires", fields.nested(Requires.read)) or Requires(),
        "device_affinity": reader.optional("device_affinity", read_affinity),
        "batch_policy": reader.optional("batch_policy", BatchPolicy.from_value),
        "controls": Controls.read(reader),
        "inputs": reader.optional("inputs", fields.many(fields.nested(TensorSpec.read), 64)) or (),
        "outputs": reader.optional("outputs", fields.many(fields.nested(TensorSpec.read), 64)) or (),
        "capabilities": reader.optional("capabilities", fields.nested(Capabilities.of)) or Capabilities(),
        "variant": reader.optional("variant", fields.nested(Variant.read)),
        "waivers": reader.optional("waivers", read_waivers) or (),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One variant of one release, as its author signed it. See the design, section 3."""

    registry: str
    publisher: str
    created: str
    name: PluginName
    version: Version
    type: PluginType
    summary: str
    license: str
    entry: str
    seedance_version: Range
    requires: Requires = Requires()
    device_affinity: tuple[Device, ...] | None = None
    batch_policy: BatchPolicy | None = None
    controls: Controls = Controls()
    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()
    capabilities: Capabilities = Capabilities()
    variant: Variant | None = None
    waivers: tuple[tuple[str, str], ...] = ()
    files: tuple[FileEntry, ...] = field(default=())

    @property
    def release(self) -> str:
        """The version, with the variant's tag where the release has variants: `1.0.0+linux-x86_64`."""
        return f"{self.version}+{self.variant.tag}" if self.variant else str(self.version)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Manifest":
        """Read the bytes of a `manifest.json` whose signature has been verified.

        Raises: TooBig beyond 1 MiB; NotCanonical unless the bytes are RFC 8785; TypeMismatch listing every problem.
        """
        return cls.from_dict(parse_strict(data, what="the manifest", max_bytes=MAX_MANIFEST_BYTES))

    @classmethod
    def from_dict(cls, value: Any) -> "Manifest":
        with fields.document("the manifest") as problems:
            reader = Fields(value, "", problems)
            reader.required("_type", fields.one_of(MANIFEST_TYPE))
            manifest = cls(
                registry=reader.required("registry", fields.matching(REGISTRY_ID, "a registry id")),
                publisher=reader.required("publisher", parse_name),
                created=reader.required("created", fields.moment),
                files=reader.required("files", fields.many(fields.nested(FileEntry.read), MAX_FILES)),
                **read_shared(reader),
            )
            reader.close()
            if not problems:
                problems.extend((*_table_problems(manifest.files), *_twin_problems(manifest)))
        return manifest

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "_type": MANIFEST_TYPE,
            "registry": self.registry,
            "publisher": self.publisher,
            "created": self.created,
            "name": self.name,
            "version": self.version.text,
            "type": self.type.value,
            "summary": self.summary,
            "license": self.license,
            "entry": self.entry,
            "seedance_version": self.seedance_version.text,
            "requires": self.requires.to_dict(),
            "inputs": [spec.to_dict() for spec in self.inputs],
            "outputs": [spec.to_dict() for spec in self.outputs],
            "capabilities": self.capabilities.to_dict(),
            "files": [entry.to_dict() for entry in self.files],
        }
        return value | self.controls.to_dict() | self._spoken_of()

    def _spoken_of(self) -> dict[str, Any]:
        """Return the members that are left out where the author did not speak of them."""
        value: dict[str, Any] = {}
        if self.device_affinity is not None:
            value["device_affinity"] = [str(device) for device in self.device_affinity]
        if self.batch_policy is not None:
            value["batch_policy"] = self.batch_policy.to_value()
        if self.variant is not None:
            value["variant"] = self.variant.to_dict()
        if self.waivers:
            value["waivers"] = dict(self.waivers)
        return value

    def to_bytes(self) -> bytes:
        """Return the RFC 8785 bytes: the form that is signed, stored and served."""
        return canonical_bytes(self.to_dict())


def _table_problems(files: tuple[FileEntry, ...]) -> list[str]:
    paths = [entry.path for entry in files]
    if not paths:
        return ["`files` is empty"]
    if paths != sorted(paths):
        return ["`files` is not sorted by path"]
    try:
        check_distinct(paths)
    except SpmError as error:
        return [error.message]
    return []


def _twin_problems(manifest: Manifest) -> list[str]:
    """Find names that would mean two things: a tensor's name used twice, the plugin as its own requirement."""
    problems = [
        f"`{member}` has the name `{name}` twice"
        for member, specs in (("inputs", manifest.inputs), ("outputs", manifest.outputs))
        for name, count in Counter(spec.name for spec in specs).items()
        if count > 1
    ]
    if manifest.name in dict(manifest.requires.plugins):
        problems.append("`requires.plugins` names the plugin itself")
    return problems

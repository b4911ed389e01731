"""A plugin's shard of the index: every release of one plugin, newest last. Only `yanked` may ever change."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from manifests import fields
from manifests.batching import BatchPolicy
from manifests.canonical import canonical_bytes, parse_strict
from manifests.devices import Device
from manifests.errors import NotFound, UsageError, VersionExists
from manifests.fields import Fields
from manifests.manifest import MAX_MANIFEST_BYTES, Manifest
from manifests.names import REGISTRY_ID, PluginName, parse_name
from manifests.parts import MAX_FILE_BYTES, PluginType, Requires, Variant, read_affinity, read_batch_policy
from manifests.ranges import Range
from manifests.versions import Version

SHARD_TYPE = "spm.index/1"
MAX_SHARD_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantEntry:
    """One build of a release: what it is for, the digest and bytes of its manifest, who signed, bytes of its files."""

    variant: Variant | None
    manifest_sha256: str
    manifest_size: int
    signatures: tuple[str, ...]
    blobs_size: int

    @classmethod
    def of(cls, manifest: Manifest, *, sha256: str, size: int, keyids: Iterable[str]) -> "VariantEntry":
        return cls(
            variant=manifest.variant,
            manifest_sha256=sha256,
            manifest_size=size,
            signatures=tuple(sorted(keyids)),
            blobs_size=manifest.size,
        )

    @classmethod
    def read(cls, reader: Fields) -> "VariantEntry":
        return cls(
            variant=reader.optional("variant", fields.nested(Variant.read)),
            manifest_sha256=reader.required("manifest_sha256", fields.sha256),
            manifest_size=reader.required("manifest_size", fields.whole(1, MAX_MANIFEST_BYTES)),
            signatures=reader.required("signatures", fields.many(fields.sha256, 64)),
            blobs_size=reader.required("blobs_size", fields.whole(0, MAX_FILE_BYTES)),
        )

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "manifest_sha256": self.manifest_sha256,
            "manifest_size": self.manifest_size,
            "signatures": list(self.signatures),
            "blobs_size": self.blobs_size,
        }
        return value | ({"variant": self.variant.to_dict()} if self.variant else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseEntry:
    """One version of a plugin, as far as resolving needs to know it. `yanked` is the reason, or None.

    `published` is when the registry took it in, by its own clock and on its own word: no author signed that. None of a
    release from before registries stamped them.
    """

    version: Version
    type: PluginType
    seedance_version: Range
    requires: Requires
    variants: tuple[VariantEntry, ...]
    summary: str = ""
    device_affinity: tuple[Device, ...] | None = None
    batch_policy: BatchPolicy | None = None
    published: str | None = None
    yanked: str | None = None

    @classmethod
    def of(cls, manifest: Manifest, variants: tuple[VariantEntry, ...]) -> "ReleaseEntry":
        """Return the entry of a release whose variants share what this manifest says."""
        return cls(
            version=manifest.version,
            type=manifest.type,
            seedance_version=manifest.seedance_version,
            requires=manifest.requires,
            variants=variants,
            summary=manifest.summary,
            device_affinity=manifest.device_affinity,
            batch_policy=manifest.batch_policy,
        )

    @classmethod
    def read(cls, reader: Fields) -> "ReleaseEntry":
        return cls(
            version=reader.required("version", Version.parse),
            type=reader.required("type", lambda value: PluginType(fields.one_of("core", "ext")(value))),
            seedance_version=reader.required("seedance_version", Range.parse),
            requires=reader.required("requires", fields.nested(Requires.read)),
            variants=reader.required("variants", _read_variants),
            summary=reader.optional("summary", fields.text) or "",
            device_affinity=reader.optional("device_affinity", read_affinity),
            batch_policy=reader.optional("batch_policy", read_batch_policy),
            published=reader.optional("published", fields.moment),
            yanked=reader.optional("yanked", fields.text),
        )

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "version": self.version.text,
            "type": self.type.value,
            "seedance_version": self.seedance_version.text,
            "requires": self.requires.to_dict(),
            "variants": [variant.to_dict() for variant in self.variants],
        }
        if self.summary:
            value["summary"] = self.summary
        if self.device_affinity is not None:
            value["device_affinity"] = [str(device) for device in self.device_affinity]
        if self.batch_policy is not None:
            value["batch_policy"] = self.batch_policy.to_value()
        if self.published is not None:
            value["published"] = self.published
        if self.yanked is not None:
            value["yanked"] = self.yanked
        return value


def _read_variants(value: Any) -> tuple[VariantEntry, ...]:
    variants = fields.many(fields.nested(VariantEntry.read), 64)(value)
    tags = [entry.variant.tag.lower() if entry.variant else "" for entry in variants]
    if twins := sorted(tag for tag, count in Counter(tags).items() if count > 1):
        raise UsageError(f"two variants are `{twins[0] or 'any'}`")
    return variants


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The index of one plugin in one registry, releases ordered by version, newest last."""

    registry: str
    name: PluginName
    releases: tuple[ReleaseEntry, ...] = ()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Shard":
        """Read a shard as served.

        Raises: TooBig beyond 32 MiB; NotCanonical; TypeMismatch listing every problem.
        """
        return cls.from_dict(parse_strict(data, what="the index shard", max_bytes=MAX_SHARD_BYTES))

    @classmethod
    def from_dict(cls, value: Any) -> "Shard":
        with fields.document("the index shard") as problems:
            reader = Fields(value, "", problems)
            reader.required("_type", fields.one_of(SHARD_TYPE))
            shard = cls(
                registry=reader.required("registry", fields.matching(REGISTRY_ID, "a registry id")),
                name=reader.required("name", parse_name),
                releases=reader.required("releases", fields.many(fields.nested(ReleaseEntry.read), 65536)),
            )
            reader.close()
            if not problems:
                versions = [release.version for release in shard.releases]
                if any(not older < newer for older, newer in pairwise(versions)):
                    problems.append("`releases` is not ordered by version, newest last, each once")
        return shard

    def to_dict(self) -> dict[str, Any]:
        return {
            "_type": SHARD_TYPE,
            "registry": self.registry,
            "name": self.name,
            "releases": [release.to_dict() for release in self.releases],
        }

    def to_bytes(self) -> bytes:
        return canonical_bytes(self.to_dict())

    def find(self, version: Version) -> ReleaseEntry | None:
        return next((release for release in self.releases if release.version == version), None)

    def with_release(self, entry: ReleaseEntry) -> "Shard":
        """Return the shard with one more release.

        Raises: VersionExists when the version is there, be it only with another `+build`.
        """
        if (other := self.find(entry.version)) is not None:
            raise VersionExists(f"`{self.name}` {other.version} exists; a version can never be replaced")
        releases = sorted((*self.releases, entry), key=lambda release: release.version)
        return replace(self, releases=tuple(releases))

    def with_yanked(self, version: Version, reason: str | None) -> "Shard":
        """Return the shard with a release yanked for a reason, or offered again.

        Raises: NotFound when there is no such release; UsageError when the reason is not plain text.
        """
        if reason is not None:
            fields.text(reason)
        if self.find(version) is None:
            raise NotFound(f"`{self.name}` has no release {version}")
        return replace(
            self,
            releases=tuple(
                replace(release, yanked=reason) if release.version == version else release for release in self.releases
            ),
        )

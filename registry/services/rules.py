"""What may be published: every rule of a release, all broken ones at once. Stores nothing."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from keys.verified import VerifiedManifest
from manifests.index import ReleaseEntry, VariantEntry
from manifests.manifest import Manifest
from manifests.names import confusable_key
from manifests.parts import MAX_FILE_BYTES
from registry.services.policy import Caller, scope_problem
from registry.services.problems import SCOPE, VERSION_EXISTS, Problem
from registry.services.waste import waste_problems
from registry.storage.blobs import Blobs
from registry.storage.records import Records

# What the index says once for a release must be true for each of its variants.
_SHARED = ("summary", "seedance_version", "requires", "device_affinity", "batch_policy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A release that somebody wants to publish: its verified variants, the first speaking for all."""

    variants: tuple[VerifiedManifest, ...]

    @property
    def first(self) -> Manifest:
        """Return the manifest that speaks for the release."""
        return self.variants[0].manifest

    @property
    def name(self) -> str:
        """Return the plugin's name."""
        return self.first.name

    @property
    def version(self) -> str:
        """Return the version, `+build` included."""
        return self.first.version.text

    @property
    def precedence(self) -> str:
        """Return the version without `+build`: what must be unique."""
        return self.version.partition("+")[0]

    @property
    def digests(self) -> frozenset[str]:
        """Return the digests of the manifests."""
        return frozenset(variant.sha256 for variant in self.variants)

    @property
    def fingerprint(self) -> str:
        """Return what names this set of manifests, whatever their order and signatures."""
        return hashlib.sha256("\n".join(sorted(self.digests)).encode()).hexdigest()

    @property
    def sizes(self) -> dict[str, int]:
        """Return the size of each file, by digest."""
        return {entry.sha256: entry.size for variant in self.variants for entry in variant.manifest.files}

    def entry(self, *, published: str) -> ReleaseEntry:
        """Return the release as the index shows it from the moment on that it is published."""
        entry = ReleaseEntry.of(self.first, tuple(_variant_entry(variant) for variant in self.variants))
        return replace(entry, published=published)


def _variant_entry(variant: VerifiedManifest) -> VariantEntry:
    return VariantEntry.of(variant.manifest, sha256=variant.sha256, size=len(variant.data), keyids=variant.keyids)


def is_published(records: Records, candidate: Candidate) -> bool:
    """Tell whether exactly these manifests are this release already."""
    return records.manifest_digests(candidate.name, candidate.version) == candidate.digests


def problems_of(candidate: Candidate, *, records: Records, blobs: Blobs, caller: Caller) -> tuple[Problem, ...]:
    """Return everything that stands against publishing a candidate."""
    manifests = tuple(variant.manifest for variant in candidate.variants)
    return (
        *scope_problems(candidate, records, caller),
        *_identity(manifests),
        *_variants(manifests),
        *_name(candidate, records),
        *_version(candidate, records),
        *_sizes(manifests, blobs),
        *waste_problems(manifests),
    )


def scope_problems(candidate: Candidate, records: Records, caller: Caller) -> Iterable[Problem]:
    """Return what keeps this caller from publishing under this name, whatever the release is like."""
    message = scope_problem(caller, candidate.name, records.owners(candidate.name))
    if message is not None:
        yield Problem(reason=SCOPE, message=message)


def _identity(manifests: tuple[Manifest, ...]) -> Iterable[Problem]:
    identities = {f"{each.name} {each.version} ({each.type})" for each in manifests}
    if len(identities) > 1:
        listed = ", ".join(sorted(identities))
        yield Problem(
            reason="mix", message=f"all manifests of a publish must be of one release, and these are {listed}"
        )


def _variants(manifests: tuple[Manifest, ...]) -> Iterable[Problem]:
    for release, count in sorted(Counter(manifest.release for manifest in manifests).items()):
        if count > 1:
            yield Problem(reason="variant-twin", message=f"{count} manifests are the same variant, `{release}`")
    for member in _SHARED:
        if any(getattr(manifest, member) != getattr(manifests[0], member) for manifest in manifests):
            yield Problem(
                reason="variants-differ",
                message=f"`{member}` must be the same in all variants of a release, since the index says it once",
            )


def _name(candidate: Candidate, records: Records) -> Iterable[Problem]:
    twin = records.plugin_by_confusable(confusable_key(candidate.name))
    if twin is None:
        return
    if twin.name != candidate.name:
        yield Problem(
            reason="confusable", message=f"`{candidate.name}` could be taken for `{twin.name}`, which is published here"
        )
    elif twin.type != candidate.first.type:
        yield Problem(
            reason="class-changed",
            message=f"`{candidate.name}` {candidate.version} is of the class {candidate.first.type}, "
            f"and its earlier releases are of the class {twin.type}",
        )


def _version(candidate: Candidate, records: Records) -> Iterable[Problem]:
    twin = records.release_by_precedence(candidate.name, candidate.precedence)
    if twin is None:
        return
    if twin.version == candidate.version:
        message = f"`{candidate.name}` {candidate.version} is published here with other bytes"
        yield Problem(reason=VERSION_EXISTS, message=message)
    else:
        message = f"`{candidate.name}` {candidate.version} differs only in its build part from {twin.version}"
        yield Problem(reason="build-twin", message=f"{message}, which is published here")


def _sizes(manifests: tuple[Manifest, ...], blobs: Blobs) -> Iterable[Problem]:
    declared: dict[str, int] = {}
    for manifest in manifests:
        if manifest.size > MAX_FILE_BYTES:
            message = f"`{manifest.release}` has {manifest.size} bytes of files, more than the {MAX_FILE_BYTES} allowed"
            yield Problem(reason="too-big", message=message)
        for entry in manifest.files:
            known = declared.setdefault(entry.sha256, _known_size(blobs, entry.sha256, entry.size))
            if entry.size != known:
                message = f"`{entry.path}` (sha256:{entry.sha256}) cannot have {entry.size} bytes: it has {known}"
                yield Problem(reason="size", message=message)


def _known_size(blobs: Blobs, sha256: str, otherwise: int) -> int:
    size = blobs.size(sha256)
    return otherwise if size is None else size

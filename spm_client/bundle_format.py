"""The form of a bundle file: what stands where, as a value. Reads no file, and believes no more than where things lie.

spm bundle 1 LF
the header's length in bytes, eight digits LF
the header, canonical JSON
the parts of the signed index, in the header's order
for each release, in the header's order: its manifest, then its signature files
the blobs, in the order of the manifests and their files, each once
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from keys.root_keyring import MAX_KEYRING_BYTES
from keys.trust_folder import MAX_BYTES, MAX_TARGETS_BYTES
from keys.verified import JWS_FILE, MAX_SIGNATURES
from manifests.canonical import canonical_bytes, parse_strict
from manifests.errors import FileSetMismatch, NotCanonical, SizeMismatch, TooBig, TypeMismatch, UsageError
from manifests.fields import Fields, document, many, matching, nested, one_of, sha256, whole
from manifests.index import MAX_SHARD_BYTES
from manifests.manifest import MAX_MANIFEST_BYTES
from manifests.names import REGISTRY_ID
from spm_client.adapters.index import MAX_SHARDS, MAX_SIGNATURE, MAX_TOKEN
from spm_client.resolve.requirement import ANY, Requirement, parse_spec

BUNDLE_TYPE = "spm.bundle/1"
MAGIC = b"spm bundle 1\n"
MAX_HEADER_BYTES = 4 << 20
PREAMBLE = len(MAGIC) + 9
MAX_PARTS = 32_768
_HEADER = "the bundle's header"
_NAME = r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?"
_VERSION = r"[1-9][0-9]{0,9}"
_KINDS = tuple(
    (re.compile(pattern), limit)
    for pattern, limit in (
        (rf"({_VERSION})\.root\.json", MAX_BYTES["root"]),
        (r"timestamp\.json", MAX_BYTES["timestamp"]),
        (rf"{_VERSION}\.snapshot\.json", MAX_BYTES["snapshot"]),
        (rf"{_VERSION}\.targets\.json", MAX_TARGETS_BYTES),
        (rf"{_VERSION}\.bin-[0-9a-f]{{1,4}}\.json", MAX_TARGETS_BYTES),
        (r"targets/[0-9a-f]{64}\.keyring\.json", MAX_KEYRING_BYTES),
        (rf"targets/index/[0-9a-f]{{64}}\.({_NAME})\.json", MAX_SHARD_BYTES),
    )
)
_ROOT, _SHARD = 0, 6
_SIZE = whole(1, (1 << 53) - 1)
_part_path = matching("|".join(pattern.pattern for pattern, _ in _KINDS), "the path of a part of a bundle")
_signature_name = matching(r"manifest\.jws|manifest\.sig\.[0-9a-f]{64}", "the name of a signature file")
_ONCE = {1: "timestamp", 2: "snapshot", 3: "targets", 5: "keyring"}


@dataclass(frozen=True, slots=True)
class Extent:
    """Where something lies in the file."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        return self.offset + self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A file of the signed index, by its path below `/v1/tuf/`."""

    path: str
    size: int

    @classmethod
    def read(cls, reader: Fields) -> "Part":
        return cls(path=reader.required("path", _part_path), size=reader.required("size", _SIZE))

    @property
    def kind(self) -> int:
        return next(place for place, (pattern, _) in enumerate(_KINDS) if pattern.fullmatch(self.path))

    @property
    def limit(self) -> int:
        return _KINDS[self.kind][1]

    @property
    def root_version(self) -> int | None:
        return int(self.path.partition(".")[0]) if self.kind == _ROOT else None

    @property
    def plugin(self) -> str | None:
        """Return whose shard it is, if it is one."""
        found = _KINDS[_SHARD][0].fullmatch(self.path)
        return found[1] if found else None

    @property
    def order(self) -> tuple[int, int, str]:
        return self.kind, self.root_version or 0, self.path

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "size": self.size}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureFile:
    """A signature file beside a manifest."""

    name: str
    size: int

    @classmethod
    def read(cls, reader: Fields) -> "SignatureFile":
        return cls(name=reader.required("name", _signature_name), size=reader.required("size", _SIZE))

    @property
    def limit(self) -> int:
        return MAX_TOKEN if self.name == JWS_FILE else MAX_SIGNATURE

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size}


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledRelease:
    """A manifest by its digest, and the signature files beside it."""

    manifest_sha256: str
    size: int
    signatures: tuple[SignatureFile, ...]

    @classmethod
    def read(cls, reader: Fields) -> "BundledRelease":
        return cls(
            manifest_sha256=reader.required("manifest", sha256),
            size=reader.required("size", _SIZE),
            signatures=reader.required("signatures", many(nested(SignatureFile.read), MAX_SIGNATURES)),
        )

    def to_dict(self) -> dict[str, Any]:
        signatures = [file.to_dict() for file in self.signatures]
        return {"manifest": self.manifest_sha256, "size": self.size, "signatures": signatures}

    @property
    def path(self) -> str:
        return f"/v1/manifests/{self.manifest_sha256}"


def spec_text(requirement: Requirement) -> str:
    """Return the one spelling that a header has of a requirement."""
    wanted = requirement.range.text
    if wanted == ANY.text:
        return requirement.name
    return f"{requirement.name}{'' if wanted[0] in '<>=!' else '@'}{wanted}"


def _asked(value: Any) -> str:
    text = matching(r"[ -~]+", "a plugin specifier")(value)
    if spec_text(parse_spec(text)) != text:
        raise UsageError(f"{text[:80]!r} is not how a bundle writes a plugin specifier")
    return text


def _require_sorted(found: list[str], what: str) -> None:
    if twice := [one for one, count in Counter(found).items() if count > 1]:
        raise FileSetMismatch(f"{twice[0][:160]!r} stands twice in the bundle's header, among {what}")
    if found != sorted(found):
        raise NotCanonical(f"{what} are not in order in the bundle's header")


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleHeader:
    """What a bundle says of itself. Nobody signed it: it tells where to look, and what whoever exported asked for."""

    registry: str
    asked: tuple[str, ...]
    parts: tuple[Part, ...]
    releases: tuple[BundledRelease, ...]

    @classmethod
    def from_bytes(cls, data: bytes) -> "BundleHeader":
        """Read a header.

        Raises: TooBig; NotCanonical for another spelling or order; TypeMismatch listing every problem; FileSetMismatch
        for what stands twice or is not there.
        """
        value = parse_strict(data, what=_HEADER, max_bytes=MAX_HEADER_BYTES)
        with document(_HEADER) as problems:
            reader = Fields(value, "", problems)
            reader.required("_type", one_of(BUNDLE_TYPE))
            header = cls(
                registry=reader.required("registry", matching(REGISTRY_ID, "a registry id")),
                asked=reader.required("asked", many(_asked, MAX_SHARDS)),
                parts=reader.required("parts", many(nested(Part.read), MAX_PARTS)),
                releases=reader.required("releases", many(nested(BundledRelease.read), MAX_SHARDS)),
            )
            reader.close()
        header.require_whole()
        return header

    def to_bytes(self) -> bytes:
        """Return the file up to the end of the header: the magic line, the header's length, the header."""
        self.require_whole()
        data = canonical_bytes(
            {
                "_type": BUNDLE_TYPE,
                "registry": self.registry,
                "asked": list(self.asked),
                "parts": [part.to_dict() for part in self.parts],
                "releases": [release.to_dict() for release in self.releases],
            }
        )
        if len(data) > MAX_HEADER_BYTES:
            raise TooBig(f"{_HEADER} has {len(data)} bytes, more than the {MAX_HEADER_BYTES} allowed")
        return MAGIC + f"{len(data):08d}\n".encode() + data

    @property
    def plugins(self) -> tuple[str, ...]:
        """Return the plugins whose shards the bundle carries."""
        return tuple(name for part in self.parts if (name := part.plugin) is not None)

    @property
    def roots(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.kind == _ROOT)

    def documents(self, start: int) -> Iterator[tuple[str, Extent]]:
        """Yield where all but the blobs lies, by a registry's paths, in a file whose header ends at `start`."""
        for path, size, _ in self._sizes():
            yield path, Extent(start, size)
            start += size

    def _sizes(self) -> Iterator[tuple[str, int, int]]:
        """Yield path, size and the size allowed of all but the blobs, in the order of the file."""
        for part in self.parts:
            yield f"/v1/tuf/{part.path}", part.size, part.limit
        for release in self.releases:
            yield release.path, release.size, MAX_MANIFEST_BYTES
            for file in release.signatures:
                yield f"{release.path}/{file.name}", file.size, file.limit

    def require_whole(self) -> None:
        """Hold the header to what every bundle has: one of each, all in order, the roots without a gap.

        Raises: TooBig, NotCanonical, FileSetMismatch.
        """
        for path, size, limit in self._sizes():
            if size > limit:
                raise TooBig(f"the bundle says that `{path}` has {size} bytes, more than the {limit} allowed")
        if not self.asked or not self.releases:
            raise FileSetMismatch("the bundle carries no release")
        _require_sorted(list(self.asked), "what was asked for")
        _require_sorted([release.manifest_sha256 for release in self.releases], "the manifests")
        for release in self.releases:
            _require_sorted([file.name for file in release.signatures], "the signature files of a release")
        self._require_parts()

    def _require_parts(self) -> None:
        if len({part.path for part in self.parts}) != len(self.parts):
            _require_sorted([part.path for part in self.parts], "the parts")
        if any(not before.order < after.order for before, after in pairwise(self.parts)):
            raise NotCanonical("the parts are not in order in the bundle's header")
        counts = Counter(part.kind for part in self.parts)
        for kind, name in _ONCE.items():
            if counts[kind] != 1:
                raise FileSetMismatch(f"the bundle carries {counts[kind]} files `{name}.json` of the index, not one")
        versions = [part.root_version or 0 for part in self.roots]
        if not versions or versions != list(range(versions[0], versions[0] + len(versions))):
            raise FileSetMismatch(f"the bundle carries the roots {versions[:8]}, which are no chain")
        if twice := [name for name, count in Counter(self.plugins).items() if count > 1]:
            raise FileSetMismatch(f"the bundle carries two indexes of `{twice[0]}`")


def header_size(preamble: bytes) -> int:
    """Return the header's length, told in the file's first bytes.

    Raises: TypeMismatch where they are not a bundle's; SizeMismatch where they are cut; TooBig.
    """
    if not preamble.startswith(MAGIC[: len(preamble)]) or not preamble:
        raise TypeMismatch("it is no bundle: a bundle begins with the line `spm bundle 1`")
    if len(preamble) < PREAMBLE:
        raise SizeMismatch(f"the bundle is cut: it ends after {len(preamble)} bytes, within its first lines")
    told = preamble[len(MAGIC) :]
    if not re.fullmatch(rb"[0-9]{8}\n", told):
        raise TypeMismatch("the bundle's second line is not the length of a header in eight digits")
    if (size := int(told)) > MAX_HEADER_BYTES:
        raise TooBig(f"{_HEADER} has {size} bytes, more than the {MAX_HEADER_BYTES} allowed")
    return size

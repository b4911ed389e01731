"""Proving a bundle: all that an install would verify, and that the file holds just that. Changes nothing in the store.

1. It is of the registry that loader.conf names.
2. Its index by itself, from a root that this host trusts: each part is needed, and none is missing.
3. Its index against what this host remembers: not older, not another; revocations of both count.
4. Each manifest by its author's signature, as the index lists it.
5. The releases are what was asked for and what they require, each plugin once.
6. From the manifests follows where each blob lies, and where the file ends.
Blobs are held to their digests whenever they are read.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from keys.bundle_clock import online_time
from keys.keyring import LoaderConf
from keys.trust import open_trust
from keys.trust_state import TrustState, read_trust_state, require_own
from keys.verified import VerifiedManifest
from manifests.errors import FileSetMismatch, IndexExpired, Mix, SizeMismatch
from manifests.index import MAX_SHARD_BYTES, ReleaseEntry, VariantEntry
from manifests.names import PluginName
from manifests.versions import Version
from spm_client.adapters.bundle import BundledBlob, BundleFile, BundleSource
from spm_client.adapters.index import RegistryIndex
from spm_client.adapters.trust_fetch import TrustFetch
from spm_client.bundle_format import Extent
from spm_client.resolve import Requirement, parse_spec
from spm_client.store.layout import Layout
from spm_client.workflows.bundle_shards import BundledShards
from spm_client.workflows.fetch_manifests import fetch_verified
from spm_client.workflows.trust import TrustSession, refreshed

_TIMESTAMP = "/v1/tuf/timestamp.json"
_OTHER = "it is of another registry, or was altered; or loader.conf is older than the file: get it anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """One release in a bundle, proven. `newest` is the newest that the same index offers."""

    verified: VerifiedManifest
    listed: ReleaseEntry
    newest: Version

    @property
    def name(self) -> PluginName:
        return self.verified.manifest.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedBundle:
    """A bundle whose index and manifests are proven, and the source of its blobs."""

    path: Path
    registry: str
    asked: tuple[Requirement, ...]
    carried: tuple[Carried, ...]
    size: int
    trust: TrustSession
    index: RegistryIndex
    source: BundleSource
    blobs: Mapping[str, BundledBlob]


def check_bundle(
    bundle: BundleFile, layout: Layout, conf: LoaderConf, *, scratch: Path, now: datetime
) -> CheckedBundle:
    """Prove a bundle by the steps above, in `scratch`.

    Raises: the refusals of the signed metadata and of manifests, as from a registry; ContentError.
    """
    conf.require_root()
    _require_registry(bundle, conf)
    source = BundleSource(bundle)
    timestamp = bundle.read(bundle.documents[_TIMESTAMP])
    online_now = online_time(timestamp, conf.bundle_max_age_days, now)
    with _grace(layout, conf):
        _prove_alone(bundle, layout, conf, scratch / "alone", now, online_now)
        trust = refreshed(layout, conf, source, scratch=scratch, now=now, online_now=online_now)
        index = RegistryIndex(
            source, BundledShards(trust, layout, bundle.header.plugins, conf.registry_id), conf.registry_id
        )
        carried = _manifests(bundle, source, index, trust)
    asked = tuple(parse_spec(text, source="the bundle") for text in bundle.header.asked)
    _require_closed(asked, carried)
    blobs = _blobs(bundle, carried)
    return CheckedBundle(
        path=bundle.path,
        registry=conf.registry_id,
        asked=asked,
        carried=tuple(sorted(carried, key=lambda one: one.name)),
        size=bundle.size,
        trust=trust,
        index=index,
        source=BundleSource(bundle, blobs),
        blobs=blobs,
    )


def _require_registry(bundle: BundleFile, conf: LoaderConf) -> None:
    if bundle.header.registry != conf.registry_id:
        raise Mix(
            f"the bundle `{bundle.path}` is of the registry `{bundle.header.registry}`, "
            f"loader.conf names `{conf.registry_id}`",
            hint="use a store of that registry (`--root DIR`), or export from the registry that this one trusts",
            found=bundle.header.registry,
            expected=conf.registry_id,
        )


def _prove_alone(
    bundle: BundleFile, layout: Layout, conf: LoaderConf, folder: Path, now: datetime, online_now: datetime
) -> None:
    """Walk the bundle's own index from the first root that is trusted here, with nothing but what the bundle has."""
    source = BundleSource(bundle)
    start = _start(bundle, conf, read_trust_state(layout.root))
    folder.mkdir(mode=0o700)
    fetch = TrustFetch(source, None, lambda path: None)
    index = open_trust(folder, conf, start, fetch, now, online_now=online_now)
    index.refresh()
    index.keyring()
    for name in bundle.header.plugins:
        index.target(f"index/{name}.json", MAX_SHARD_BYTES)
    roots = {f"/v1/tuf/{part.path}" for part in bundle.header.roots if (part.root_version or 0) <= start.root_version}
    _require_asked(bundle, source.asked | roots, "/v1/tuf/")


def _start(bundle: BundleFile, conf: LoaderConf, held: TrustState | None) -> TrustState:
    """Return the root to begin with: the oldest in the bundle that this host has pinned or has come to trust.

    Raises: Mix where there is none.
    """
    pin = conf.require_root().sha256
    if held is not None:
        require_own(held, conf)
    trusted = {pin, *(hashlib.sha256(root.encode()).hexdigest() for root in (held.roots if held else ()))}
    for part in bundle.header.roots:
        data = bundle.read(bundle.documents[f"/v1/tuf/{part.path}"])
        if hashlib.sha256(data).hexdigest() in trusted:
            return TrustState(registry=conf.registry_id, root_sha256=pin, roots=(data.decode(),))
    raise Mix(
        f"the bundle `{bundle.path}` has no root with the digest sha256:{pin}, which loader.conf pins",
        hint=_OTHER,
        expected=pin,
    )


@contextmanager
def _grace(layout: Layout, conf: LoaderConf) -> Iterator[None]:
    """Say of an expired index what lets a bundle in all the same."""
    try:
        yield
    except IndexExpired as error:
        if error.context["role"] == "targets":
            raise  # root keys signed it, and nothing stretches their word
        raise _too_old(error, layout, conf) from error


def _too_old(error: IndexExpired, layout: Layout, conf: LoaderConf) -> IndexExpired:
    role, expires, now = error.context["role"], error.context["expires"], error.context["now"]
    allowed = conf.bundle_max_age_days
    late = datetime.fromisoformat(now) - datetime.fromisoformat(expires)
    days = max(late // timedelta(days=1) + 1, allowed + 1)
    beyond = f", more than the {allowed} days later that loader.conf allows" if allowed else ""
    return IndexExpired(
        f"the bundle's `{role}` expired at {expires}, and this host's clock says {now}{beyond}: "
        "either it was long on its way, or the clock is wrong",
        hint=f"export it anew; or write `[bundle]` with `max_age_days = {days}` into {layout.conf}, "
        "which lets bundles in that long after their expiry",
        role=role,
        expires=expires,
        now=now,
        max_age_days=allowed,
    )


def _manifests(bundle: BundleFile, source: BundleSource, index: RegistryIndex, trust: TrustSession) -> list[Carried]:
    """Return every release of the bundle in the file's order, verified as an install verifies it."""
    listed = dict(_listed(bundle, index))
    carried = []
    for release in bundle.header.releases:
        if release.manifest_sha256 not in listed:
            raise FileSetMismatch(
                f"the bundle `{bundle.path}` carries the manifest sha256:{release.manifest_sha256}, "
                "which no index in it lists",
                path=release.path,
            )
        name, entry, variant = listed[release.manifest_sha256]
        verified = fetch_verified(index, trust.conf, name, entry, variant)
        offered = [one.version for one in index.releases(name) if one.yanked is None and not one.version.is_prerelease]
        carried.append(Carried(verified=verified, listed=entry, newest=max((entry.version, *offered))))
    _require_asked(bundle, source.asked, "/v1/manifests/")
    return carried


def _listed(
    bundle: BundleFile, index: RegistryIndex
) -> Iterator[tuple[str, tuple[PluginName, ReleaseEntry, VariantEntry]]]:
    for name in map(PluginName, bundle.header.plugins):
        for entry in index.releases(name):
            for variant in entry.variants:
                yield variant.manifest_sha256, (name, entry, variant)


def _require_asked(bundle: BundleFile, asked: set[str], below: str) -> None:
    """Refuse what nobody needed: nothing would say whether it is what it seems."""
    for path in bundle.documents:
        if path.startswith(below) and path not in asked:
            raise FileSetMismatch(f"the bundle `{bundle.path}` carries `{path}`, which nothing in it needs", path=path)


def _require_closed(asked: tuple[Requirement, ...], carried: list[Carried]) -> None:
    """Hold the releases to what was asked for: all that is required is there, once, and no more."""
    by_name = {one.name: one.verified.manifest for one in carried}
    if len(by_name) != len(carried):
        raise FileSetMismatch("the bundle carries two releases of one plugin")
    wanted = list(asked)
    reached = set()
    for wish in wanted:
        manifest = by_name.get(wish.name)
        if manifest is None or not wish.range.contains(manifest.version, pre=True):
            has = f"carries {manifest.version}" if manifest else "does not carry it"
            raise FileSetMismatch(f"{wish.source} asks for {wish}, but the bundle {has}", plugin=wish.name)
        if wish.name not in reached:
            reached.add(wish.name)
            source = f"`{manifest.name}` {manifest.version}"
            wanted += [
                Requirement(name=name, range=wanted_range, source=source)
                for name, wanted_range in manifest.requires.plugins
            ]
    if idle := sorted(by_name.keys() - reached):
        raise FileSetMismatch(f"the bundle carries `{idle[0]}`, which nothing in it asks for", plugin=idle[0])


def _blobs(bundle: BundleFile, carried: list[Carried]) -> dict[str, BundledBlob]:
    """Return where each blob lies: behind the signatures, in the manifests' order, each once.

    Raises: SizeMismatch where two manifests speak of one blob with two sizes, or the file ends elsewhere.
    """
    found: dict[str, BundledBlob] = {}
    end = bundle.documents_end
    for manifest in (one.verified.manifest for one in carried):
        for entry in manifest.files:
            known = found.setdefault(
                entry.sha256, BundledBlob(extent=Extent(end, entry.size), manifest=manifest, entry=entry)
            )
            if known.entry.size != entry.size:
                raise SizeMismatch(
                    f"`{entry.path}` of `{manifest.name}` {manifest.version} and `{known.entry.path}` of "
                    f"`{known.manifest.name}` {known.manifest.version} are said to be the same, "
                    f"but to have {entry.size} and {known.entry.size} bytes"
                )
            end = max(end, known.extent.end)
    bundle.require_end(end)
    return found

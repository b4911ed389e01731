"""What is installed, read from the store and proven again at every load. Changes nothing on disk."""

import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NewType

from keys.keyring import LoaderConf
from keys.trust_state import TrustState, trusted_keyring
from keys.verified import (
    JWS_FILE,
    MAX_MANIFEST_BYTES,
    SIGNATURE_FILE_PREFIX,
    Expected,
    FetchedManifest,
    InstalledPlugin,
    VerifiedManifest,
    verify_manifest,
    verify_tree,
)
from manifests.errors import (
    FileSetMismatch,
    KeyRefused,
    NotFound,
    Revoked,
    SignatureRefused,
    SpmError,
    TooBig,
)
from manifests.lockfile import Generation, InstalledEntry
from runtime.generation import current_generation, read_bounded
from runtime.guard import require_guarded, require_guarded_trust
from runtime.receipts import known_files
from runtime.registries import of_registry, read_registry, registry_root

TrustedConf = NewType("TrustedConf", LoaderConf)
"""A loader.conf whose keyring is merged with the one that the registry's root keys signed, revocations included."""

_MAX_SIGNATURE_BYTES = 2 << 20
_MAX_FILES = 128


def trusted_conf(root: Path, conf: LoaderConf, now: datetime) -> TrustedConf:
    """Return what the store may trust now, by what it remembers of its registry; asks no registry.

    Raises: Undecided where it remembers nothing; FreshnessError where that is older than loader.conf allows;
    ConfigPermissions where others may change it.
    """
    conf.require_root()
    require_guarded_trust(root)
    return TrustedConf(replace(conf, keyring=trusted_keyring(root, conf, now)))


def trusted_by(state: TrustState, conf: LoaderConf) -> TrustedConf:
    """Return what may be trusted by a state that has just been refreshed."""
    return TrustedConf(replace(conf, keyring=conf.keyring.merged(state.root_keyring().keyring)))


class StoreTrust:
    """What a store may trust at one moment: for each plugin what its own registry vouches for, and no other.

    Each registry is read when a plugin of it is first met. Usage: `read_manifest(root, entry, trust.of(entry))`.
    """

    def __init__(self, root: Path, conf: LoaderConf, now: datetime) -> None:
        self._root = root
        self._conf = conf
        self._now = now
        self._trusted: dict[str | None, TrustedConf] = {}

    def of(self, entry: InstalledEntry) -> TrustedConf:
        """Return what may vouch for this plugin.

        Raises: as `trusted_conf` and `read_registry`, of the plugin's registry alone.
        """
        return self.of_registry(entry.registry)

    def of_registry(self, registry: str | None) -> TrustedConf:
        """Return what may vouch for the plugins of a registry; None names the store's own.

        Raises: as `of`.
        """
        other = None if registry == self._conf.registry_id else registry
        if other not in self._trusted:
            with of_registry(other):
                conf = self._conf if other is None else read_registry(self._root, self._conf, other)
                self._trusted[other] = trusted_conf(registry_root(self._root, other), conf, self._now)
        return self._trusted[other]


def find_entry(root: Path, generation: Generation, name: str) -> InstalledEntry:
    """Return what the generation says of a plugin.

    Raises: NotFound.
    """
    entry = generation.find(name)
    if entry is None:
        raise NotFound(
            f"`{name}` is not installed in {root}",
            hint=f"install it: `spm install {name}`",
            plugin=name,
            root=str(root),
        )
    return entry


def dependencies(generation: Generation, name: str) -> tuple[InstalledEntry, ...]:
    """Return all that the named plugin requires, directly or not, nearest first."""
    return generation.closure(name)[1:]


def open_installed(root: Path, name: str, conf: TrustedConf) -> InstalledPlugin:
    """Return a plugin of the current generation, its signature and its whole tree verified now.

    Raises: NotFound; what `verify_manifest` and `verify_tree` raise.
    """
    return open_entry(root, find_entry(root, current_generation(root), name), conf)


def open_entry(root: Path, entry: InstalledEntry, conf: TrustedConf) -> InstalledPlugin:
    """Return the plugin that an entry names, its signature and its whole tree verified now.

    Beyond `full_hash_bytes` of loader.conf, big files that a receipt of the store covers are not read again.
    Raises: ConfigPermissions when others could change it afterwards; what `verify_manifest` and `verify_tree` raise.
    """
    require_guarded(root, entry)
    verified = read_manifest(root, entry, conf)
    known = known_files(root, verified, conf.full_hash_bytes)
    return verify_tree(verified, root / "plugins" / entry.name / entry.release, known=known)


def read_manifest(root: Path, entry: InstalledEntry, conf: TrustedConf) -> VerifiedManifest:
    """Return the manifest that an entry names, its signature verified now. Looks at no tree."""
    expected = Expected(
        registry=conf.registry_id,
        name=entry.name,
        version=entry.version,
        manifest_sha256=entry.manifest_sha256,
        variant_tag=_variant_tag(entry),
        type=entry.type,
    )
    return verify_manifest(_fetch(root / "manifests" / entry.manifest_sha256), conf.keyring, expected)


def no_longer_trusted(root: Path, entry: InstalledEntry, conf: TrustedConf) -> SpmError | None:
    """Return why the signatures of what is installed count no longer; what is damaged is for `spm verify` to tell."""
    try:
        read_manifest(root, entry, conf)
    except (SignatureRefused, KeyRefused, Revoked) as refusal:
        return refusal
    except SpmError:
        return None
    return None


def _variant_tag(entry: InstalledEntry) -> str | None:
    return entry.release.removeprefix(f"{entry.version}+") if entry.release != str(entry.version) else None


def _fetch(folder: Path) -> FetchedManifest:
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        raise FileSetMismatch(f"{folder} is not there: the store lost a manifest", paths=[str(folder)]) from None
    if len(names) > _MAX_FILES:
        raise TooBig(f"{folder} holds {len(names)} files, more than the {_MAX_FILES} allowed")
    signatures = [name for name in names if name == JWS_FILE or name.startswith(SIGNATURE_FILE_PREFIX)]
    return FetchedManifest(
        data=read_bounded(folder / "manifest.json", MAX_MANIFEST_BYTES),
        signatures={name: read_bounded(folder / name, _MAX_SIGNATURE_BYTES) for name in signatures},
    )

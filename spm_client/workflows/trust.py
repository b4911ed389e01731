"""Trust: what one command learns of its registry's signed metadata, and keeps only if it succeeds. Prints nothing.

1. Read what the store remembers, held against owners and modes.
2. Refresh it once, in scratch; every refusal leaves the store as it was.
3. Give the command the merged keyring, and shards that are verified each time they are asked for.
4. Commit state and cache together with what the command itself commits.
"""

import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from keys.bundle_proof import proof
from keys.keyring import LoaderConf
from keys.trust import TrustedIndex, import_trust, open_trust, state_of
from keys.trust_folder import MAX_TARGETS_BYTES
from keys.trust_state import TrustState, read_trust_state, require_own
from manifests.errors import Undecided
from manifests.index import MAX_SHARD_BYTES
from manifests.lockfile import Generation, InstalledEntry
from manifests.names import PluginName
from runtime.generation import current_generation
from runtime.guard import require_guarded_store
from runtime.installed import TrustedConf, trusted_by
from spm_client.adapters.index import unsaid
from spm_client.adapters.source import Source
from spm_client.adapters.trust_fetch import TrustFetch
from spm_client.store.generations import undisturbed
from spm_client.store.layout import Layout, refusals, write_scratch
from spm_client.store.staging import staging
from spm_client.store.trust_store import cached, committing, held_or_anew

_TARGET = re.compile(r"targets/(?:index/([0-9a-f]{64})\.([a-z0-9-]{1,64})|([0-9a-f]{64})\.keyring)\.json")
_BIN = re.compile(r"bin-[0-9a-f]{1,4}\.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """What a store remembers now, and what it remembered before, if anything."""

    before: TrustState | None
    state: TrustState

    @property
    def is_begun(self) -> bool:
        """Tell whether nothing was held before, or something of another registry or root."""
        held = self.before
        return held is None or held.registry != self.state.registry or self.state.roots[0] not in held.roots


class TrustSession:
    """The registry's signed metadata as it stands now, for one command. Made by `refreshed`."""

    def __init__(
        self,
        layout: Layout,
        conf: LoaderConf,
        index: TrustedIndex,
        fetch: TrustFetch,
        folder: Path,
        before: TrustState | None,
    ) -> None:
        self._layout = layout
        self._index = index
        self._fetch = fetch
        self._folder = folder
        self._shards: dict[PluginName, bytes] = {}
        self._generation: Generation | None = None
        self.before = before
        self.state = state_of(index, conf)
        self.conf: TrustedConf = trusted_by(self.state, conf)

    def prefetch(self, names: Iterable[PluginName], max_bytes: int) -> None:
        """Fetch what `shard` will ask for, several at once, and believe none of it: first bins, then what they list."""
        paths = [_target(name) for name in names]
        self._fetch.ahead(self._index.bins_ahead(paths))
        together = max_bytes - self._fetch.waiting
        self._fetch.ahead(self._index.files_ahead(paths, MAX_SHARD_BYTES, together=together))

    def shard(self, name: PluginName) -> bytes | None:
        """Return a plugin's shard, verified; None where the signed index has no such plugin."""
        data = self._index.target(_target(name), MAX_SHARD_BYTES)
        if data is not None:
            self._shards[name] = data
        return data

    def seen(self, name: PluginName) -> list[bytes]:
        """Return the shards that commands here were given before: what is said no more, then the last one."""
        kept = (cached(self._layout, place, MAX_SHARD_BYTES) for place in (_unsaid_as(name), _kept_as(name)))
        return [data for data in kept if data is not None]

    def installed(self, name: PluginName) -> InstalledEntry | None:
        """Return what is installed of this plugin from this registry."""
        if self._generation is None:
            self._generation = current_generation(self._layout.root)
        entry = self._generation.find(name) if self._generation.registry == self.conf.registry_id else None
        return entry if entry is not None and entry.registry is None else None

    def proof(self) -> dict[str, bytes]:
        """Return by path below `/v1/tuf/` all that proves the shards given so far: metadata, keyring, and they."""
        return proof(self._folder, self.state, {_target(name): data for name, data in self._shards.items()})

    def committing(self, scratch: Path, *, is_anew: bool = False) -> AbstractContextManager[None]:
        """Keep what was learnt if the block succeeds: `with trust.committing(scratch): ...`."""
        return committing(self._layout, self.state, self._learnt(scratch), scratch=scratch, is_anew=is_anew)

    def _learnt(self, scratch: Path) -> dict[str, Path]:
        """Return new files for the cache: the bins that were fetched, and the shards that differ from those kept."""
        bins = {path.name: path for path in self._folder.glob("*.json") if _BIN.fullmatch(path.name)}
        shards: dict[str, bytes] = {}
        for name, data in self._shards.items():
            if data == cached(self._layout, _kept_as(name), MAX_SHARD_BYTES):
                continue  # what is said no more was told apart when this was kept
            no_more, place = unsaid(data, self.seen(name)), _unsaid_as(name)
            # This goes first, so that nothing is forgotten where the second does not come to be.
            if no_more is not None or cached(self._layout, place, MAX_SHARD_BYTES) is not None:
                shards[place] = no_more or b""
            shards[_kept_as(name)] = data
        return {name: path for name, path in bins.items() if not path.is_symlink()} | {
            name: write_scratch(data, scratch=scratch)
            for name, data in shards.items()
            if data != cached(self._layout, name, MAX_SHARD_BYTES)
        }


def refreshed(
    layout: Layout,
    conf: LoaderConf,
    source: Source,
    *,
    scratch: Path,
    now: datetime,
    is_new: bool = False,
    online_now: datetime | None = None,
) -> TrustSession:
    """Bring trust up to date in `scratch`; `is_new` begins anew where loader.conf pins another root than it did.

    `online_now` is for a bundle: see `keys.bundle_clock`.
    Raises: the refusals of the signed metadata and of transport; ConfigError where loader.conf pins no root;
    ConfigPermissions where others may change what the store remembers.
    """
    conf.require_root()
    require_guarded_store(layout.root)
    before = held = held_or_anew(layout, is_anew=is_new)
    if is_new and held is not None:
        held = _grown_from(conf, held)
    folder = _laid_out(layout, scratch)
    timestamp = held.timestamp.encode() if held and held.timestamp else None
    fetch = TrustFetch(source, timestamp, _held_files(layout, held))
    index = open_trust(folder, conf, held, fetch, now, online_now=online_now)
    index.refresh()
    return TrustSession(layout, conf, index, fetch, folder, before)


def update(layout: Layout, conf: LoaderConf, source: Source, *, now: datetime, is_new: bool = False) -> Learnt:
    """Refresh trust and keep it; `is_new` begins anew where loader.conf pins another root than it did.

    Raises: as `refreshed`.
    """
    with refusals(layout.root), staging(layout) as scratch:
        session = refreshed(layout, conf, source, scratch=scratch, now=now, is_new=is_new)
        with undisturbed(), session.committing(scratch, is_anew=is_new):
            pass
    return Learnt(before=session.before, state=session.state)


def import_file(layout: Layout, conf: LoaderConf, data: bytes, *, now: datetime) -> Learnt:
    """Take what root keys signed out of a trust file, and keep it; no registry is asked.

    Raises: the refusals of the file's metadata; Rollback where it is older than what the store remembers.
    """
    conf.require_root()
    require_guarded_store(layout.root)
    before = read_trust_state(layout.root)
    state = import_trust(conf, before, data, now)
    with (
        refusals(layout.root),
        staging(layout) as scratch,
        undisturbed(),
        committing(layout, state, {}, scratch=scratch),
    ):
        pass
    return Learnt(before=before, state=state)


def held_state(layout: Layout, conf: LoaderConf) -> TrustState:
    """Return what the store remembers of the registry that loader.conf pins.

    Raises: Undecided where it remembers nothing; ConfigError where that grew from another root.
    """
    conf.require_root()
    require_guarded_store(layout.root)
    state = read_trust_state(layout.root)
    if state is None:
        raise Undecided(
            f"`{layout.trust}` is empty: this store remembers nothing of the registry `{conf.registry_id}`",
            reason="unknown:revocations",
            hint="`spm trust init` begins from the root that loader.conf pins",
        )
    require_own(state, conf)
    return state


def _grown_from(conf: LoaderConf, held: TrustState) -> TrustState | None:
    """Return what is held as grown from the pinned root, if that is one of those that led to it; else nothing."""
    digests = [hashlib.sha256(root.encode()).hexdigest() for root in held.roots]
    pin = conf.require_root().sha256
    if held.registry != conf.registry_id or pin not in digests:
        return None
    return replace(held, root_sha256=pin, roots=held.roots[digests.index(pin) :])


def _laid_out(layout: Layout, scratch: Path) -> Path:
    """Return a folder for the metadata, in it the bins of the cache; each is verified before it is believed."""
    folder = scratch / "trust"
    folder.mkdir(mode=0o700)
    if layout.trust_cache.is_dir():
        for name in sorted(os.listdir(layout.trust_cache)):
            if _BIN.fullmatch(name) and _is_bin(layout.trust_cache / name):
                (folder / name).symlink_to(layout.trust_cache / name)
    return folder


def _is_bin(path: Path) -> bool:
    """Tell whether the file can be read as one of this store's: no pipe to wait at, no link, no disk's fill."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_TARGETS_BYTES


def _target(name: str) -> str:
    """Return the path of a plugin's shard in the signed index."""
    return f"index/{name}.json"


def _kept_as(name: str) -> str:
    """Return a shard's name in the cache, which no bin has: a plugin may well be called `bin-0`."""
    return f"index.{name}.json"


def _unsaid_as(name: str) -> str:
    return f"unsaid.{name}.json"


def _held_files(layout: Layout, held: TrustState | None) -> Callable[[str], bytes | None]:
    """Return what answers a path that carries a digest, where this host has the very bytes: shards and the keyring."""
    keyring = held.keyring.encode() if held and held.keyring else None

    def find(path: str) -> bytes | None:
        if (asked := _TARGET.fullmatch(path)) is None:
            return None
        data = cached(layout, _kept_as(asked[2]), MAX_SHARD_BYTES) if asked[2] else keyring
        return data if data is not None and hashlib.sha256(data).hexdigest() == (asked[1] or asked[3]) else None

    return find

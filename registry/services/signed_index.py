"""The index under TUF: what the registry signs with its online key, step by step. Signs nothing of the root's.

root and targets come signed from the ceremony. The targets hold the keyring document and hand every shard
`index/<name>.json` to one of many bins by the hash of its path. Each step runs in its caller's transaction:
1. bins whose shards changed, or that are due, are signed anew
2. so is the snapshot, if a file that it lists changed
3. so is the timestamp, which clients ask for first
Versions only go up. What was replaced stays readable for a day, for clients that hold an older timestamp.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from securesystemslib.signer import Signer
from tuf.api.metadata import (
    Metadata,
    MetaFile,
    Root,
    Snapshot,
    SuccinctRoles,
    T,
    TargetFile,
    Targets,
    Timestamp,
)

from keys.root_keyring import KEYRING_TARGET
from manifests.errors import ConfigError
from registry.storage.records import Records
from registry.storage.rows import SignedRow

BIN_PREFIX = "bin"
KEPT_SECONDS = 86_400
_DAY = 86_400
# Signed offline, by the ceremony.
ROOT_SECONDS = 365 * _DAY
TARGETS_SECONDS = 365 * _DAY
# Signed online; each is renewed once it has lived half of this.
BIN_SECONDS = 90 * _DAY
SNAPSHOT_SECONDS = 7 * _DAY
TIMESTAMP_SECONDS = _DAY
_NOTHING: Mapping[str, Iterable[str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineFiles:
    """What a ceremony signed, as it will be served. None is what stays as it is."""

    root: bytes | None = None
    targets: bytes | None = None
    keyring: bytes | None = None


def shard_path(name: str) -> str:
    """Return the path of a plugin's shard among the targets."""
    return f"index/{name}.json"


def moment(seconds: int) -> datetime:
    """Return a time as metadata has it."""
    return datetime.fromtimestamp(seconds, UTC)


def online_keyid(records: Records) -> str:
    """Return the id of the key that the adopted root lets sign online."""
    return _online_keyid(_current(records, "root", Root))


def found(records: Records, files: OfflineFiles, signer: Signer, now: int) -> None:
    """Publish the index for the first time: every shard there is, signed in under the first root.

    Raises:
        ConfigError: there is a root already, or the files do not fit each other or the signer; nothing was written.
    """
    if records.signed.version("root"):
        raise ConfigError("this registry has a root already", hint="change it with `spm-registry root rotate`")
    if files.root is None or files.targets is None or files.keyring is None:
        raise ConfigError("a first root needs its targets and its keyring beside it")
    _adopt(records, files, signer, now)
    _Step(records=records, signer=signer, now=now).advance(_every_bin(records), is_whole=True)


def replace(records: Records, files: OfflineFiles, signer: Signer, now: int) -> None:
    """Put newer signed files in the place of the adopted ones; a new online key signs every bin anew, from the shards.

    Raises:
        ConfigError: there is no root, or the files do not follow those that are there, or do not fit each other or
        the signer; nothing is to be written.
    """
    before = online_keyid(records)
    _adopt(records, files, signer, now)
    is_new_key = before != signer.public_key.keyid
    changed = _every_bin(records) if is_new_key else _NOTHING
    _Step(records=records, signer=signer, now=now).advance(changed, is_whole=is_new_key, lists_anew=True)


def publish_shard(records: Records, signer: Signer, name: str, now: int) -> None:
    """Sign a plugin's shard into its bin, as it is now, and all that is due with it."""
    role = _bins(records).get_role_for_target(shard_path(name))
    _Step(records=records, signer=signer, now=now).advance({role: (name,)})


def renew(records: Records, signer: Signer, now: int) -> None:
    """Sign anew what has lived half its life."""
    _Step(records=records, signer=signer, now=now).advance(_NOTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """One step of the index: all that is signed in it is signed by one key at one moment."""

    records: Records
    signer: Signer
    now: int

    def advance(
        self, changed: Mapping[str, Iterable[str]], *, is_whole: bool = False, lists_anew: bool = False
    ) -> None:
        """Sign bins whose shards changed; `is_whole` says that these are all shards of all bins."""
        due = self.records.signed.due(self.now)
        issued = {}
        for role in sorted({*changed, *(role for role in due if role.startswith(f"{BIN_PREFIX}-"))}):
            held = None if is_whole else _found(self.records, role, Targets)
            issued[role] = self._issue(role, self._bin(held, changed.get(role, ())), BIN_SECONDS)
        if issued or lists_anew or "snapshot" in due:
            self._issue("snapshot", self._snapshot(issued), SNAPSHOT_SECONDS)
            due |= {"timestamp"}
        if "timestamp" in due:
            self._issue("timestamp", self._timestamp(), TIMESTAMP_SECONDS)
        self.records.signed.forget(self.now - KEPT_SECONDS)

    def _bin(self, held: Targets | None, names: Iterable[str]) -> Targets:
        listed = held or Targets()
        listed.targets |= {shard_path(name): self._target(name) for name in names}
        return listed

    def _target(self, name: str) -> TargetFile:
        row = self.records.shard(name)
        if row is None:
            raise LookupError(f"there is no shard of {name}")
        return TargetFile(len(row.data), {"sha256": row.etag.strip('"')}, shard_path(name))

    def _snapshot(self, issued: Mapping[str, MetaFile]) -> Snapshot:
        held = _found(self.records, "snapshot", Snapshot) or Snapshot()
        held.meta |= {f"{role}.json": file for role, file in issued.items()}
        held.meta["targets.json"] = self._listed("targets")
        return held

    def _timestamp(self) -> Timestamp:
        issued = moment(self.now).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Timestamp(snapshot_meta=self._listed("snapshot"), unrecognized_fields={"issued": issued})

    def _listed(self, role: str) -> MetaFile:
        row = self.records.signed.current(role)
        if row is None:
            raise LookupError(f"there is no {role} to list")
        return _listed(row)

    def _issue(self, role: str, signed: T, seconds: int) -> MetaFile:
        signed.version = self.records.signed.version(role) + 1
        signed.expires = moment(self.now + seconds)
        metadata = Metadata(signed)
        metadata.sign(self.signer)
        data = metadata.to_bytes()
        row = SignedRow(
            role=role,
            version=signed.version,
            sha256=hashlib.sha256(data).hexdigest(),
            renew_at=self.now + seconds // 2,
            expires_at=self.now + seconds,
            data=data,
        )
        self.records.signed.put(row, self.now)
        return _listed(row)


def _listed(row: SignedRow) -> MetaFile:
    return MetaFile(row.version, len(row.data), {"sha256": row.sha256})


def _found(records: Records, role: str, kind: type[T]) -> T | None:
    row = records.signed.current(role)
    return None if row is None else _parsed(row.data, kind)


def _current(records: Records, role: str, kind: type[T]) -> T:
    held = _found(records, role, kind)
    if held is None:
        raise ConfigError(f"this registry has no {role} yet", hint="make them with `spm-registry root init FILE.pub`")
    return held


def _parsed(data: bytes, kind: type[T]) -> T:
    signed = Metadata[T].from_bytes(data).signed
    if not isinstance(signed, kind):
        raise ConfigError(f"the metadata is of the type {signed.type}, and {kind.type} is needed")
    return signed


def _bins(records: Records) -> SuccinctRoles:
    return _bins_of(_current(records, "targets", Targets))


def _every_bin(records: Records) -> Mapping[str, Iterable[str]]:
    """Return all bins with the names of all their shards."""
    roles = _bins(records)
    bins: dict[str, list[str]] = {role: [] for role in roles.get_roles()}
    for name in records.shard_names():
        bins[roles.get_role_for_target(shard_path(name))].append(name)
    return bins


def _bins_of(targets: Targets) -> SuccinctRoles:
    roles = targets.delegations.succinct_roles if targets.delegations else None
    if roles is None or roles.name_prefix != BIN_PREFIX:
        raise ConfigError(f"the targets do not hand the shards to bins named `{BIN_PREFIX}-...`")
    return roles


def _online_keyid(root: Root) -> str:
    keyids = {keyid for name in ("snapshot", "timestamp") for keyid in root.roles[name].keyids}
    if len(keyids) != 1:
        raise ConfigError(f"the root names {len(keyids)} keys for snapshot and timestamp, and one signs both here")
    return keyids.pop()


def _adopt(records: Records, files: OfflineFiles, signer: Signer, now: int) -> None:
    """Write what came signed from the ceremony, once it follows what is there and fits together."""
    if files.root is not None:
        root = _parsed(files.root, Root)
        _put(records, "root", root.version, root.expires, files.root, now)
    if files.targets is not None:
        earlier = _found(records, "targets", Targets)
        targets = _parsed(files.targets, Targets)
        if earlier is not None and _bins_of(earlier).bit_length != _bins_of(targets).bit_length:
            raise ConfigError("the number of bins cannot change: clients would take it for withdrawn files")
        _put(records, "targets", targets.version, targets.expires, files.targets, now)
    if files.keyring is not None:
        _put(records, "keyring", records.signed.version("keyring") + 1, None, files.keyring, now)
    _require_fit(records, signer)


def _put(records: Records, role: str, version: int, expires: datetime | None, data: bytes, now: int) -> None:
    expected = records.signed.version(role) + 1
    if version != expected:
        raise ConfigError(
            f"the {role} has the version {version}, and the next one here is {expected}",
            hint="begin again: another was adopted since this draft was made",
        )
    row = SignedRow(
        role=role,
        version=version,
        sha256=hashlib.sha256(data).hexdigest(),
        renew_at=None,
        expires_at=int(expires.timestamp()) if expires else None,
        data=data,
    )
    records.signed.put(row, now)


def _require_fit(records: Records, signer: Signer) -> None:
    targets, keyring = _current(records, "targets", Targets), records.signed.current("keyring")
    keyids = {*_bins_of(targets).keyids, online_keyid(records)}
    if keyids != {signer.public_key.keyid}:
        raise ConfigError(
            f"root and targets name the online keys {', '.join(sorted(keyids))}, and this registry signs with "
            f"{signer.public_key.keyid}"
        )
    listed = {path: (file.length, file.hashes) for path, file in targets.targets.items()}
    held = None if keyring is None else {KEYRING_TARGET: (len(keyring.data), {"sha256": keyring.sha256})}
    if listed != held:
        raise ConfigError("the targets must list the keyring document, as it is here, and nothing else")

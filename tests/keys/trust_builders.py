"""A registry's signed index in memory, made with python-tuf. It is a `Fetch`, and does to its files what a test asks.

`trust = make_trust(now=now)`; `trust(path, max_bytes)` serves; `trust.state` is what a host then remembers.
Private keys are made at run time. Makes no claims.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from securesystemslib.signer import CryptoSigner, Signer, SSlibKey
from tuf.api.metadata import (
    Delegations,
    Metadata,
    MetaFile,
    Role,
    Root,
    Snapshot,
    SuccinctRoles,
    TargetFile,
    Targets,
    Timestamp,
)

from keys.keyring import LoaderConf, RootPin
from keys.pinned_keys import Keyring
from keys.public_key import keyid_of
from keys.root_keyring import KEYRING_TARGET, RootKeyring
from keys.trust import Fetch, open_trust, state_of
from keys.trust_policy import REGISTRY_MEMBER
from keys.trust_state import MOMENT, TrustState
from manifests.errors import NotFound

REGISTRY = "team.example"
NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
BITS = 2
P256, SIGNATURE_BYTES = "ecdsa-sha2-nistp256", 71


def new_signer() -> CryptoSigner:
    """Return a fresh P-256 key that signs TUF metadata under spm's key id."""
    private_key = ec.generate_private_key(ec.SECP256R1())
    public_key = private_key.public_key()
    return CryptoSigner(private_key, SSlibKey.from_crypto(public_key, keyid=keyid_of(public_key)))


def signed(metadata: Any, *signers: Signer) -> bytes:
    """Return the bytes of metadata with these signatures and no other, all of one length, so that sizes are certain."""
    wrapped = Metadata(metadata)
    for signer in signers:
        signature = wrapped.sign(signer, append=True)
        while signer.public_key.scheme == P256 and len(signature.signature) != 2 * SIGNATURE_BYTES:
            signature = wrapped.sign(signer, append=True)
    return wrapped.to_bytes()


def meta_file(version: int, data: bytes) -> MetaFile:
    return MetaFile(version, len(data), {"sha256": hashlib.sha256(data).hexdigest()})


def shard_path(name: str) -> str:
    return f"index/{name}.json"


def bins() -> SuccinctRoles:
    return SuccinctRoles([], 1, BITS, "bin")


@dataclass
class Trust:
    """One registry. `files` holds what it serves by path below `/v1/tuf/`; change any, or publish anew."""

    now: datetime = NOW
    registry: str = REGISTRY
    root_signers: list[CryptoSigner] = field(default_factory=lambda: [new_signer()])
    threshold: int = 1
    online: CryptoSigner = field(default_factory=new_signer)
    keyring: RootKeyring = field(default_factory=lambda: RootKeyring.empty(REGISTRY))
    shards: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    lifetimes: dict[str, timedelta] = field(default_factory=dict)
    listed: dict[str, MetaFile] = field(default_factory=dict)

    def __call__(self, path: str, max_bytes: int) -> bytes:
        self.asked.append(path)
        if path not in self.files:
            raise NotFound(f"there is nothing at `{path}`")
        return self.files[path][: max_bytes + 1]

    # Publishing, as a registry does it

    def publish_root(self, *more: Signer, edit: Callable[[Root], None] = lambda root: None) -> bytes:
        """Sign the next root with the present root keys, and with `more`, as when keys were put away."""
        version = self._next("root")
        offline = [signer.public_key for signer in self.root_signers]
        keys = {key.keyid: key for key in (*offline, self.online.public_key)}
        roles = {name: Role([key.keyid for key in offline], self.threshold) for name in ("root", "targets")}
        roles |= {name: Role([self.online.public_key.keyid], 1) for name in ("snapshot", "timestamp")}
        root = Root(version, None, self._expires("root"), dict(keys), roles, True, self._own)
        edit(root)
        self.files[f"{version}.root.json"] = data = signed(root, *self.root_signers, *more)
        return data

    def publish_targets(self, edit: Callable[[Targets], None] = lambda targets: None) -> None:
        data, version = self.keyring.to_bytes(), self._next("targets")
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"targets/{digest}.{KEYRING_TARGET}"] = data
        public = self.online.public_key
        handed_on = SuccinctRoles([public.keyid], 1, BITS, "bin")
        listed = {KEYRING_TARGET: TargetFile(len(data), {"sha256": digest}, KEYRING_TARGET)}
        delegations = Delegations({public.keyid: public}, succinct_roles=handed_on)
        targets = Targets(version, None, self._expires("targets"), listed, delegations, self._own)
        edit(targets)
        self._list("targets", version, signed(targets, *self.root_signers))

    def publish_bins(self, names: Iterable[str] | None = None) -> None:
        for role in bins().get_roles() if names is None else sorted(names):
            version = self._next(role)
            paths = {path for path in map(shard_path, self.shards) if bins().get_role_for_target(path) == role}
            targets = {path: self._shard(path) for path in sorted(paths)}
            self._list(role, version, signed(Targets(version, None, self._expires("bin"), targets), self.online))

    def publish_snapshot(self, edit: Callable[[Snapshot], None] = lambda snapshot: None) -> None:
        version = self._next("snapshot")
        snapshot = Snapshot(version, None, self._expires("snapshot"), dict(self.listed))
        edit(snapshot)
        self.files[f"{version}.snapshot.json"] = signed(snapshot, self.online)

    def publish_timestamp(self, edit: Callable[[Timestamp], None] = lambda timestamp: None) -> bytes:
        version, snapshot = self._next("timestamp"), self.versions["snapshot"]
        listed = meta_file(snapshot, self.files[f"{snapshot}.snapshot.json"])
        issued = {"issued": f"{self.now:{MOMENT}}"}
        timestamp = Timestamp(version, None, self._expires("timestamp"), listed, issued)
        edit(timestamp)
        self.files["timestamp.json"] = data = signed(timestamp, self.online)
        return data

    def publish_shard(self, name: str, shard: bytes) -> None:
        """Publish a shard: its bin, the snapshot and the timestamp."""
        self.shards[name] = shard
        self.publish_bins({bins().get_role_for_target(shard_path(name))})
        self.publish_snapshot()
        self.publish_timestamp()

    def publish_keyring(self, keyring: RootKeyring) -> None:
        """Publish another keyring: targets, snapshot and timestamp."""
        self.keyring = keyring
        self.publish_targets()
        self.publish_snapshot()
        self.publish_timestamp()

    def publish_all(self) -> None:
        """Publish everything below the root anew."""
        self.publish_targets()
        self.publish_bins()
        self.publish_snapshot()
        self.publish_timestamp()

    def rotate_online(self) -> None:
        """Put the online key away: a new root, and all that the old key had signed is signed anew."""
        self.online = new_signer()
        self.publish_root()
        self.publish_all()

    # What a host makes of it

    @property
    def root_pin(self) -> RootPin:
        return RootPin(version=1, sha256=hashlib.sha256(self.files["1.root.json"]).hexdigest())

    @property
    def root_table(self) -> str:
        """Return the `[root]` table of loader.conf."""
        return f'[root]\nversion = {self.root_pin.version}\nsha256 = "{self.root_pin.sha256}"\n'

    def conf(self, keyring: Keyring | None = None) -> LoaderConf:
        """Return a loader.conf that pins the first root, and these keys."""
        return LoaderConf(
            registry_id=self.registry,
            registry_url="http://127.0.0.1:8080",
            root=self.root_pin,
            keyring=keyring or Keyring(core_threshold=1, core_keys=(), ext_keys=()),
            accept_missing=(),
            memory_bytes=None,
        )

    @property
    def state(self) -> TrustState:
        """Return what a host remembers that has seen this registry for the first time."""
        return self.seen_by(None)

    def seen_by(self, held: TrustState | None, now: datetime | None = None) -> TrustState:
        """Return what a host remembers after a refresh, with `held` from before."""
        return refreshed(self, self.conf(), held, now or self.now)

    def _next(self, role: str) -> int:
        self.versions[role] = self.versions.get(role, 0) + 1
        return self.versions[role]

    def _expires(self, role: str) -> datetime:
        days = 7 if role == "timestamp" else 30
        return self.now + self.lifetimes.get(role, timedelta(days=days))

    @property
    def _own(self) -> dict[str, str]:
        return {REGISTRY_MEMBER: self.registry}

    def _list(self, role: str, version: int, data: bytes) -> None:
        self.files[f"{version}.{role}.json"] = data
        self.listed[f"{role}.json"] = meta_file(version, data)

    def _shard(self, path: str) -> TargetFile:
        name = path.removeprefix("index/")
        data = self.shards[name.removesuffix(".json")]
        digest = hashlib.sha256(data).hexdigest()
        self.files[f"targets/index/{digest}.{name}"] = data
        return TargetFile(len(data), {"sha256": digest}, path)


def refreshed(fetch: Fetch, conf: LoaderConf, held: TrustState | None, now: datetime) -> TrustState:
    """Return what a host that trusts by `conf` remembers after a refresh."""
    with TemporaryDirectory() as folder:
        index = open_trust(Path(folder), conf, held, fetch, now)
        index.refresh()
        return state_of(index, conf)


def make_trust(
    registry: str = REGISTRY, keyring: RootKeyring | None = None, now: datetime = NOW, **members: Any
) -> Trust:
    """Return a registry with a root and an empty index; `members` as `Trust` has them."""
    trust = Trust(registry=registry, keyring=keyring or RootKeyring.empty(registry), now=now, **members)
    trust.publish_root()
    trust.publish_all()
    return trust


def write_state(store_root: Path, state: TrustState, number: int = 1) -> Path:
    """Write a state where a store keeps it."""
    folder = store_root / "trust"
    folder.mkdir(mode=0o755, exist_ok=True)
    path = folder / f"{number:06d}.json"
    path.write_bytes(state.to_bytes())
    path.chmod(0o644)
    return path

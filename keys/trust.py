"""A registry's signed index over python-tuf: refreshed in a folder of scratch, read shard by shard. Commits nothing.

root -> timestamp -> snapshot -> targets (the keyring) -> bin -> shard: one chain of digests, which starts at the root
that loader.conf pins. How the library walks it: https://theupdateframework.github.io/specification/latest, section 5.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from pathlib import Path

from tuf.api.exceptions import LengthOrHashMismatchError
from tuf.api.metadata import Metadata, Root, TargetFile, Timestamp
from tuf.ngclient import Updater, UpdaterConfig

from keys.keyring import LoaderConf
from keys.root_keyring import KEYRING_TARGET, MAX_KEYRING_BYTES, RootKeyring
from keys.trust_file import MAX_TRUST_FILE_BYTES, import_trust, require_keyring, trust_file
from keys.trust_folder import BASE, MAX_BYTES, MAX_TARGETS_BYTES, Fetch, TrustFetcher, TrustFolder
from keys.trust_metadata import check_metadata, issued_at, signed_digest
from keys.trust_policy import STRICT, TUF_ANY, KeyPolicy
from keys.trust_reasons import ALTERED, reasons, require_offline_roles_in_force
from keys.trust_state import MOMENT, TrustState, require_clock, require_own
from manifests.errors import BadResponse, DigestMismatch, Fork, Mix, NotFound, Rollback, SizeMismatch, SpmError, TooBig

__all__ = [
    "MAX_TRUST_FILE_BYTES",
    "STRICT",
    "TUF_ANY",
    "Fetch",
    "KeyPolicy",
    "TrustedIndex",
    "import_trust",
    "open_trust",
    "state_of",
    "trust_file",
]

MAX_TIMESTAMP_LIFE = timedelta(days=7)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FORK_HINT = "keep both for evidence and tell the registry's administrator: its online key may be in other hands"
_CONFIG = UpdaterConfig(
    max_root_rotations=256,
    max_delegations=32,
    root_max_length=MAX_BYTES["root"],
    timestamp_max_length=MAX_BYTES["timestamp"],
    snapshot_max_length=MAX_BYTES["snapshot"],
    targets_max_length=MAX_TARGETS_BYTES,
)


class TrustedIndex:
    """The signed index in a folder: `index.refresh()` once, then `index.target("index/log-mel.json", 1 << 20)`.

    `bootstrap` is root metadata that is trusted already; the folder may hold metadata of an earlier refresh.
    `online_now` is the time by which the expiry of what online keys sign is judged, where that is not `now`.
    """

    def __init__(
        self,
        folder: Path,
        bootstrap: bytes,
        fetch: Fetch,
        now: datetime,
        policy: KeyPolicy,
        held: TrustState | None = None,
        *,
        online_now: datetime | None = None,
    ) -> None:
        self.held = held
        self.bootstrap = bootstrap
        self._now = now
        self._online_now = online_now or now
        self._policy = policy
        self._folder = TrustFolder(folder)
        self._fetcher = TrustFetcher(fetch, policy)
        self._held_timestamp = self._folder.read("timestamp")
        with self._reasons():
            self._fetcher.last.path, self._fetcher.last.data = "root.json", bootstrap
            if policy.is_strict:
                check_metadata(bootstrap, "root.json")
            policy.check_root(Metadata[Root].from_bytes(bootstrap).signed)
            self._updater = Updater(str(folder), BASE, fetcher=self._fetcher, config=_CONFIG, bootstrap=bootstrap)
        # The library takes its own clock and offers no way to set it; TUF 5.1 wants one time for a whole update.
        self._updater._trusted_set.reference_time = self._online_now  # noqa: SLF001

    def refresh(self) -> None:
        """Bring root, timestamp, snapshot and targets up to date.

        Raises: FreshnessError, HistoryError, SignatureRefused, KeyRefused, TooBig or what `fetch` raises.
        """
        with self._reasons():
            self._updater.refresh()
            if self._policy.is_strict:
                self._policy.check_targets(self._folder.targets().signed)
        if self._policy.is_strict:
            self._require_one_history()
            self._require_dated()
            require_offline_roles_in_force(self._folder, self._now)

    def target(self, path: str, max_bytes: int) -> bytes | None:
        """Return a target's bytes, verified; None where the index lists no such target.

        Raises: as `refresh`; DigestMismatch and SizeMismatch when other bytes are served than are listed.
        """
        with self._reasons():
            info = self._updater.get_targetinfo(path)
        return None if info is None else self._target(info, max_bytes)

    def bins_ahead(self, paths: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Yield the bins that `target` will fetch for these paths, each with the bytes that it will allow."""
        delegations = self._folder.targets().signed.delegations
        bins = delegations.succinct_roles if delegations else None
        listed = self._folder.snapshot().signed.meta
        for role in sorted({bins.get_role_for_target(path) for path in paths} if bins else ()):
            meta = listed.get(f"{role}.json")
            if meta is not None and self._folder.version(role) != meta.version:
                yield f"{meta.version}.{role}.json", meta.length or MAX_TARGETS_BYTES

    def files_ahead(self, paths: Iterable[str], max_bytes: int, *, together: int) -> Iterator[tuple[str, int]]:
        """Yield the files that `target` will fetch for these paths, up to so many bytes of all of them together.

        A path that `target` refuses without them, as for its bin, is left out.
        """
        for path in paths:
            try:
                with self._reasons():
                    info = self._updater.get_targetinfo(path)
                    file = self._path_of(info) if info else ""
            except SpmError:
                continue
            if info is not None and info.length <= max_bytes:
                together -= info.length
                if together < 0:
                    return
                yield file, info.length

    def keyring(self) -> bytes:
        """Return the keyring, which only the root-signed targets may list, never a bin.

        Raises: as `target`.
        """
        info = self._folder.targets().signed.targets[KEYRING_TARGET]
        held = self.held.keyring.encode() if self.held and self.held.keyring else b""
        try:
            info.verify_length_and_hashes(held)
        except LengthOrHashMismatchError:
            return self._target(info, MAX_KEYRING_BYTES)
        return held

    def metadata(self, role: str) -> str:
        """Return the text of a trusted top-level role."""
        data = self._folder.read(role)
        if data is None:
            raise BadResponse(f"the registry's `{role}` was not refreshed")
        return data.decode()

    def newer_roots(self, version: int) -> tuple[str, ...]:
        """Return the texts of the trusted roots above a version, in order."""
        newest = self._folder.root().signed.version
        return tuple(self._folder.numbered_root(number) for number in range(version + 1, newest + 1))

    def _target(self, info: TargetFile, max_bytes: int) -> bytes:
        path = self._path_of(info)
        if info.length > max_bytes:
            raise TooBig(f"the index lists {info.length} bytes for `{info.path}`, more than the {max_bytes} allowed")
        try:
            data = self._fetcher.whole(path, info.length)
        except NotFound as error:
            raise BadResponse(
                f"the registry lists `{info.path}` and does not have it", hint="run the command again", path=path
            ) from error
        try:
            info.verify_length_and_hashes(data)
        except LengthOrHashMismatchError as error:
            raise _other_bytes(info, data) from error
        return data

    def _path_of(self, info: TargetFile) -> str:
        """Return the path under which a target is served: its digest stands in it, which never leads elsewhere."""
        digest = info.hashes.get("sha256", "" if self._policy.is_strict else next(iter(info.hashes.values())))
        if self._policy.is_strict and not _SHA256.fullmatch(digest):
            raise BadResponse(
                f"the registry lists `{info.path}` without a SHA-256 digest of 64 lower-case hex digits",
                hint="tell the registry's administrator: this was not signed by `spm-registry`",
                path=info.path,
            )
        folder, slash, name = info.path.rpartition("/")
        return f"targets/{folder}{slash}{digest}.{name}"

    def _require_one_history(self) -> None:
        """Refuse two contents of one version: somebody shows different hosts different registries."""
        self._require_one_timestamp()
        listed = self._folder.timestamp().signed.snapshot_meta
        held = self._folder.read("snapshot") or b""
        try:
            # The library keeps a held snapshot of the listed version, whatever digest is listed.
            listed.verify_length_and_hashes(held)
        except LengthOrHashMismatchError as error:
            seen, served = hashlib.sha256(held).hexdigest(), (listed.hashes or {}).get("sha256")
            raise Fork(
                f"the registry shows two different snapshots as version {listed.version}: this host has seen "
                f"sha256:{seen}, and now sha256:{served} is listed",
                hint=_FORK_HINT,
                version=listed.version,
                seen=seen,
                served=served,
            ) from error

    def _require_dated(self) -> None:
        """Refuse a timestamp that hides its age, on which rest both what may be withheld and `load.max_age_days`."""
        timestamp = self._folder.timestamp().signed
        issued = issued_at(timestamp)
        if issued is None or timestamp.expires - issued > MAX_TIMESTAMP_LIFE:
            dated = f"is to live until {timestamp.expires:{MOMENT}}"
            what = "does not say when it was signed" if issued is None else dated
            raise BadResponse(
                f"the registry's timestamp {timestamp.version} {what}; "
                f"it must be dated, and live for {MAX_TIMESTAMP_LIFE.days} days at most",
                hint="tell the registry's administrator: this was not signed by `spm-registry`",
            )
        require_clock(issued, self._now)
        seen = self.held.issued if self.held else None
        if seen is not None and issued < seen and timestamp.version > _version_in(self.held):
            raise Rollback(
                f"the registry's timestamp {timestamp.version} is dated {issued:{MOMENT}}, "
                f"and this host has seen an earlier version dated {seen:{MOMENT}}",
                hint="tell the registry's administrator: its clock was set back, or its online key is in other hands",
            )

    def _require_one_timestamp(self) -> None:
        held, served = self._held_timestamp, self._fetcher.timestamp
        if held is None or served is None or held == served:
            return
        before, after = (Metadata[Timestamp].from_bytes(data) for data in (held, served))
        if before.signed.version != after.signed.version or signed_digest(before) == signed_digest(after):
            return
        if not self._folder.root().signed.get_verification_result("timestamp", before.signed_bytes, before.signatures):
            return  # signed by a key that the root has put away since: TUF 5.3.11 starts anew then
        raise Fork(
            f"the registry shows two different indexes as version {before.signed.version}: this host has seen "
            f"sha256:{signed_digest(before)}, and now sha256:{signed_digest(after)} is served; both are signed",
            hint=_FORK_HINT,
            version=before.signed.version,
            seen=signed_digest(before),
            served=signed_digest(after),
        )

    def _reasons(self) -> AbstractContextManager[None]:
        return reasons(self._fetcher.last, self._folder, self._now, self._online_now)


def open_trust(
    folder: Path,
    conf: LoaderConf,
    state: TrustState | None,
    fetch: Fetch,
    now: datetime,
    *,
    online_now: datetime | None = None,
) -> TrustedIndex:
    """Lay what is remembered out in `folder` and return the index over it, still to be refreshed.

    `online_now` is for a bundle: see `keys.bundle_clock`.
    Raises: ConfigError where loader.conf pins no root or another; Mix when the registry's root is not the pinned one;
    ClockSuspect.
    """
    policy = STRICT.of(conf.registry_id)
    if state is None:
        return TrustedIndex(folder, _pinned_root(conf, fetch), fetch, now, policy, online_now=online_now)
    require_own(state, conf)
    require_clock(state.issued, now)
    for role in ("timestamp", "snapshot", "targets"):
        if text := getattr(state, role):
            TrustFolder(folder).write(role, text)
    return TrustedIndex(folder, state.roots[-1].encode(), fetch, now, policy, state, online_now=online_now)


def state_of(index: TrustedIndex, conf: LoaderConf) -> TrustState:
    """Return what a host is to remember after a refresh.

    Raises: Rollback when the keyring is an older edition than the one held; Mix when it is another registry's.
    """
    held = index.held
    roots = held.roots if held else (index.bootstrap.decode(),)
    data = index.keyring()
    keyring = RootKeyring.from_bytes(data)
    require_keyring(keyring, conf, held.keyring if held else None)
    imported = held if held and _is_newer(held.imported_keyring, keyring) else None
    return TrustState(
        registry=conf.registry_id,
        root_sha256=held.root_sha256 if held else conf.require_root().sha256,
        roots=(*roots, *index.newer_roots(Metadata[Root].from_bytes(roots[-1].encode()).signed.version)),
        timestamp=index.metadata("timestamp"),
        snapshot=index.metadata("snapshot"),
        targets=index.metadata("targets"),
        keyring=data.decode(),
        imported_targets=imported.imported_targets if imported else None,
        imported_keyring=imported.imported_keyring if imported else None,
    )


def _version_in(state: TrustState | None) -> int:
    text = state.timestamp if state else None
    return Metadata[Timestamp].from_bytes(text.encode()).signed.version if text else 0


def _is_newer(imported: str | None, served: RootKeyring) -> bool:
    """Tell whether a trust file brought an edition that the registry does not serve yet."""
    return imported is not None and RootKeyring.from_bytes(imported.encode()).serial > served.serial


def _pinned_root(conf: LoaderConf, fetch: Fetch) -> bytes:
    pin, path = conf.require_root(), f"{conf.require_root().version}.root.json"
    try:
        data = fetch(path, _CONFIG.root_max_length)
    except NotFound as error:
        raise BadResponse(
            f"the registry has no `{path}`, the root that loader.conf pins",
            hint="check `registry.url` in loader.conf; a registry made anew needs a new loader.conf",
            path=path,
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != pin.sha256:
        raise Mix(
            f"`{path}` of the registry has the digest sha256:{found}, but loader.conf pins sha256:{pin.sha256}",
            hint="this is another registry, or somebody stands between; get loader.conf anew over a channel you trust",
            found=found,
            expected=pin.sha256,
        )
    return data


def _other_bytes(info: TargetFile, data: bytes) -> SizeMismatch | DigestMismatch:
    if len(data) != info.length:
        return SizeMismatch(
            f"`{info.path}` has {len(data)} bytes, the signed index lists {info.length}",
            hint=ALTERED,
            found=len(data),
            expected=info.length,
        )
    found, expected = hashlib.sha256(data).hexdigest(), next(iter(info.hashes.values()))
    return DigestMismatch(
        f"`{info.path}` has the digest sha256:{found}, the signed index lists sha256:{expected}",
        hint=ALTERED,
        found=found,
        expected=expected,
    )

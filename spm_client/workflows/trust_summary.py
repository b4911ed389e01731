"""What is trusted, in facts and in plain words. Pure: verifies nothing, for what a store remembers was verified."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from keys.keyring import LoaderConf, RootPin
from keys.pinned_keys import CoreKey, ExtKey, Keyring, RevokedKey
from keys.public_key import KeyId
from keys.trust_state import MOMENT, TrustState
from spm_client.render import count

ENDING = timedelta(days=60)
"""So long before their end it is told of root and targets: a renewal needs people to come together."""
KEY_ENDING = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustSummary:
    """Root, index and keyring of one registry, as a store remembers them."""

    registry: str
    url: str
    pin: RootPin
    root_version: int
    root_threshold: int
    root_keyids: tuple[str, ...]
    root_expires: str
    targets_version: int | None
    targets_expires: str | None
    index_issued: datetime | None
    index_expires: datetime | None
    serial: int
    keyring: Keyring
    """Of loader.conf and the registry's keyring document together."""
    pinned: frozenset[KeyId]
    """The keys that loader.conf itself names; the others come from the keyring document alone."""

    @classmethod
    def of(cls, conf: LoaderConf, state: TrustState) -> "TrustSummary":
        root = json.loads(state.roots[-1])["signed"]
        document = state.root_keyring()
        targets = [json.loads(text)["signed"] for text in (state.targets, state.imported_targets) if text]
        newest: dict[str, Any] = max(targets, key=lambda signed: int(signed["version"]), default={})
        return cls(
            registry=state.registry,
            url=conf.registry_url,
            pin=conf.require_root(),
            root_version=root["version"],
            root_threshold=root["roles"]["root"]["threshold"],
            root_keyids=tuple(root["roles"]["root"]["keyids"]),
            root_expires=root["expires"],
            targets_version=newest.get("version"),
            targets_expires=newest.get("expires"),
            index_issued=state.issued,
            index_expires=state.expires,
            serial=document.serial,
            keyring=conf.keyring.merged(document.keyring),
            pinned=frozenset(key.keyid for key in _keys(conf.keyring)),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "registry": self.registry,
            "url": self.url,
            "pin": {"version": self.pin.version, "sha256": self.pin.sha256},
            "root": {
                "version": self.root_version,
                "threshold": self.root_threshold,
                "keyids": list(self.root_keyids),
                "expires": self.root_expires,
            },
            "index": {"issued": _moment(self.index_issued), "expires": _moment(self.index_expires)},
            "keyring": {"serial": self.serial, **_keyring_dict(self)},
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return what a person reads, each line with what it is about."""
        return [
            ("registry", f"{self.registry} at {self.url}"),
            ("root", self.root_text),
            ("index", self.index_text),
            ("keyring", self.keyring_text),
            *((about, told) for about, told, _ in self.key_rows()),
        ]

    def key_rows(self) -> list[tuple[str, str, KeyId | None]]:
        """Return what is told of each key, and of what is revoked; each with the id of the key it is about."""
        keys = [key for key in _keys(self.keyring) if self.keyring.revocation_of(key.keyid) is None]
        named = {key.keyid: key for key in _keys(self.keyring)}
        rows: list[tuple[str, str, KeyId | None]] = [
            (f"{_role(key)} key", f"{_described(key)}{_until(key.expires)}, from {self.origin(key.keyid)}", key.keyid)
            for key in keys
        ]
        rows += [
            ("revoked", f"{_revoked_text(one, named.get(one.keyid))}", one.keyid) for one in self.keyring.revoked_keys
        ]
        return rows + [
            ("revoked", f"manifest sha256:{one[:16]}…", None) for one in sorted(self.keyring.revoked_manifests)
        ]

    def origin(self, keyid: KeyId) -> str:
        """Return where a key's terms come from: those of loader.conf go before the keyring's."""
        return "loader.conf" if keyid in self.pinned else "keyring"

    def endings(self, now: datetime) -> tuple[str, ...]:
        """Return in words what of root and targets ends soon, or has ended."""
        parts = [(f"root {self.root_version}", self.root_expires)]
        if self.targets_expires is not None:
            parts.append((f"targets {self.targets_version}", self.targets_expires))
        return tuple(text for what, expires in parts if (text := _ending(what, expires, now)))

    def key_endings(self, now: datetime) -> dict[KeyId, str]:
        """Return by key in words which of those in force end soon, or have ended."""
        return {
            key.keyid: f"the key {key.keyid[:16]}… {when}: what it signs later does not count; "
            "its owner needs a new key, or a later end where this one is pinned"
            for key in _keys(self.keyring)
            if key.expires is not None
            and self.keyring.revocation_of(key.keyid) is None
            and (when := _when(key.expires, KEY_ENDING, now))
        }

    @property
    def root_text(self) -> str:
        keys = len(self.root_keyids)
        signers = "its only key" if keys == 1 else f"{self.root_threshold} of its {keys} keys"
        return (
            f"version {self.root_version}, {signers} must sign, until {self.root_expires}; "
            f"loader.conf pins version {self.pin.version} (sha256:{self.pin.sha256[:16]}…)"
        )

    @property
    def keyring_text(self) -> str:
        return f"serial {self.serial}; core plugins need {count(self.keyring.core_threshold, 'signature')}"

    @property
    def index_text(self) -> str:
        if self.index_issued is None or self.index_expires is None:
            return "never fetched from the registry; the keyring came in a file"
        return f"signed {_moment(self.index_issued)}, until {_moment(self.index_expires)}"


def _keyring_dict(summary: TrustSummary) -> dict[str, Any]:
    keyring = summary.keyring
    revoked = frozenset(one.keyid for one in keyring.revoked_keys)

    def key_dict(key: CoreKey | ExtKey) -> dict[str, Any]:
        return {
            "keyid": key.keyid,
            "expires": key.expires,
            "from": summary.origin(key.keyid),
            "is_revoked": key.keyid in revoked,
        }

    return {
        "core": {"threshold": keyring.core_threshold, "keys": [key_dict(key) for key in keyring.core_keys]},
        "ext": [key_dict(key) | {"publisher": key.publisher, "names": list(key.names)} for key in keyring.ext_keys],
        "revoked_keys": [
            {"keyid": key.keyid, "reason": key.reason.value, "since": key.since} for key in keyring.revoked_keys
        ],
        "revoked_manifests": sorted(keyring.revoked_manifests),
    }


def _ending(what: str, expires: str, now: datetime) -> str | None:
    if (when := _when(expires, ENDING, now)) is None:
        return None
    then = "then every" if when.startswith("ends") else "every"
    return (
        f"{what} {when}: {then} install is refused until its holders have renewed it; tell the registry's administrator"
    )


def _when(expires: str, soon: timedelta, now: datetime) -> str | None:
    left = datetime.fromisoformat(expires) - now
    if left > soon:
        return None
    if left <= timedelta(0):
        return f"ended on {expires[:10]}"
    return f"ends in {count(left.days, 'day')} ({expires[:10]})" if left.days else f"ends at {expires}"


def _keys(keyring: Keyring) -> tuple[CoreKey | ExtKey, ...]:
    return (*keyring.core_keys, *keyring.ext_keys)


def _role(key: CoreKey | ExtKey) -> str:
    return "ext" if isinstance(key, ExtKey) else "core"


def _described(key: CoreKey | ExtKey) -> str:
    return f"{key.keyid[:16]}…" + (f" of `{key.publisher}` for {_names(key.names)}" if isinstance(key, ExtKey) else "")


def _revoked_text(revoked: RevokedKey, key: CoreKey | ExtKey | None) -> str:
    what = f"{_role(key)} key {_described(key)}" if key else f"key {revoked.keyid[:16]}…"
    return f"{what}, {revoked.reason.value}" + (f" since {revoked.since}" if revoked.since else "")


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _until(expires: str | None) -> str:
    return f", until {expires}" if expires else ""


def _moment(moment: datetime | None) -> str | None:
    return moment.strftime(MOMENT) if moment else None

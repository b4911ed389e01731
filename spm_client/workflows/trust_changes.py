"""What a refresh changed: against what was held before, and for what is installed. Verifies no root, asks nobody."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from keys.keyring import LoaderConf
from keys.pinned_keys import CoreKey, ExtKey, Keyring, RevokedKey
from keys.trust_state import TrustState
from manifests.errors import SpmError
from manifests.lockfile import InstalledEntry
from runtime.generation import current_generation
from runtime.installed import no_longer_trusted, trusted_by
from spm_client.store.layout import Layout
from spm_client.workflows.trust import Learnt


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that has another version than before, told in words and by its members."""

    about: str
    before: int
    after: int
    told: tuple[str, ...] = ()
    members: tuple[tuple[str, Any], ...] = ()

    @property
    def text(self) -> str:
        return f"{self.about} {self.before} -> {self.after}" + (f": {', '.join(self.told)}" if self.told else "")

    def to_dict(self) -> dict[str, Any]:
        return {"about": self.about, "before": self.before, "after": self.after, **dict(self.members)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPlugin:
    """An installed plugin that is not loaded; `is_new` where what was held before still let it load."""

    entry: InstalledEntry
    refusal: SpmError
    is_new: bool

    @property
    def text(self) -> str:
        name = self.entry.name
        when = "refused from now on" if self.is_new else "still refused"
        return (
            f"{when}: `{name}` {self.entry.version} ({self.refusal.reason}): "
            f"uninstall it (`spm uninstall {name}`) or install a later release"
        )

    def to_dict(self) -> dict[str, Any]:
        entry = {"name": self.entry.name, "version": str(self.entry.version), "is_new": self.is_new}
        return entry | self.refusal.to_dict()


def changes_between(before: TrustState, after: TrustState) -> tuple[Change, ...]:
    """Return what has another version: the root, and the keyring with what became of its keys."""
    return (*_root(before, after), *_keyring(before, after))


def refused_plugins(
    layout: Layout, conf: LoaderConf, learnt: Learnt, *, registry: str | None = None
) -> tuple[RefusedPlugin, ...]:
    """Return what is installed and is not loaded by what was learnt; what is damaged is for `spm verify` to tell.

    `registry` is the other registry that it was learnt of, where it was not the store's own; `layout` is the store's.
    """
    after = trusted_by(learnt.state, conf)
    before = trusted_by(learnt.before, conf) if learnt.before and _has_keyring(learnt.before) else None
    return tuple(
        RefusedPlugin(
            entry=entry, refusal=why, is_new=before is None or no_longer_trusted(layout.root, entry, before) is None
        )
        for entry in current_generation(layout.root).plugins
        if entry.registry == registry and (why := no_longer_trusted(layout.root, entry, after)) is not None
    )


def _root(before: TrustState, after: TrustState) -> Iterator[Change]:
    if before.roots[-1] != after.roots[-1]:
        yield Change(about="root", before=before.root_version, after=after.root_version)


def _keyring(before: TrustState, after: TrustState) -> Iterator[Change]:
    if not _has_keyring(before):
        return
    old, new = before.root_keyring(), after.root_keyring()
    if old.to_bytes() == new.to_bytes():
        return
    revoked = tuple(one for one in new.keyring.revoked_keys if one not in old.keyring.revoked_keys)
    manifests = tuple(sorted(new.keyring.revoked_manifests - old.keyring.revoked_manifests))
    added, removed = _beyond(new.keyring, old.keyring), _beyond(old.keyring, new.keyring)
    told = [f"revoked key {one.keyid[:16]}… ({_reason(one)})" for one in revoked]
    told += [f"revoked manifest sha256:{digest[:16]}…" for digest in manifests]
    told += [f"key added {_key(key)}" for key in added] + [f"key removed {_key(key)}" for key in removed]
    told += [f"new terms of key {_key(key)}" for key in _changed(old.keyring, new.keyring)]
    if old.keyring.core_threshold != new.keyring.core_threshold:
        told += [f"core threshold {old.keyring.core_threshold} -> {new.keyring.core_threshold}"]
    members = {
        "revoked_keys": [{"keyid": one.keyid, "reason": one.reason.value, "since": one.since} for one in revoked],
        "revoked_manifests": list(manifests),
        "added_keys": [key.keyid for key in added],
        "removed_keys": [key.keyid for key in removed],
        "changed_keys": [key.keyid for key in _changed(old.keyring, new.keyring)],
        "core_threshold": new.keyring.core_threshold,
    }
    yield Change(about="keyring", before=old.serial, after=new.serial, told=tuple(told), members=tuple(members.items()))


def _has_keyring(state: TrustState) -> bool:
    return bool(state.keyring or state.imported_keyring)


def _keys(keyring: Keyring) -> tuple[CoreKey | ExtKey, ...]:
    return (*keyring.core_keys, *keyring.ext_keys)


def _beyond(one: Keyring, other: Keyring) -> tuple[CoreKey | ExtKey, ...]:
    return tuple(key for key in _keys(one) if other.role_of(key.keyid) is None)


def _changed(old: Keyring, new: Keyring) -> tuple[CoreKey | ExtKey, ...]:
    before = {key.keyid: key for key in _keys(old)}
    return tuple(key for key in _keys(new) if before.get(key.keyid, key) != key)


def _key(key: CoreKey | ExtKey) -> str:
    return f"{key.keyid[:16]}… " + (f"(ext, of `{key.publisher}`)" if isinstance(key, ExtKey) else "(core)")


def _reason(revoked: RevokedKey) -> str:
    return revoked.reason.value + (f" since {revoked.since}" if revoked.since else "")

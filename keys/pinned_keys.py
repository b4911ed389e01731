"""The keys a loader pins, what each may vouch for, and which are revoked. Reads no file and checks no signature."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from keys.public_key import KeyId, KeyRole
from keys.shown import shown
from manifests.errors import (
    ConfigSyntax,
    KeyNamespaceMismatch,
    KeyRoleMismatch,
    KeyUnknown,
    PolicyDenied,
)
from manifests.manifest import Manifest
from manifests.parts import Capabilities

_ANOTHER = "ask its publisher for a release that is signed by a key in force"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreKey:
    """A key that vouches for core plugins; what it signs after `expires` (RFC 3339 UTC) does not count."""

    keyid: KeyId
    public_key_pem: bytes
    expires: str | None = None


class RevocationReason(enum.Enum):
    """Why a key is revoked: laid down in good order, or in hands that are not its owner's."""

    RETIRED = "retired"
    COMPROMISED = "compromised"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedKey:
    """A key that vouches for nothing more. A retired one keeps what it signed before `since`, which only it has."""

    keyid: KeyId
    reason: RevocationReason
    since: str | None = None

    def covers(self, created: str) -> bool:
        """Tell whether a manifest made at that moment is no longer vouched for."""
        return self.since is None or created >= self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtKey:
    """A publisher's key: it vouches for ext plugins of that publisher whose names fit one of the patterns."""

    keyid: KeyId
    public_key_pem: bytes
    publisher: str
    names: tuple[str, ...]
    ceiling: Capabilities | None
    expires: str | None = None

    def require_namespace(self, manifest: Manifest) -> None:
        """Accept a manifest of this key's publisher and names.

        Raises: KeyNamespaceMismatch.
        """
        if manifest.publisher != self.publisher:
            raise KeyNamespaceMismatch(
                f"{manifest.name} says it is published by `{manifest.publisher}`, "
                f"but its key {self.keyid} belongs to `{self.publisher}`",
                hint="pack it again with the key's own publisher, or sign it with a key of that publisher",
                keyid=self.keyid,
                publisher=manifest.publisher,
                expected=self.publisher,
            )
        if not any(fnmatchcase(manifest.name, pattern) for pattern in self.names):
            raise KeyNamespaceMismatch(
                f"the key {self.keyid} of `{self.publisher}` may not sign {manifest.name}: "
                f"it is trusted for {', '.join(f'`{name}`' for name in self.names)} only",
                hint=f'if it should, add "{manifest.name}" to the `names` of this key where it is pinned: '
                "in loader.conf or in the registry's keyring",
                keyid=self.keyid,
                name=manifest.name,
                names=list(self.names),
            )

    def require_ceiling(self, manifest: Manifest) -> None:
        """Accept a manifest that asks for no more than this key's plugins may have.

        Raises: PolicyDenied listing everything beyond the ceiling.
        """
        beyond = _excess(manifest.capabilities, self.ceiling) if self.ceiling else []
        if beyond:
            raise PolicyDenied(
                f"{manifest.name} {manifest.version} asks for {', '.join(beyond)}: "
                f"more than plugins of `{self.publisher}` are allowed",
                hint="if it should be allowed, raise `capabilities` of this key where it is pinned: "
                "in loader.conf or in the registry's keyring",
                name=manifest.name,
                version=str(manifest.version),
                keyid=self.keyid,
                beyond=beyond,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """All pinned keys and all revocations. No key material is in it twice."""

    core_threshold: int
    core_keys: tuple[CoreKey, ...]
    ext_keys: tuple[ExtKey, ...]
    revoked_keys: tuple[RevokedKey, ...] = ()
    revoked_manifests: frozenset[str] = frozenset()

    def role_of(self, keyid: KeyId) -> KeyRole | None:
        """Return the role of a pinned key, or None where the key is not pinned."""
        if any(key.keyid == keyid for key in self.core_keys):
            return KeyRole.CORE
        return KeyRole.EXT if any(key.keyid == keyid for key in self.ext_keys) else None

    def core_key(self, keyid: KeyId) -> CoreKey:
        """Return a pinned core key.

        Raises: KeyUnknown when it is not pinned; KeyRoleMismatch when it is pinned for ext plugins.
        """
        self._require_role(keyid, KeyRole.CORE)
        return next(key for key in self.core_keys if key.keyid == keyid)

    def ext_key(self, keyid: KeyId) -> ExtKey:
        """Return a publisher's pinned key.

        Raises: KeyUnknown when it is not pinned; KeyRoleMismatch when it is pinned for core plugins.
        """
        self._require_role(keyid, KeyRole.EXT)
        return next(key for key in self.ext_keys if key.keyid == keyid)

    def revocation_of(self, keyid: KeyId) -> RevokedKey | None:
        """Return the revocation of a key, whether it is pinned or not."""
        return next((revoked for revoked in self.revoked_keys if revoked.keyid == keyid), None)

    def merged(self, other: "Keyring") -> "Keyring":
        """Return what holds where this keyring is loader.conf's and the other the registry's.

        A key that both name has the terms of loader.conf, and the earlier expiry of the two; what either revokes is
        revoked; the higher threshold counts.
        Raises: ConfigSyntax when one key has two roles.
        """
        for key in other.core_keys + other.ext_keys:
            if self.role_of(key.keyid) not in {None, other.role_of(key.keyid)}:
                raise _two_roles(key.keyid)
        return Keyring(
            core_threshold=max(self.core_threshold, other.core_threshold),
            core_keys=_united(self.core_keys, other.core_keys),
            ext_keys=_united(self.ext_keys, other.ext_keys),
            revoked_keys=_all_revoked((*self.revoked_keys, *other.revoked_keys)),
            revoked_manifests=self.revoked_manifests | other.revoked_manifests,
        )

    def _require_role(self, keyid: KeyId, needed: KeyRole) -> None:
        role = self.role_of(keyid)
        if role is None:
            raise self._not_pinned(keyid, needed)
        if role is not needed:
            raise KeyRoleMismatch(
                f"the {needed.value} signature is by the key {keyid}, which is trusted for {role.value} plugins only",
                hint=f"sign with a key of the role {needed.value}",
                keyid=keyid,
                role=role.value,
                expected=needed.value,
            )

    def _not_pinned(self, keyid: KeyId, needed: KeyRole) -> KeyUnknown:
        message = (
            f"the {needed.value} signature is by the key {keyid}, "
            "which neither loader.conf nor the registry's keyring names"
        )
        revoked = self.revocation_of(keyid)
        # Nobody should be told how to pin a key that its thief holds.
        if revoked is not None and revoked.reason is RevocationReason.COMPROMISED:
            return KeyUnknown(
                f"{message}, and which is revoked as compromised", hint=f"do not trust it; {_ANOTHER}", keyid=keyid
            )
        return KeyUnknown(
            message,
            hint="if you trust that key, ask its owner for the .pub file and add it to loader.conf, "
            "or have the registry's root holders add it to the keyring",
            keyid=keyid,
        )


_Key = TypeVar("_Key", CoreKey, ExtKey)


def _united(ours: tuple[_Key, ...], theirs: tuple[_Key, ...]) -> tuple[_Key, ...]:
    held = {key.keyid for key in ours}
    expiries = {key.keyid: key.expires for key in theirs}
    united = [replace(key, expires=_earlier(key.expires, expiries.get(key.keyid))) for key in ours]
    united += [key for key in theirs if key.keyid not in held]
    return tuple(united)


def _earlier(one: str | None, other: str | None) -> str | None:
    return min([moment for moment in (one, other) if moment is not None], default=None)


def _all_revoked(revoked: Iterable[RevokedKey]) -> tuple[RevokedKey, ...]:
    """Return one revocation a key: the one that leaves least of what it signed."""
    strictest: dict[KeyId, RevokedKey] = {}
    for one in revoked:
        held = strictest.setdefault(one.keyid, one)
        if held.since is not None and (one.since is None or one.since < held.since):
            strictest[one.keyid] = one
    return tuple(strictest[keyid] for keyid in sorted(strictest))


def _two_roles(keyid: KeyId) -> ConfigSyntax:
    return ConfigSyntax(
        f"the key {keyid} has one role in loader.conf and another in the registry's keyring",
        hint="take it out of one of the two; if it is compromised, revoke it",
        keyid=keyid,
    )


def _excess(asked: Capabilities, ceiling: Capabilities) -> list[str]:
    beyond = [f"{name} = true" for name in ("network", "exec") if getattr(asked, name) and not getattr(ceiling, name)]
    if asked.processes > ceiling.processes:
        beyond.append(f"processes = {asked.processes} (at most {ceiling.processes})")
    for name in ("read", "write", "env"):
        beyond += [f"{name} {shown(value)}" for value in getattr(asked, name) if value not in getattr(ceiling, name)]
    return beyond

"""The keys a loader pins and what each may vouch for. Reads no file and checks no signature."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from keys.public_key import KeyId, KeyRole
from keys.shown import shown
from manifests.errors import KeyNamespaceMismatch, KeyRoleMismatch, KeyUnknown, PolicyDenied
from manifests.manifest import Manifest
from manifests.parts import Capabilities


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreKey:
    keyid: KeyId
    public_key_pem: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtKey:
    """A publisher's key: it vouches for ext plugins of that publisher whose names fit one of the patterns."""

    keyid: KeyId
    public_key_pem: bytes
    publisher: str
    names: tuple[str, ...]
    ceiling: Capabilities | None

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
                f"loader.conf lets it sign {', '.join(f'`{name}`' for name in self.names)} only",
                hint=f'if it should, add "{manifest.name}" to the `names` of this key in loader.conf',
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
                f"more than loader.conf allows plugins of `{self.publisher}`",
                hint="if it should be allowed, raise `capabilities` of this key in loader.conf",
                name=manifest.name,
                version=str(manifest.version),
                keyid=self.keyid,
                beyond=beyond,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """All pinned keys. No key material is in it twice."""

    core_threshold: int
    core_keys: tuple[CoreKey, ...]
    ext_keys: tuple[ExtKey, ...]

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

    def _require_role(self, keyid: KeyId, needed: KeyRole) -> None:
        role = self.role_of(keyid)
        if role is None:
            raise KeyUnknown(
                f"the {needed.value} signature is by the key {keyid}, which loader.conf does not pin",
                hint="if you trust that key, ask its owner for the .pub file and add it to loader.conf",
                keyid=keyid,
            )
        if role is not needed:
            raise KeyRoleMismatch(
                f"the {needed.value} signature is by the key {keyid}, "
                f"which loader.conf pins for {role.value} plugins only",
                hint=f"sign with a key of the role {needed.value}",
                keyid=keyid,
                role=role.value,
                expected=needed.value,
            )


def _excess(asked: Capabilities, ceiling: Capabilities) -> list[str]:
    beyond = [f"{name} = true" for name in ("network", "exec") if getattr(asked, name) and not getattr(ceiling, name)]
    if asked.processes > ceiling.processes:
        beyond.append(f"processes = {asked.processes} (at most {ceiling.processes})")
    for name in ("read", "write", "env"):
        beyond += [f"{name} {shown(value)}" for value in getattr(asked, name) if value not in getattr(ceiling, name)]
    return beyond

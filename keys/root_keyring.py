"""The registry's keyring: keys and revocations that root holders have signed for every host. Checks no signature.

It is the target `keyring.json` of the registry's index, listed by metadata that only the offline root keys can sign.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from keys import key_entries
from keys.key_entries import MAX_KEYS, read_each
from keys.pinned_keys import CoreKey, ExtKey, Keyring, RevokedKey
from keys.public_key import KeyId, KeyRole
from manifests.canonical import canonical_bytes, parse_strict
from manifests.errors import NotFound, SpmError, UsageError
from manifests.fields import Fields, document, many, matching, one_of, sha256, whole
from manifests.names import REGISTRY_ID

if TYPE_CHECKING:
    from keys.key_files import PublicKeyFile

KEYRING_TYPE = "spm.keyring/1"
KEYRING_TARGET = "keyring.json"
MAX_KEYRING_BYTES = 1 << 20
MAX_SERIAL = (1 << 53) - 1
_WHAT = "the registry's keyring"


@dataclass(frozen=True, slots=True, kw_only=True)
class RootKeyring:
    """One edition of a registry's keyring. Editions are numbered by `serial`, from 1 on."""

    registry: str
    serial: int
    keyring: Keyring

    @classmethod
    def empty(cls, registry: str) -> "RootKeyring":
        return cls(registry=registry, serial=1, keyring=Keyring(core_threshold=1, core_keys=(), ext_keys=()))

    @classmethod
    def from_bytes(cls, data: bytes) -> "RootKeyring":
        """Read a keyring as served.

        Raises: TooBig beyond 1 MiB; NotCanonical; TypeMismatch listing every problem.
        """
        return cls.from_dict(parse_strict(data, what=_WHAT, max_bytes=MAX_KEYRING_BYTES))

    @classmethod
    def from_dict(cls, value: Any) -> "RootKeyring":
        with document(_WHAT) as problems:
            top = Fields(value, "", problems)
            top.required("_type", one_of(KEYRING_TYPE))
            made = cls(
                registry=top.required("registry", matching(REGISTRY_ID, "a registry id")),
                serial=top.required("serial", whole(1, MAX_SERIAL)),
                keyring=_read_keyring(top, problems),
            )
            top.close()
            if not problems:
                problems += _contradictions(made.keyring)
        return made

    def to_dict(self) -> dict[str, Any]:
        keyring = self.keyring
        return {
            "_type": KEYRING_TYPE,
            "registry": self.registry,
            "serial": self.serial,
            "core": {
                "threshold": keyring.core_threshold,
                "keys": [key_entries.core_key_to_dict(key) for key in keyring.core_keys],
            },
            "ext": [key_entries.ext_key_to_dict(key) for key in keyring.ext_keys],
            "revoked_keys": [key_entries.revoked_key_to_dict(key) for key in keyring.revoked_keys],
            "revoked_manifests": sorted(keyring.revoked_manifests),
        }

    def to_bytes(self) -> bytes:
        return canonical_bytes(self.to_dict())

    def following(self) -> "RootKeyring":
        """Return the next edition."""
        return replace(self, serial=self.serial + 1)

    def with_key(self, key: "PublicKeyFile", names: tuple[str, ...], expires: str | None) -> "RootKeyring":
        """Return the keyring with one more key; `names` are the plugins that an ext key may sign.

        Raises: UsageError when it is there already, is a root key, or the names do not fit its role.
        """
        if self.keyring.role_of(key.keyid) is not None:
            raise UsageError(
                f"the keyring has the key {key.keyid} already", hint="to change its terms, remove it first"
            )
        if key.role is KeyRole.ROOT or bool(names) is (key.role is KeyRole.CORE):
            raise _terms_refused(key)
        if key.role is KeyRole.CORE:
            core = CoreKey(keyid=key.keyid, public_key_pem=key.public_key_pem, expires=expires)
            return self._checked(replace(self.keyring, core_keys=(*self.keyring.core_keys, core)))
        ext = ExtKey(
            keyid=key.keyid,
            public_key_pem=key.public_key_pem,
            publisher=key.publisher,
            names=tuple(key_entries.read_name_pattern(name) for name in names),
            ceiling=None,
            expires=expires,
        )
        return self._checked(replace(self.keyring, ext_keys=(*self.keyring.ext_keys, ext)))

    def without_key(self, keyid: KeyId) -> "RootKeyring":
        """Return the keyring without a key.

        Raises: NotFound; UsageError when the threshold could no longer be met.
        """
        if self.keyring.role_of(keyid) is None:
            raise NotFound(f"the keyring has no key {keyid!r:.80}", hint="`spm-registry keyring show` lists its keys")
        core_keys = tuple(key for key in self.keyring.core_keys if key.keyid != keyid)
        ext_keys = tuple(key for key in self.keyring.ext_keys if key.keyid != keyid)
        return self._checked(replace(self.keyring, core_keys=core_keys, ext_keys=ext_keys))

    def with_revoked(self, revoked: RevokedKey) -> "RootKeyring":
        """Return the keyring with a key revoked, in the place of an earlier revocation of it.

        Raises: UsageError when the key was revoked as compromised: nothing makes it good again.
        """
        before = self.keyring.revocation_of(revoked.keyid)
        if before is not None and before.since is None and revoked.since is not None:
            raise UsageError(
                f"the key {revoked.keyid} is revoked as compromised, and cannot become one that was only retired",
                hint="let its owner make another key",
                keyid=revoked.keyid,
            )
        others = tuple(one for one in self.keyring.revoked_keys if one.keyid != revoked.keyid)
        return self._checked(replace(self.keyring, revoked_keys=(*others, revoked)))

    def with_revoked_manifest(self, digest: str) -> "RootKeyring":
        """Return the keyring with one manifest revoked by its SHA-256."""
        return self._checked(replace(self.keyring, revoked_manifests=self.keyring.revoked_manifests | {sha256(digest)}))

    def with_threshold(self, threshold: int) -> "RootKeyring":
        """Return the keyring with another number of core keys that must have signed a core plugin.

        Raises: UsageError when it is below 1 or above the number of core keys.
        """
        return self._checked(replace(self.keyring, core_threshold=whole(1, MAX_KEYS)(threshold)))

    def _checked(self, keyring: Keyring) -> "RootKeyring":
        """Raises: UsageError where no host could read it."""
        if problems := _contradictions(keyring):
            raise UsageError("; ".join(problems), hint="see `spm-registry keyring threshold` and `keyring remove`")
        made = replace(self, keyring=keyring)
        try:
            RootKeyring.from_bytes(made.to_bytes())
        except SpmError as error:
            raise UsageError(error.message, hint=error.hint, **error.context) from error
        return made


def _read_keyring(top: Fields, problems: list[str]) -> Keyring:
    core = top.table("core")
    made = Keyring(
        core_threshold=core.required("threshold", whole(1, MAX_KEYS)),
        core_keys=_each(core, "keys", "core.keys", problems, key_entries.read_core_key),
        ext_keys=_each(top, "ext", "ext", problems, key_entries.read_ext_key),
        revoked_keys=_each(top, "revoked_keys", "revoked_keys", problems, key_entries.read_revoked_key),
        revoked_manifests=frozenset(top.required("revoked_manifests", many(sha256)) or ()),
    )
    core.close()
    return made


def _each(parent: Fields, name: str, path: str, problems: list[str], read: Callable[[Fields], Any]) -> tuple[Any, ...]:
    if not parent.has(name):
        problems.append(f"`{path}` is missing")
    return read_each(parent, name, path, problems, read)


def _contradictions(keyring: Keyring) -> list[str]:
    return key_entries.contradictions(
        keyring.core_threshold, keyring.core_keys, keyring.ext_keys, keyring.revoked_keys, revoked_at="revoked_keys"
    )


def _terms_refused(key: "PublicKeyFile") -> UsageError:
    if key.role is KeyRole.ROOT:
        return UsageError(
            f"the root key `{key.name}` signs no plugins", hint=f"`spm-registry root add-key {key.name}.pub`"
        )
    if key.role is KeyRole.CORE:
        return UsageError(
            f"the core key `{key.name}` takes no names: it signs every core plugin", hint="leave out `--names`"
        )
    return UsageError(
        f"the ext key `{key.name}` needs the names of the plugins that it may sign",
        hint=f"add `--names '{key.publisher}-*'`, or `--names '*'` for all",
    )

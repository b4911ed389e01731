"""loader.conf: the one place where trust comes from. Checks no signature and fetches nothing.

Every key is refused that this version does not know, since a misspelt limit would be no limit. A `capabilities` table
is a ceiling: what it leaves out is not allowed; without the table, the publisher's plugins get what they ask for.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keys import key_entries
from keys.key_entries import MAX_KEYS, read_each
from keys.one_read import read_once
from keys.pinned_keys import Keyring
from keys.public_key import KeyRole
from manifests.errors import ConfigMissing, ConfigPermissions, ConfigSyntax, UsageError
from manifests.fields import Fields, many, matching, sha256, whole
from manifests.names import REGISTRY_ID

if TYPE_CHECKING:
    from keys.key_files import PublicKeyFile

__all__ = ["FULL_HASH_BYTES", "MAX_CONF_BYTES", "Keyring", "LoaderConf", "RootPin", "loader_block"]

MAX_CONF_BYTES = 1 << 20
MAX_AGE_DAYS = 3650
FULL_HASH_BYTES = 256 << 20
"""Up to this size, every file of a plugin is hashed at each load; beyond it, receipts may stand for big files."""

_MEND = "correct it, or get loader.conf anew from whoever runs your registry (`spm-registry loader-conf`)"

_read_registry_id = matching(REGISTRY_ID, "a registry id (a-z 0-9 . - and 64 at most)")
_read_url = matching(
    r"https?://[A-Za-z0-9.:\[\]_-]{1,255}(?:/[A-Za-z0-9._~%/-]*)?",
    "an http or https URL without user, query or fragment",
)
_read_layer = matching(r"L[1-9][0-9]?", "a sandbox layer such as `L6`")


@dataclass(frozen=True, slots=True, kw_only=True)
class RootPin:
    """The root metadata from which all trust in a registry's index follows: its version, and the digest of its file."""

    version: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderConf:
    """What a host trusts: one registry, its root, the keys, and what it may do without.

    Ages are in days: how old the last trusted state may be at a load (None: any age), and how long past its expiry a
    bundle may still be brought in.
    """

    registry_id: str
    registry_url: str
    root: RootPin | None
    keyring: Keyring
    accept_missing: tuple[str, ...]
    memory_bytes: int | None
    load_max_age_days: int | None = None
    full_hash_bytes: int = FULL_HASH_BYTES
    bundle_max_age_days: int = 0
    registry_names: tuple[str, ...] | None = None
    """Patterns of the names for which this registry alone is asked; None where the file claims none."""

    def require_root(self) -> RootPin:
        """Return the pinned root.

        Raises: ConfigSyntax where the file pins none.
        """
        if self.root is None:
            raise ConfigSyntax(
                f"loader.conf pins no root of the registry `{self.registry_id}` (`[root]` with `version` and "
                "`sha256`), and without it nothing says that an index is the registry's own",
                hint="it was written before the registry had a root: its administrator runs `spm-registry root init` "
                "once, then `spm-registry loader-conf --output loader.conf`",
            )
        return self.root

    @classmethod
    def read(cls, path: Path) -> "LoaderConf":
        """Read the file.

        Raises: ConfigPermissions when others than root and its user could have written it, or when someone other than
        root waives a sandbox layer; ConfigSyntax naming every problem of its text.
        """
        data, owner = _read_guarded(path)
        try:
            conf = cls.parse(data.decode("utf-8"), what=str(path), hint=_MEND)
        except UnicodeDecodeError as error:
            raise ConfigSyntax(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}", hint=_MEND) from error
        if conf.accept_missing and owner != 0:
            raise ConfigPermissions(
                f"{path} waives the sandbox layers {', '.join(conf.accept_missing)}, but it belongs to the user "
                f"{owner}: only a file that root owns may waive a layer",
                hint=f"`sudo chown root {path}`, or take the layers out of `sandbox.accept_missing`",
                path=str(path),
                owner=owner,
            )
        return conf

    @classmethod
    def parse(cls, source: str, *, what: str = "loader.conf", hint: str = "") -> "LoaderConf":
        """Return the configuration in TOML text; `what` is how messages call it, `hint` what they advise.

        Raises: ConfigSyntax listing every problem with its path.
        """
        problems: list[str] = []
        conf = _read_document(Fields(_toml(source, what, hint), "", problems), problems)
        if problems or conf is None:
            raise ConfigSyntax(f"{what} is refused: " + "; ".join(problems), hint=hint, path=what, problems=problems)
        return conf


def loader_block(public_key: "PublicKeyFile", names: tuple[str, ...]) -> str:
    """Return the lines of loader.conf that pin a key; `names` are the plugins an ext key may sign.

    Raises: UsageError for a root key, when an ext key has no names, or a core key has some.
    """
    if public_key.role is KeyRole.ROOT:
        raise UsageError(
            f"the root key `{public_key.name}` signs no plugins: it vouches for a registry's index",
            hint=f"give it to `spm-registry root init {public_key.name}.pub`; loader.conf then pins the root",
            name=public_key.name,
        )
    if bool(names) is (public_key.role is KeyRole.CORE):
        needed = "takes no names" if public_key.role is KeyRole.CORE else "needs the names of the plugins it may sign"
        raise UsageError(f"the {public_key.role.value} key `{public_key.name}` {needed}", name=public_key.name)
    pem = public_key.public_key_pem.decode("ascii")
    pinned = f'keyid = "{public_key.keyid}"\npublic_key = """\n{pem}"""\n'
    if public_key.role is KeyRole.CORE:
        return f"[[core.keys]]\n{pinned}"
    listed = ", ".join(f'"{key_entries.read_name_pattern(name)}"' for name in names)
    return f'[[ext]]\npublisher = "{public_key.publisher}"\n{pinned}names = [{listed}]\n'


def _read_guarded(path: Path) -> tuple[bytes, int]:
    try:
        data, status = read_once(path, MAX_CONF_BYTES)
    except FileNotFoundError as error:
        raise ConfigMissing(
            f"{path} is not there, and without it nothing says whom to trust",
            hint="get loader.conf from whoever runs your registry, and put it there",
            path=str(path),
        ) from error
    except OSError as error:
        raise ConfigSyntax(
            f"{path} cannot be read: {error.strerror}",
            hint="loader.conf says which registry and keys to trust; get it from whoever runs your registry",
            path=str(path),
        ) from error
    _require_guarded(path, status)
    if len(data) > MAX_CONF_BYTES:
        raise ConfigSyntax(f"{path} has more than the {MAX_CONF_BYTES} bytes allowed", hint=_MEND, path=str(path))
    return data, status.st_uid


def _require_guarded(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigPermissions(f"{path} is not a regular file", path=str(path))
    mode = stat.S_IMODE(status.st_mode)
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigPermissions(
            f"{path} has the mode {mode:04o}: its group or everyone may write it, so it cannot say whom to trust",
            hint=f"`chmod go-w {path}`, after a look at what it says",
            path=str(path),
            mode=f"{mode:04o}",
        )
    if status.st_uid not in {0, os.geteuid()}:
        raise ConfigPermissions(
            f"{path} belongs to the user {status.st_uid}: only root and the user who runs spm ({os.geteuid()}) "
            "may say whom to trust",
            hint=f"`sudo chown root {path}`, after a look at what it says",
            path=str(path),
            owner=status.st_uid,
        )


def _toml(source: str, what: str, hint: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        raise ConfigSyntax(f"{what} is not TOML: {error}", hint=hint, path=what) from error


def _read_document(top: Fields, problems: list[str]) -> LoaderConf | None:
    registry, sandbox, limits, load, bundle = (
        top.table(name) for name in ("registry", "sandbox", "limits", "load", "bundle")
    )
    conf = LoaderConf(
        registry_id=registry.required("id", _read_registry_id),
        registry_url=(registry.required("url", _read_url) or "").rstrip("/"),
        root=_read_root(top),
        keyring=_read_keyring(top, problems),
        accept_missing=sandbox.optional("accept_missing", many(_read_layer, 99)) or (),
        memory_bytes=limits.optional("memory_bytes", whole(1, 1 << 53)),
        load_max_age_days=load.optional("max_age_days", whole(1, MAX_AGE_DAYS)),
        full_hash_bytes=_or(load.optional("full_hash_bytes", whole(0, 1 << 53)), FULL_HASH_BYTES),
        bundle_max_age_days=_or(bundle.optional("max_age_days", whole(0, MAX_AGE_DAYS)), 0),
        registry_names=registry.optional("names", _read_claims),
    )
    for fields in (registry, sandbox, limits, load, bundle, top):
        fields.close()
    return None if problems else conf


def _read_claims(value: Any) -> tuple[str, ...]:
    names = many(key_entries.read_name_pattern, MAX_KEYS)(value)
    if not names:
        raise UsageError("it is empty, so this registry would be asked for nothing; leave it out where it claims none")
    return names


def _read_root(top: Fields) -> RootPin | None:
    if not top.has("root"):
        return None
    root = top.table("root")
    pin = RootPin(version=root.required("version", whole(1, 1 << 31)), sha256=root.required("sha256", sha256))
    root.close()
    return pin


def _read_keyring(top: Fields, problems: list[str]) -> Keyring:
    core, revoked = top.table("core"), top.table("revoked")
    threshold = core.required("threshold", whole(1, MAX_KEYS)) if top.has("core") else 1
    core_keys = read_each(core, "keys", "core.keys", problems, key_entries.read_core_key)
    ext_keys = read_each(top, "ext", "ext", problems, key_entries.read_ext_key)
    revoked_keys = read_each(revoked, "keys", "revoked.keys", problems, key_entries.read_revoked_key)
    manifests = revoked.optional("manifests", many(sha256)) or ()
    for fields in (core, revoked):
        fields.close()
    if not problems:
        problems += key_entries.contradictions(threshold, core_keys, ext_keys, revoked_keys)
    return Keyring(
        core_threshold=threshold,
        core_keys=core_keys,
        ext_keys=ext_keys,
        revoked_keys=revoked_keys,
        revoked_manifests=frozenset(manifests),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value

"""loader.conf: the one place where trust comes from. Checks no signature and fetches nothing.

Every key is refused that this version does not know, since a misspelt limit would be no limit. A `capabilities` table
is a ceiling: what it leaves out is not allowed; without the table, the publisher's plugins get what they ask for.
"""

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from keys.one_read import read_once
from keys.pinned_keys import CoreKey, ExtKey, Keyring
from keys.public_key import KEYID_PATTERN, KeyId, KeyRole, keyid_of_pem
from manifests.errors import ConfigMissing, ConfigPermissions, ConfigSyntax, UsageError
from manifests.fields import Fields, many, matching, nested, whole
from manifests.names import REGISTRY_ID, parse_name
from manifests.parts import Capabilities

if TYPE_CHECKING:
    from keys.key_files import PublicKeyFile

__all__ = ["MAX_CONF_BYTES", "Keyring", "LoaderConf", "loader_block"]

MAX_CONF_BYTES = 1 << 20
MAX_KEYS = 1024

T = TypeVar("T")

_read_registry_id = matching(REGISTRY_ID, "a registry id (a-z 0-9 . - and 64 at most)")
_read_url = matching(
    r"https?://[A-Za-z0-9.:\[\]_-]{1,255}(?:/[A-Za-z0-9._~%/-]*)?",
    "an http or https URL without user, query or fragment",
)
_read_name = matching(r"[a-z0-9*?-]{1,64}", "a pattern of plugin names (a-z 0-9 - with * and ?)")
_read_layer = matching(r"L[1-9][0-9]?", "a sandbox layer such as `L6`")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderConf:
    """What a host trusts: one registry, the keys, and what it may do without."""

    registry_id: str
    registry_url: str
    keyring: Keyring
    accept_missing: tuple[str, ...]
    memory_bytes: int | None

    @classmethod
    def read(cls, path: Path) -> "LoaderConf":
        """Read the file.

        Raises: ConfigPermissions when others than root and its user could have written it, or when someone other than
        root waives a sandbox layer; ConfigSyntax naming every problem of its text.
        """
        data, owner = _read_guarded(path)
        try:
            conf = cls.parse(data.decode("utf-8"), what=str(path))
        except UnicodeDecodeError as error:
            raise ConfigSyntax(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error
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
    def parse(cls, source: str, *, what: str = "loader.conf") -> "LoaderConf":
        """Return the configuration in TOML text; `what` is how messages call it.

        Raises: ConfigSyntax listing every problem with its path.
        """
        problems: list[str] = []
        conf = _read_document(Fields(_toml(source, what), "", problems), problems)
        if problems or conf is None:
            raise ConfigSyntax(f"{what} is refused: " + "; ".join(problems), path=what, problems=problems)
        return conf


def loader_block(public_key: "PublicKeyFile", names: tuple[str, ...]) -> str:
    """Return the lines of loader.conf that pin a key; `names` are the plugins an ext key may sign.

    Raises: UsageError when an ext key has no names, or a core key has some (a core key signs every core plugin).
    """
    if bool(names) is (public_key.role is KeyRole.CORE):
        needed = "takes no names" if public_key.role is KeyRole.CORE else "needs the names of the plugins it may sign"
        raise UsageError(f"the {public_key.role.value} key `{public_key.name}` {needed}", name=public_key.name)
    pem = public_key.public_key_pem.decode("ascii")
    pinned = f'keyid = "{public_key.keyid}"\npublic_key = """\n{pem}"""\n'
    if public_key.role is KeyRole.CORE:
        return f"[[core.keys]]\n{pinned}"
    listed = ", ".join(f'"{_read_name(name)}"' for name in names)
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
        raise ConfigSyntax(f"{path} has more than the {MAX_CONF_BYTES} bytes allowed", path=str(path))
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


def _toml(source: str, what: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(source)
    except (ValueError, RecursionError) as error:
        raise ConfigSyntax(f"{what} is not TOML: {error}", path=what) from error


def _read_document(top: Fields, problems: list[str]) -> LoaderConf | None:
    registry, core, sandbox, limits = (top.table(name) for name in ("registry", "core", "sandbox", "limits"))
    registry_id = registry.required("id", _read_registry_id)
    registry_url = registry.required("url", _read_url)
    threshold = core.required("threshold", whole(1, MAX_KEYS))
    core_keys = _read_each(core, "keys", "core.keys", problems, _read_core_key)
    ext_keys = _read_each(top, "ext", "ext", problems, _read_ext_key)
    accept_missing = sandbox.optional("accept_missing", many(_read_layer, 99))
    memory_bytes = limits.optional("memory_bytes", whole(1, 1 << 53))
    for fields in (registry, core, sandbox, limits, top):
        fields.close()
    if problems:
        return None
    problems += _contradictions(threshold, core_keys, ext_keys)
    return LoaderConf(
        registry_id=registry_id,
        registry_url=registry_url.rstrip("/"),
        keyring=Keyring(core_threshold=threshold, core_keys=core_keys, ext_keys=ext_keys),
        accept_missing=accept_missing or (),
        memory_bytes=memory_bytes,
    )


def _read_each(parent: Fields, name: str, path: str, problems: list[str], read: Callable[[Fields], T]) -> tuple[T, ...]:
    found = []
    for place, value in enumerate(parent.optional(name, many(lambda item: item, MAX_KEYS)) or ()):
        fields = Fields(value, f"{path}[{place}].", problems)
        found.append(read(fields))
        fields.close()
    return tuple(found)


def _read_core_key(fields: Fields) -> CoreKey:
    keyid, pem = _read_material(fields)
    return CoreKey(keyid=keyid, public_key_pem=pem)


def _read_ext_key(fields: Fields) -> ExtKey:
    keyid, pem = _read_material(fields)
    return ExtKey(
        keyid=keyid,
        public_key_pem=pem,
        publisher=fields.required("publisher", parse_name),
        names=fields.required("names", _read_names),
        ceiling=fields.optional("capabilities", nested(Capabilities.of)),
    )


def _read_material(fields: Fields) -> tuple[KeyId, bytes]:
    keyid = fields.required("keyid", matching(KEYID_PATTERN.pattern, "a key id of 64 lower-case hex digits"))

    def read_pem(value: Any) -> bytes:
        if not isinstance(value, str):
            raise UsageError("it is not text")
        pem = value.encode("utf-8", "replace")
        if keyid is not None and keyid_of_pem(pem) != keyid:
            raise UsageError(f"its key id is {keyid_of_pem(pem)}, not the {keyid} written beside it")
        return pem

    return KeyId(keyid), fields.required("public_key", read_pem)


def _read_names(value: Any) -> tuple[str, ...]:
    names = many(_read_name, MAX_KEYS)(value)
    if not names:
        raise UsageError('it is empty, so this key could sign nothing; write `["*"]` to let it sign every ext plugin')
    return names


def _contradictions(threshold: int, core_keys: tuple[CoreKey, ...], ext_keys: tuple[ExtKey, ...]) -> list[str]:
    """Return what no single member shows: a key that is there twice, a threshold that nobody can meet."""
    places = [(f"core.keys[{place}]", key.keyid) for place, key in enumerate(core_keys)]
    places += [(f"ext[{place}]", key.keyid) for place, key in enumerate(ext_keys)]
    first: dict[KeyId, str] = {}
    problems = [
        f"`{where}` and `{earlier}` are the same key {keyid}"
        for where, keyid in places
        if (earlier := first.setdefault(keyid, where)) != where
    ]
    if core_keys and threshold > len(core_keys):
        problems.append(f"`core.threshold` is {threshold}, but there are only {len(core_keys)} core keys")
    return problems

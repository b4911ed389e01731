"""How documents write keys and revocations: loader.conf and the registry's keyring alike. Trusts none of them."""

from collections.abc import Callable
from typing import Any, TypeVar

from keys.pinned_keys import CoreKey, ExtKey, RevocationReason, RevokedKey
from keys.public_key import KEYID_PATTERN, KeyId, keyid_of_pem
from manifests.errors import UsageError
from manifests.fields import Fields, many, matching, moment, nested, one_of
from manifests.names import parse_name
from manifests.parts import Capabilities

MAX_KEYS = 1024

T = TypeVar("T")

read_keyid = matching(KEYID_PATTERN.pattern, "a key id of 64 lower-case hex digits")
read_name_pattern = matching(r"[a-z0-9*?-]{1,64}", "a pattern of plugin names (a-z 0-9 - with * and ?)")


def read_each(parent: Fields, name: str, path: str, problems: list[str], read: Callable[[Fields], T]) -> tuple[T, ...]:
    """Return a member that is a list of tables, each problem noted with its path."""
    found = []
    for place, value in enumerate(parent.optional(name, many(lambda item: item, MAX_KEYS)) or ()):
        fields = Fields(value, f"{path}[{place}].", problems)
        found.append(read(fields))
        fields.close()
    return tuple(found)


def read_core_key(fields: Fields) -> CoreKey:
    keyid, pem = _read_material(fields)
    return CoreKey(keyid=keyid, public_key_pem=pem, expires=fields.optional("expires", moment))


def read_ext_key(fields: Fields) -> ExtKey:
    keyid, pem = _read_material(fields)
    return ExtKey(
        keyid=keyid,
        public_key_pem=pem,
        publisher=fields.required("publisher", parse_name),
        names=fields.required("names", _read_names),
        ceiling=fields.optional("capabilities", nested(Capabilities.of)),
        expires=fields.optional("expires", moment),
    )


def read_revoked_key(fields: Fields) -> RevokedKey:
    reason = fields.required("reason", lambda value: RevocationReason(one_of("retired", "compromised")(value)))
    is_retired = reason is RevocationReason.RETIRED
    since = fields.required("since", moment) if is_retired else fields.optional("since", _read_no_moment)
    return RevokedKey(keyid=KeyId(fields.required("keyid", read_keyid)), reason=reason, since=since)


def core_key_to_dict(key: CoreKey) -> dict[str, Any]:
    return _without_none(keyid=key.keyid, public_key=key.public_key_pem.decode("ascii"), expires=key.expires)


def ext_key_to_dict(key: ExtKey) -> dict[str, Any]:
    return _without_none(
        keyid=key.keyid,
        public_key=key.public_key_pem.decode("ascii"),
        publisher=key.publisher,
        names=list(key.names),
        capabilities=key.ceiling.to_dict() if key.ceiling is not None else None,
        expires=key.expires,
    )


def revoked_key_to_dict(key: RevokedKey) -> dict[str, Any]:
    return _without_none(keyid=key.keyid, reason=key.reason.value, since=key.since)


def contradictions(
    threshold: int | None,
    core_keys: tuple[CoreKey, ...],
    ext_keys: tuple[ExtKey, ...],
    revoked: tuple[RevokedKey, ...],
    *,
    revoked_at: str = "revoked.keys",
) -> list[str]:
    """Return what no single member shows: a key that is there twice, a threshold that nobody can meet."""
    places = [(f"core.keys[{place}]", key.keyid) for place, key in enumerate(core_keys)]
    places += [(f"ext[{place}]", key.keyid) for place, key in enumerate(ext_keys)]
    problems = _twins(places) + _twins([(f"{revoked_at}[{place}]", key.keyid) for place, key in enumerate(revoked)])
    if core_keys and threshold is not None and threshold > len(core_keys):
        held = "is only 1 core key" if len(core_keys) == 1 else f"are only {len(core_keys)} core keys"
        problems.append(f"`core.threshold` is {threshold}, but there {held}")
    return problems


def _twins(places: list[tuple[str, KeyId]]) -> list[str]:
    first: dict[KeyId, str] = {}
    return [
        f"`{where}` and `{earlier}` are the same key {keyid}"
        for where, keyid in places
        if (earlier := first.setdefault(keyid, where)) != where
    ]


def _read_material(fields: Fields) -> tuple[KeyId, bytes]:
    keyid = fields.required("keyid", read_keyid)

    def read_pem(value: Any) -> bytes:
        if not isinstance(value, str):
            raise UsageError("it is not text")
        pem = value.encode("utf-8", "replace")
        if keyid is not None and keyid_of_pem(pem) != keyid:
            raise UsageError(f"its key id is {keyid_of_pem(pem)}, not the {keyid} written beside it")
        return pem

    return KeyId(keyid), fields.required("public_key", read_pem)


def _read_names(value: Any) -> tuple[str, ...]:
    names = many(read_name_pattern, MAX_KEYS)(value)
    if not names:
        raise UsageError('it is empty, so this key could sign nothing; write `["*"]` to let it sign every ext plugin')
    return names


def _read_no_moment(value: Any) -> str:
    raise UsageError("a compromised key is revoked for all that it ever signed: its thief can write any date")


def _without_none(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}

"""Who may do what: one table, and what is not in it is refused. Knows no routes and no tokens."""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from manifests.errors import AuthRequired, ScopeRefused


class Role(StrEnum):
    """What a caller is, from the least to the most."""

    ANONYMOUS = "anonymous"
    READER = "reader"
    PUBLISHER = "publisher"
    ADMIN = "admin"


class Action(StrEnum):
    """What a route does. Each route names exactly one."""

    SEE_HEALTH = "see-health"
    SEE_REGISTRY = "see-registry"
    READ_INDEX = "read-index"
    READ_MANIFEST = "read-manifest"
    READ_BLOB = "read-blob"
    SEARCH = "search"
    WHOAMI = "whoami"
    OPEN_UPLOAD = "open-upload"
    SEE_UPLOAD = "see-upload"
    SEND_BLOB = "send-blob"
    COMMIT_UPLOAD = "commit-upload"
    YANK = "yank"
    UNYANK = "unyank"


_OPEN = frozenset(
    {
        Action.SEE_HEALTH,
        Action.SEE_REGISTRY,
        Action.READ_INDEX,
        Action.READ_MANIFEST,
        Action.READ_BLOB,
        Action.SEARCH,
    }
)
_READING = _OPEN | {Action.WHOAMI}
_PUBLISHING = _READING | {
    Action.OPEN_UPLOAD,
    Action.SEE_UPLOAD,
    Action.SEND_BLOB,
    Action.COMMIT_UPLOAD,
    Action.YANK,
    Action.UNYANK,
}

ALLOWED: dict[Role, frozenset[Action]] = {
    Role.ANONYMOUS: _OPEN,
    Role.READER: _READING,
    Role.PUBLISHER: _PUBLISHING,
    Role.ADMIN: _PUBLISHING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who is asking. `label` is a person or a machine; several tokens may carry one label."""

    role: Role
    label: str = ""
    names: tuple[str, ...] = ()
    token_id: str = ""


ANYONE = Caller(role=Role.ANONYMOUS)


def require(caller: Caller, action: Action) -> None:
    """Let a caller do this, or refuse.

    Raises:
        AuthRequired: nobody in particular is asking, and this needs a token.
        ScopeRefused: the caller's role does not include this.
    """
    if action in ALLOWED[caller.role]:
        return
    if caller.role is Role.ANONYMOUS:
        raise AuthRequired(
            f"`{action}` needs a token, and the request carries none",
            hint="log in with `spm login`; an admin makes tokens with `spm-registry token new`",
        )
    raise ScopeRefused(
        f"token `{caller.label}` has the role {caller.role}, which may not `{action}`",
        hint="ask an admin of this registry for a token of another role",
        role=caller.role.value,
        action=action.value,
    )


def scope_problem(caller: Caller, name: str, owners: tuple[str, ...]) -> str | None:
    """Say why this caller may not change this name, or None when they may.

    `owners` is empty for a name that nobody has published yet.
    """
    if caller.role is Role.ADMIN:
        return None
    if not any(fnmatchcase(name, pattern) for pattern in caller.names):
        patterns = ", ".join(f"`{pattern}`" for pattern in caller.names) or "none"
        return f"token `{caller.label}` may not change `{name}`: its name patterns are {patterns}"
    if owners and caller.label not in owners:
        listed = ", ".join(f"`{owner}`" for owner in owners)
        return f"token `{caller.label}` may not change `{name}`: it belongs to {listed}"
    return None

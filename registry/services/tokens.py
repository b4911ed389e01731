"""Tokens: made, checked for shape, and recognised by their HMAC. Does not decide what a token may do."""

import hmac
import secrets
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from manifests.errors import AuthRequired, NotFound, RegistryRefused, TokenExpired, UsageError
from registry.services.policy import Caller, Role
from registry.storage.records import Records
from registry.storage.rows import AuditRow, TokenRow

PREFIX = "spm_"
DEFAULT_DAYS = 90
MAX_DAYS = 3650
_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_BODY_LENGTH = 43
_CHECK_LENGTH = 6
_DAY = 86_400
# A use is noted at most this often, so that reading a token does not mean writing the database each time.
_TOUCH_SECONDS = 300
_MAX_LABEL = 64
_MAX_PATTERNS = 64
_REVOKE = "token-revoke"
_NEW_ONE = "ask an admin for a new one (`spm-registry token new`), then `spm login`"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """What an admin asks for: who, which role, which names, for how long."""

    label: str
    role: Role
    names: tuple[str, ...] = ()
    days: int = DEFAULT_DAYS


def new_text() -> str:
    """Make a token's text: 32 random bytes and a checksum, so that a mistyped one is known without a look-up."""
    body = _base62(int.from_bytes(secrets.token_bytes(32)), _BODY_LENGTH)
    return f"{PREFIX}{body}{_checksum(body)}"


def is_well_formed(text: str) -> bool:
    """Tell whether a text can be a token: its prefix, length and checksum are right."""
    if not text.startswith(PREFIX) or len(text) != len(PREFIX) + _BODY_LENGTH + _CHECK_LENGTH or not text.isascii():
        return False
    body, check = text[len(PREFIX) : -_CHECK_LENGTH], text[-_CHECK_LENGTH:]
    return hmac.compare_digest(check, _checksum(body))


def issue(records: Records, request: TokenRequest, *, secret: bytes, actor: str, now: int) -> tuple[str, TokenRow]:
    """Write a new token and return its text, which exists nowhere else."""
    _check(request)
    text = new_text()
    row = TokenRow(
        id=secrets.token_hex(8),
        mac=_mac(secret, text),
        label=request.label,
        role=request.role.value,
        names=request.names,
        created_at=now,
        expires_at=now + request.days * _DAY,
        last_used_at=None,
    )
    records.add_token(row)
    _record(records, "token-new", row, actor=actor, now=now)
    return text, row


def authenticate(records: Records, text: str, *, secret: bytes, now: int) -> TokenRow:
    """Return the token that a text is.

    Raises:
        AuthRequired: no such token, or a revoked one; a malformed one is refused without a look-up.
        TokenExpired: its time is over.
    """
    mac = _mac(secret, text)
    row = records.token_by_mac(mac) if is_well_formed(text) else None
    if row is None or not hmac.compare_digest(row.mac, mac):
        raise unknown_token()
    if row.expires_at <= now:
        raise _over(row, revoked_at(records, row))
    return row


def revoked_at(records: Records, row: TokenRow) -> int | None:
    """Return when a token was revoked, if it was: the audit log knows, its row has only when its life ended."""
    return records.first_audit(_REVOKE, row.id)


def _over(row: TokenRow, revoked: int | None) -> RegistryRefused:
    if revoked is None:
        message = f"the token `{row.label}` has expired"
        return TokenExpired(message, hint=_NEW_ONE, label=row.label, expired_at=row.expires_at)
    day = datetime.fromtimestamp(revoked, UTC).date().isoformat()
    message = f"the token `{row.label}` was revoked on {day}"
    return AuthRequired(message, hint=_NEW_ONE, label=row.label, revoked_at=revoked)


def unknown_token() -> AuthRequired:
    """Say that a token is not one of ours, without saying why."""
    return AuthRequired("this registry does not know the token", hint="log in again with `spm login`")


def is_touch_due(row: TokenRow, now: int) -> bool:
    """Tell whether the last noted use is old enough to note this one."""
    return row.last_used_at is None or now - row.last_used_at >= _TOUCH_SECONDS


def caller_of(row: TokenRow) -> Caller:
    """Return who a token stands for."""
    return Caller(role=Role(row.role), label=row.label, names=row.names, token_id=row.id)


def revoke(records: Records, token_id: str, *, actor: str, now: int) -> TokenRow:
    """End a token's life now.

    Raises:
        NotFound: there is no such token.
    """
    row = next((row for row in records.tokens() if row.id == token_id), None)
    if row is None:
        raise NotFound(f"there is no token with the id `{token_id}`", hint="see `spm-registry token list`")
    records.expire_token(row.id, min(now, row.expires_at))
    _record(records, _REVOKE, row, actor=actor, now=now)
    return row


def _record(records: Records, action: str, row: TokenRow, *, actor: str, now: int) -> None:
    detail = f"{row.label} {row.role} {' '.join(row.names)}".rstrip()
    serial = records.serial()
    records.add_audit(AuditRow(at=now, actor=actor, action=action, subject=row.id, detail=detail, serial=serial))


def _check(request: TokenRequest) -> None:
    if not request.label.isprintable() or not 1 <= len(request.label) <= _MAX_LABEL or request.label.strip() == "":
        raise UsageError(f"{request.label!r} is not a label: write 1 to {_MAX_LABEL} printable characters")
    if request.role is Role.ANONYMOUS:
        raise UsageError("a token cannot have the role anonymous")
    if not 1 <= request.days <= MAX_DAYS:
        raise UsageError(f"a token lives 1 to {MAX_DAYS} days, not {request.days}")
    if request.role is Role.PUBLISHER and not request.names:
        raise UsageError(
            "a publisher's token needs the names that it may publish",
            hint="add `--names 'audio-*'`, or `--names '*'` for all",
        )
    _check_patterns(request.names)


def _check_patterns(names: Iterable[str]) -> None:
    patterns = tuple(names)
    allowed = set("abcdefghijklmnopqrstuvwxyz0123456789-*?[]!")
    wrong = [pattern for pattern in patterns if not pattern or len(pattern) > 64 or not set(pattern) <= allowed]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is not a name pattern: write plugin names with `*` or `?`, such as `audio-*`")
    if len(patterns) > _MAX_PATTERNS:
        raise UsageError(f"a token may have {_MAX_PATTERNS} name patterns, not {len(patterns)}")


def _mac(secret: bytes, text: str) -> str:
    return hmac.new(secret, text.encode("utf-8", "surrogateescape"), sha256).hexdigest()


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode("ascii")), _CHECK_LENGTH)


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, place = divmod(number, 62)
        digits.append(_ALPHABET[place])
    return "".join(reversed(digits))

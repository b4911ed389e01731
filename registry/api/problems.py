"""Refusals as `application/problem+json`: the one translator from SpmError to HTTP. Logs what is unexpected."""

import json
import logging
import traceback
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from manifests.errors import (
    AuthRequired,
    ContentError,
    FreshnessError,
    HistoryError,
    IncompatibleTarget,
    KeyRefused,
    LimitReached,
    NotFound,
    PolicyDenied,
    PublishRefused,
    RegistryRefused,
    ResolutionError,
    Revoked,
    ScopeRefused,
    SignatureRefused,
    SpmError,
    TokenExpired,
    TooBig,
    UsageError,
    VersionExists,
    WasteTrapFound,
)

CONTENT_TYPE = "application/problem+json"
logger = logging.getLogger("registry")

# The first family that fits decides, so narrow ones stand before wide ones.
_STATUS: tuple[tuple[type[SpmError], int], ...] = (
    (AuthRequired, 401),
    (TokenExpired, 401),
    (ScopeRefused, 403),
    (VersionExists, 409),
    (PublishRefused, 422),
    (NotFound, 404),
    (ResolutionError, 422),
    (TooBig, 413),
    (ContentError, 422),
    (UsageError, 400),
    (LimitReached, 429),
    (SignatureRefused, 422),
    (KeyRefused, 422),
    (Revoked, 422),
    (FreshnessError, 422),
    (HistoryError, 422),
    (WasteTrapFound, 422),
    (IncompatibleTarget, 422),
    (PolicyDenied, 422),
    # What only a broken registry can raise: its own configuration, or a refusal that belongs to another program.
    (SpmError, 500),
)
_STATUS_BY_REASON = {
    "busy": 503,
    "incomplete": 409,
    "length-required": 411,
    "method": 405,
    "offset": 409,
    "range": 416,
    "slow-body": 408,
    "storage-full": 507,
    "upload-busy": 409,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One answer that refuses: status, headers and body, for any WSGI layer to send."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = field(default=())

    @property
    def status_line(self) -> str:
        """Return the status as WSGI wants it."""
        return f"{self.status} {HTTPStatus(self.status).phrase}"


def problem_of(error: SpmError, *headers: tuple[str, str]) -> Problem:
    """Return the answer for a refusal; one that concerns only this machine is logged and not told."""
    status = _status_of(error)
    if status == 500:
        return internal_problem(error)
    context = {name: value for name, value in error.context.items() if name != "problems"}
    document: dict[str, Any] = {
        "type": error.reason,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "hint": error.hint,
        "context": context,
    }
    problems = error.context.get("problems", ())
    if isinstance(error, RegistryRefused) and problems:
        document["problems"] = [{"type": each["reason"], "detail": each["message"]} for each in problems]
    return _problem(status, document, (*_status_headers(status), *headers))


def internal_problem(error: BaseException, **facts: str) -> Problem:
    """Log what nobody foresaw, and return an answer that tells nothing of it."""
    trace = "".join(traceback.format_exception(error))
    logger.error("unexpected %s", type(error).__name__, extra={"facts": {**facts, "trace": trace}})
    document = {
        "type": "internal",
        "title": HTTPStatus(500).phrase,
        "status": 500,
        "detail": "the registry failed while answering; its log says more",
        "hint": "",
        "context": {},
    }
    return _problem(500, document, ())


def _status_of(error: SpmError) -> int:
    if type(error) is RegistryRefused:
        return _STATUS_BY_REASON[error.reason]
    return next(status for family, status in _STATUS if isinstance(error, family))


def _status_headers(status: int) -> tuple[tuple[str, str], ...]:
    if status == 401:
        return (("WWW-Authenticate", 'Bearer realm="spm"'),)
    if status in (429, 503):
        return (("Retry-After", "2"),)
    return ()


def _problem(status: int, document: dict[str, Any], headers: tuple[tuple[str, str], ...]) -> Problem:
    body = json.dumps(document, ensure_ascii=False, default=str).encode()
    fixed = (
        ("Content-Type", CONTENT_TYPE),
        ("Content-Length", str(len(body))),
        ("Cache-Control", "no-store"),
    )
    return Problem(status=status, body=body, headers=(*fixed, *headers))

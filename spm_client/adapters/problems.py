"""From a registry's answer to a refusal of spm: one of the three translators. Sends nothing."""

import json
from typing import Any

from manifests import errors
from manifests.errors import BadResponse, PublishRefused, SpmError
from manifests.parts import TRAPS
from manifests.plain import plain

_MAX_TEXT = 2000
_MAX_PROBLEMS = 100
_OF_REGISTRIES = ("incomplete", "length-required", "method", "offset", "range", "upload-busy")
_FAMILIES = {"limit": errors.LimitReached, "unknown": errors.Undecided}
_OF_READS = (errors.NotFound, errors.RegistryRefused, errors.RegistryUnreachable, errors.LimitReached)
"""What a registry may say of what it serves. All else this host finds itself, or it is said of what is published."""
_OF_PUBLISHES = (errors.PublishRefused, errors.VersionExists)
_STRANGE = "this is not an answer of a registry: check `registry.url` in loader.conf and the way there"
_FAILED = "the registry, or what stands before it, has failed: run the command again later, or ask its administrator"


def _subclasses(kind: type[SpmError]) -> list[type[SpmError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _subclasses(child))]


_BY_REASON: dict[str, type[SpmError]] = {
    **{kind.default_reason: kind for kind in _subclasses(errors.SpmError)[1:] if kind.__module__ == errors.__name__},
    **dict.fromkeys(_OF_REGISTRIES, errors.RegistryRefused),
    **dict.fromkeys(TRAPS, errors.WasteTrapFound),
}


def refusal_of(status: int, content_type: str, body: bytes, *, url: str, is_read: bool) -> SpmError:
    """Return the refusal that a registry's problem document names.

    An answer without one says nothing about plugins or versions, whatever its status: it is a bad response. So is the
    answer to a read that claims what this host must find itself; whoever wrote it gives no hint here either.
    """
    problem = _problem(content_type, body)
    if problem is None:
        return BadResponse(
            f"`{url}` answered {status} without saying why",
            hint=_FAILED if status >= 500 else _STRANGE,
            url=url,
            status=status,
        )
    reason, message, hint = _text(problem, "type")[:64], _text(problem, "detail"), _text(problem, "hint")
    problems = _problems(problem)
    kind = _kind(reason)
    if is_read and kind is not None and not _is_of_reads(kind):
        kind, hint = None, _FAILED if status >= 500 else _STRANGE
    if kind is None or status >= 500:
        hint = hint or (_FAILED if status >= 500 else "")
        return BadResponse(f"`{url}` answered {status}: {message}", hint=hint, url=url, status=status, problem=reason)
    if kind is PublishRefused and len(problems) == 1:
        # A single problem is the refusal itself, so that programs see its reason and its exit code.
        reason, message = problems[0]["type"], problems[0]["detail"]
        return _refusal(_kind(reason) or PublishRefused, message, reason, hint, problem, problems)
    listed = "".join(f"\n  - [{one['type']}] {one['detail']}" for one in problems)
    return _refusal(kind, message + listed, reason, hint, problem, problems)


def _kind(reason: str) -> type[SpmError] | None:
    family, _, fact = reason.partition(":")
    return _BY_REASON.get(reason) or (_FAMILIES.get(family) if fact else None)


def _is_of_reads(kind: type[SpmError]) -> bool:
    return issubclass(kind, _OF_READS) and not issubclass(kind, _OF_PUBLISHES)


def _refusal(
    kind: type[SpmError],
    message: str,
    reason: str,
    hint: str,
    problem: dict[str, Any],
    problems: list[dict[str, str]],
) -> SpmError:
    refusal = kind(message, reason=reason, hint=hint)
    context = problem.get("context")
    refusal.context = {**context} if isinstance(context, dict) else {}
    if problems:
        refusal.context["problems"] = problems
    return refusal


def _problems(problem: dict[str, Any]) -> list[dict[str, str]]:
    problems = problem.get("problems")
    found = [one for one in problems if isinstance(one, dict)] if isinstance(problems, list) else []
    return [{"type": _text(one, "type")[:64], "detail": _text(one, "detail")} for one in found[:_MAX_PROBLEMS]]


def plain_text(value: object) -> str:
    """Return text of a registry, bounded, on one line, without what could move a terminal's cursor."""
    shown = value[:_MAX_TEXT] if isinstance(value, str) else ""
    return plain(shown.replace("\n", " "))


def _text(value: dict[str, Any], member: str) -> str:
    return plain_text(value.get(member))


def _problem(content_type: str, body: bytes) -> dict[str, Any] | None:
    if content_type.partition(";")[0].strip() != "application/problem+json":
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

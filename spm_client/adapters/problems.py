"""From a registry's answer to a refusal of spm: one of the three translators. Sends nothing."""

import json
from typing import Any

from manifests import errors
from manifests.errors import BadResponse, PublishRefused, SpmError
from manifests.parts import TRAPS

_MAX_TEXT = 2000
_STRANGE = "this is not an answer of a registry: check `registry.url` in loader.conf and the way there"
_FAILED = "the registry, or what stands before it, has failed: run the command again later, or ask its administrator"


def _subclasses(kind: type[SpmError]) -> list[type[SpmError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in _subclasses(child))]


_BY_REASON: dict[str, type[SpmError]] = {
    **{kind.default_reason: kind for kind in reversed(_subclasses(errors.SpmError))},
    **dict.fromkeys(TRAPS, errors.WasteTrapFound),
}


def refusal_of(status: int, content_type: str, body: bytes, *, url: str) -> SpmError:
    """Return the refusal that a registry's problem document names.

    An answer without one says nothing about plugins or versions, whatever its status: it is a bad response.
    """
    problem = _problem(content_type, body)
    if problem is None:
        return BadResponse(
            f"`{url}` answered {status} without saying why",
            hint=_FAILED if status >= 500 else _STRANGE,
            url=url,
            status=status,
        )
    reason = str(problem.get("type", ""))[:64]
    kind = _BY_REASON.get(reason)
    message, hint = str(problem.get("detail", ""))[:_MAX_TEXT], str(problem.get("hint", ""))[:_MAX_TEXT]
    if kind is None or status >= 500:
        hint = hint or (_FAILED if status >= 500 else "")
        return BadResponse(f"`{url}` answered {status}: {message}", hint=hint, url=url, status=status, problem=reason)
    if kind is PublishRefused and len(problems := _problems(problem)) == 1:
        # A single problem is the refusal itself, so that programs see its reason and its exit code.
        only = problems[0]
        return refusal_of(status, content_type, json.dumps({**problem, **only, "problems": []}).encode(), url=url)
    return kind(message + _listed(problem), reason=reason, hint=hint, **_context(problem))


def _context(problem: dict[str, Any]) -> dict[str, Any]:
    context = problem.get("context")
    found = dict(context) if isinstance(context, dict) else {}
    return found | ({"problems": _problems(problem)} if _problems(problem) else {})


def _listed(problem: dict[str, Any]) -> str:
    return "".join(f"\n  - [{one.get('type')}] {one.get('detail')}" for one in _problems(problem))


def _problems(problem: dict[str, Any]) -> list[dict[str, Any]]:
    problems = problem.get("problems")
    return [one for one in problems[:1000] if isinstance(one, dict)] if isinstance(problems, list) else []


def _problem(content_type: str, body: bytes) -> dict[str, Any] | None:
    if content_type.partition(";")[0].strip() != "application/problem+json":
        return None
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

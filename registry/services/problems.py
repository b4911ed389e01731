"""The problems of a publish, gathered and raised together. Finds none itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from manifests.errors import PublishRefused, RegistryRefused, ScopeRefused, SpmError, VersionExists

SCOPE = ScopeRefused.default_reason
VERSION_EXISTS = VersionExists.default_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with what somebody wants to publish."""

    reason: str
    message: str

    @classmethod
    def of(cls, error: SpmError, prefix: str = "") -> "Problem":
        """Return a refusal of one manifest as a problem of the publish."""
        return cls(reason=error.reason, message=prefix + error.message)


def refusal(what: str, problems: Sequence[Problem]) -> RegistryRefused:
    """Return one refusal that holds all problems.

    Who may not publish the name at all hears that first; then, that the version is taken for ever.
    """
    kind: type[RegistryRefused] = PublishRefused
    leading = problems[0]
    for narrow in (ScopeRefused, VersionExists):
        same = [problem for problem in problems if problem.reason == narrow.default_reason]
        if same:
            kind, leading = narrow, same[0]
            break
    listed = [{"reason": problem.reason, "message": problem.message} for problem in problems]
    if kind is PublishRefused:
        return kind(_summary(what, problems), hint=_HINTS[kind], problems=listed)
    # One problem that has a refusal of its own is that refusal; there is nothing to list.
    if len(problems) == 1:
        return kind(leading.message, hint=_HINTS[kind])
    return kind(leading.message, hint=_HINTS[kind], problems=listed)


def _summary(what: str, problems: Sequence[Problem]) -> str:
    if len(problems) == 1:
        return f"{what} cannot be published: 1 problem: {problems[0].message}"
    return f"{what} cannot be published: {len(problems)} problems"


_HINTS: dict[type[RegistryRefused], str] = {
    PublishRefused: "nothing was stored; mend what is listed, then pack, sign and publish again",
    ScopeRefused: "ask an admin for a token with this name, or its owner to publish",
    VersionExists: "a published version never changes: publish the new bytes under a new version",
}

"""The problems of a publish, gathered and raised together. Finds none itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from manifests.errors import (
    KeyNamespaceMismatch,
    KeyUnknown,
    PolicyDenied,
    PublishRefused,
    RegistryRefused,
    ScopeRefused,
    SpmError,
    Unsigned,
    VersionExists,
)

SCOPE = ScopeRefused.default_reason
VERSION_EXISTS = VersionExists.default_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with what somebody wants to publish."""

    reason: str
    message: str
    hint: str = ""

    @classmethod
    def of(cls, error: SpmError, prefix: str = "") -> "Problem":
        """Return a refusal of one manifest as a problem of the publish, with what its publisher can do."""
        return cls(reason=error.reason, message=prefix + error.message, hint=_publishers_hint(error))

    @property
    def whole(self) -> str:
        """Return message and remedy in one, as a list of several problems shows them."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


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
    if kind is PublishRefused and len(problems) == 1:
        only = [{"reason": leading.reason, "message": leading.message}]
        return kind(_summary(what, problems), hint=leading.hint or _HINTS[kind], problems=only)
    listed = [{"reason": problem.reason, "message": problem.whole} for problem in problems]
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


def _publishers_hint(error: SpmError) -> str:
    # The hints of `keys` speak to those who edit their own loader.conf; a publisher has to ask.
    if error.reason == KeyNamespaceMismatch.default_reason and "names" not in error.context:
        return error.hint
    return _PUBLISHERS_HINTS.get(error.reason, error.hint)


_PUBLISHERS_HINTS = {
    Unsigned.default_reason: "sign it with `spm sign PACKED --key NAME`, then publish again",
    KeyUnknown.default_reason: "ask an admin of this registry to pin your key: `spm-registry key add FILE.pub`",
    KeyNamespaceMismatch.default_reason: "ask an admin of this registry to add the name to your key in loader.conf",
    PolicyDenied.default_reason: "ask for less under `capabilities` in manifest.yaml, "
    "or ask an admin of this registry to allow your key more",
}
_HINTS: dict[type[RegistryRefused], str] = {
    PublishRefused: "nothing was stored; fix the problems above, then pack, sign and publish again",
    ScopeRefused: "ask an admin for a token with this name, or its owner to publish",
    VersionExists: "a published version never changes: publish the new bytes under a new version",
}

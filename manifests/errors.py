"""Every refusal of spm as one tree: exit code by family, one stable reason token each. Formats nothing for people.

SpmError
    UsageError 2            Undecided 3             ResolutionError 10      WasteTrapFound 11
    IncompatibleTarget 12   SignatureRefused 20     KeyRefused 21           Revoked 22
    FreshnessError 23       HistoryError 24         ContentError 25         ConfigError 26
    RegistryRefused 30      RegistryUnreachable 31
    LayerMissing 40         LimitReached 41         PolicyDenied 42         WorkerError 43
"""

from typing import Any, ClassVar


class SpmError(Exception):
    """Refuse something: `message` says what failed with its values and why, `hint` what to do.

    `reason` is a stable token for programs; `context` holds the values as JSON.
    """

    exit_code: ClassVar[int] = 1
    default_reason: ClassVar[str] = "error"

    def __init__(self, message: str, *, reason: str | None = None, hint: str = "", **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.hint = hint
        self.context = context

    def to_dict(self) -> dict[str, Any]:
        return {
            "error": {
                "exit": self.exit_code,
                "reason": self.reason,
                "message": self.message,
                "context": self.context,
                "hint": self.hint,
            }
        }


class UsageError(SpmError):
    exit_code = 2
    default_reason = "usage"


class Undecided(SpmError):
    """A needed fact is missing; it is never counted as good. The reason is `unknown:<fact>`."""

    exit_code = 3
    default_reason = "unknown:fact"


class ResolutionError(SpmError):
    exit_code = 10
    default_reason = "unsatisfiable"


class Unsatisfiable(ResolutionError):
    default_reason = "unsatisfiable"


class FallbackRefused(ResolutionError):
    default_reason = "fallback"


class AmbiguousSource(ResolutionError):
    default_reason = "ambiguous-source"


class NotFound(ResolutionError):
    default_reason = "not-found"


class LockDrift(ResolutionError):
    """What is to be installed is not what the lockfile says, or the lockfile is not what spm.toml says."""

    default_reason = "lock-drift"


class WasteTrapFound(SpmError):
    exit_code = 11
    default_reason = "waste-trap"


class IncompatibleTarget(SpmError):
    exit_code = 12
    default_reason = "no-variant"


class SignatureRefused(SpmError):
    exit_code = 20
    default_reason = "sig-invalid"


class Unsigned(SignatureRefused):
    default_reason = "unsigned"


class SignatureMalformed(SignatureRefused):
    default_reason = "sig-malformed"


class SignatureInvalid(SignatureRefused):
    default_reason = "sig-invalid"


class AlgorithmRefused(SignatureRefused):
    default_reason = "alg-refused"


class HeaderRefused(SignatureRefused):
    default_reason = "header-refused"


class WrongClass(SignatureRefused):
    default_reason = "wrong-class"


class KeyRefused(SpmError):
    exit_code = 21
    default_reason = "key-unknown"


class KeyUnknown(KeyRefused):
    default_reason = "key-unknown"


class KeyRoleMismatch(KeyRefused):
    default_reason = "key-role"


class KeyNamespaceMismatch(KeyRefused):
    default_reason = "key-namespace"


class ThresholdNotMet(KeyRefused):
    default_reason = "threshold-short"


class KeyExpired(KeyRefused):
    default_reason = "key-expired"


class Revoked(SpmError):
    exit_code = 22
    default_reason = "key-revoked"


class KeyRevoked(Revoked):
    default_reason = "key-revoked"


class ArtifactRevoked(Revoked):
    default_reason = "artifact-revoked"


class FreshnessError(SpmError):
    exit_code = 23
    default_reason = "index-expired"


class IndexExpired(FreshnessError):
    default_reason = "index-expired"


class RootExpired(FreshnessError):
    default_reason = "root-expired"


class ClockSuspect(FreshnessError):
    """The clock stands before what has been seen: it cannot say whether anything has expired."""

    default_reason = "clock-suspect"


class HistoryError(SpmError):
    exit_code = 24
    default_reason = "rollback"


class Rollback(HistoryError):
    default_reason = "rollback"


class Fork(HistoryError):
    default_reason = "fork"


class Mix(HistoryError):
    """What was served is signed and sound, but is not what was asked for."""

    default_reason = "mix"


class ContentError(SpmError):
    exit_code = 25
    default_reason = "type"


class DigestMismatch(ContentError):
    default_reason = "digest"


class SizeMismatch(ContentError):
    default_reason = "size"


class FileSetMismatch(ContentError):
    default_reason = "file-set"


class PathRefused(ContentError):
    default_reason = "path"


class LinkRefused(ContentError):
    default_reason = "link"


class TypeMismatch(ContentError):
    default_reason = "type"


class NotCanonical(ContentError):
    default_reason = "non-canonical"


class TooBig(ContentError):
    default_reason = "too-big"


class ConfigError(SpmError):
    exit_code = 26
    default_reason = "conf-syntax"


class ConfigPermissions(ConfigError):
    default_reason = "conf-perms"


class ConfigMissing(ConfigError):
    default_reason = "conf-missing"


class OtherRegistry(ConfigError):
    """A project, or its lockfile, is of another registry than the store's own."""

    default_reason = "conf-registry"


class LockMissing(ConfigError):
    """A project's spm.toml or spm.lock is not there."""

    default_reason = "lock-missing"


class ConfigSyntax(ConfigError):
    default_reason = "conf-syntax"


class RegistryRefused(SpmError):
    exit_code = 30
    default_reason = "auth"


class AuthRequired(RegistryRefused):
    default_reason = "auth"


class ScopeRefused(RegistryRefused):
    default_reason = "scope"


class TokenExpired(RegistryRefused):
    default_reason = "token-expired"


class PublishRefused(RegistryRefused):
    """The registry lists all problems of a release at once in `context["problems"]`."""

    default_reason = "publish-refused"


class VersionExists(RegistryRefused):
    default_reason = "version-exists"


class RegistryUnreachable(SpmError):
    exit_code = 31
    default_reason = "unreachable"


class RegistryTimeout(RegistryUnreachable):
    default_reason = "timeout"


class BadResponse(RegistryUnreachable):
    default_reason = "bad-response"


class LayerMissing(SpmError):
    """A sandbox layer is not in force. The reason is `layer-missing:<id>`."""

    exit_code = 40
    default_reason = "layer-missing"


class LimitReached(SpmError):
    """A bound on memory, time, processes or disk was met. The reason is `limit:<what>`."""

    exit_code = 41
    default_reason = "limit"


class PolicyDenied(SpmError):
    exit_code = 42
    default_reason = "policy-denied"


class InUse(PolicyDenied):
    """A host runs what was to be removed."""

    default_reason = "in-use"


class WorkerError(SpmError):
    exit_code = 43
    default_reason = "worker-died"


class WorkerDied(WorkerError):
    default_reason = "worker-died"


class PluginFailed(WorkerError):
    """Plugin code raised; its worker lives on."""

    default_reason = "plugin-failed"


class QuarantinedPlugin(WorkerError):
    default_reason = "quarantined"

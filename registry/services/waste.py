"""The waste traps of a release, as its publisher meets them: problems and warnings. Finds none itself."""

from collections.abc import Iterable, Iterator

from manifests.manifest import Manifest
from manifests.traps import Finding, PluginFacts, Severity, find_traps
from registry.services.problems import Problem

# What an installer does about a trap is the finding's own remedy; a publisher changes the manifest.
_REMEDIES = {
    "affinity-unbound": "add `device_affinity: [...]`",
    "range-unbounded": 'close the range, as in `seedance_version: ">=2.0,<3"`',
    "batch-policy-missing": "add `batch_policy: adaptive`",
}
_IF_CALLS_QUEUE = "where they do, `batch_policy: adaptive` runs them together"


def waste_problems(manifests: Iterable[Manifest]) -> tuple[Problem, ...]:
    """Return what is certain waste, has no written waiver, and so keeps a release from being published."""
    found = {
        Problem(
            reason=finding.trap,
            message=finding.message,
            hint=f"in manifest.yaml, {_REMEDIES[finding.trap]}, or a waiver with a written reason",
        ): None
        for finding in _unwaived(manifests, Severity.WASTE)
    }
    return tuple(found)


def waste_warnings(manifests: Iterable[Manifest]) -> tuple[Problem, ...]:
    """Return what is waste only where it runs, which no registry can know: said, never refused."""
    found = {
        Problem(reason=finding.trap, message=finding.message, hint=_IF_CALLS_QUEUE): None
        for finding in _unwaived(manifests, Severity.UNKNOWN)
    }
    return tuple(found)


def _unwaived(manifests: Iterable[Manifest], severity: Severity) -> Iterator[Finding]:
    for manifest in manifests:
        for finding in find_traps(PluginFacts.of_manifest(manifest), None):
            if finding.severity is severity and finding.trap not in dict(manifest.waivers):
                yield finding

"""The three waste traps, found in what a plugin says and where it would run. Pure; measures nothing.

Every finding names a command that mends it, or shows whether it can be mended. What cannot be known here is a finding
of its own severity, never "fine".
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from manifests.batching import BatchMode, BatchPolicy
from manifests.devices import Device, matches
from manifests.lockfile import Bindings
from manifests.manifest import Manifest
from manifests.ranges import Range
from manifests.target import Target, TargetDevice


class Severity(StrEnum):
    """How sure the finding is: `waste` is certain on this target, `unknown` needs a fact that is not there."""

    WASTE = "waste"
    UNKNOWN = "unknown"


Doubt = tuple[Severity, str]
OUTDATED = "spm outdated"
"""It shows whether a newer release than one that was accepted can be taken, of a project or of a store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One trap in one plugin, with the facts that show it and the command that mends it."""

    trap: str
    severity: Severity
    plugin: str
    message: str
    remedy: str
    evidence: dict[str, Any] = field(hash=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "trap": self.trap,
            "severity": self.severity.value,
            "plugin": self.plugin,
            "message": self.message,
            "evidence": self.evidence,
            "remedy": self.remedy,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginFacts:
    """What the detectors look at: the manifest's word, with an installer's bindings laid over it."""

    name: str
    version: str
    declared: tuple[Device, ...] | None
    affinity: tuple[Device, ...] | None
    batch_policy: BatchPolicy | None
    seedance_version: Range
    ranges: tuple[tuple[str, Range], ...]
    can_batch: bool = True
    fallback: str | None = None
    waivers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of_manifest(
        cls, manifest: Manifest, bindings: Bindings | None = None, fallback: str | None = None
    ) -> "PluginFacts":
        bindings = bindings or Bindings()
        requires = manifest.requires
        ranges = [(f"requires.plugins.{name}", wanted) for name, wanted in requires.plugins]
        if requires.torch is not None:
            ranges.append(("requires.torch", requires.torch))
        return cls(
            name=manifest.name,
            version=manifest.version.text,
            declared=manifest.device_affinity,
            affinity=bindings.affinity or manifest.device_affinity,
            batch_policy=bindings.batch_policy or manifest.batch_policy,
            seedance_version=manifest.seedance_version,
            ranges=tuple(ranges),
            can_batch=not manifest.inputs or all(spec.shape[:1] == (-1,) for spec in manifest.inputs),
            fallback=fallback,
            waivers=manifest.waivers,
        )


def find_traps(facts: PluginFacts, target: Target | None, *, target_option: str = "") -> tuple[Finding, ...]:
    """Return every trap of one plugin on a target; None stands for any target, as a registry must assume.

    `target_option` is what an install for this target needs to be told, as in `--target FILE`, so that a remedy mends
    what was found.
    """
    found = (
        *_affinity_unbound(facts, target, target_option),
        *_range_unbounded(facts),
        *_batch_policy_missing(facts, target_option),
    )
    return tuple(_with_waiver(finding, facts) for finding in found)


def _with_waiver(finding: Finding, facts: PluginFacts) -> Finding:
    reason = dict(facts.waivers).get(finding.trap)
    if reason is None:
        return finding
    return replace(finding, evidence={**finding.evidence, "publisher_waiver": reason})


def _affinity_unbound(facts: PluginFacts, target: Target | None, option: str) -> tuple[Finding, ...]:
    wanted = [str(device) for device in facts.affinity or ()]
    evidence: dict[str, Any] = {"affinity": wanted or None}
    if target is not None:
        evidence["devices"] = [device.id for device in target.devices]
    doubt = _placed_by_luck(facts.affinity) if target is None else _binding_doubt(facts.affinity, target)
    if doubt is None:
        return ()
    severity, problem = doubt
    device = _suggestion(facts.declared, target)
    # Where none of the author's devices is there, nothing binds it; doing without the plugin is what mends it.
    remedy = _install(facts, f"--affinity={device}", option) if device else f"spm uninstall {facts.name}"
    return (
        Finding(
            trap="affinity-unbound",
            severity=severity,
            plugin=facts.name,
            message=f"`{facts.name}` {facts.version} {problem}",
            remedy=remedy,
            evidence=evidence,
        ),
    )


def _placed_by_luck(affinity: tuple[Device, ...] | None) -> Doubt | None:
    if affinity:
        return None
    return Severity.WASTE, "names no device, so a host with several accelerators places it by luck"


def _binding_doubt(affinity: tuple[Device, ...] | None, target: Target) -> Doubt | None:
    """Say why the affinity does not settle where the plugin runs on this target; None where it does."""
    accelerators = [device.id for device in target.accelerators]
    if not affinity:
        several = f"names no device, and this target has several accelerators: {', '.join(accelerators)}"
        return (Severity.WASTE, several) if len(accelerators) > 1 else None
    for wanted in affinity:
        present = [device.id for device in target.devices if matches(wanted, device)]
        if wanted.index is not None and not present:
            return Severity.WASTE, f"names `{wanted}`, which this target does not have"
        if len(present) > 1:
            return Severity.WASTE, f"names `{wanted}`, which on this target may be any of {', '.join(present)}"
        if unknown := _of_unknown_sm(wanted, target):
            problem = f"names `{wanted}`, and this target does not say the compute capability of {', '.join(unknown)}"
            return Severity.UNKNOWN, problem
        if present:
            return None
    listed = ", ".join(f"`{wanted}`" for wanted in affinity)
    return Severity.WASTE, f"names only {listed}, and this target has none of them"


def _of_unknown_sm(wanted: Device, target: Target) -> list[str]:
    if wanted.sm is None:
        return []
    return [device.id for device in target.devices if device.kind == wanted.kind and device.sm is None]


def _suggestion(declared: tuple[Device, ...] | None, target: Target | None) -> str | None:
    """Return a device to bind to: the first of the author's that is there, else an accelerator where none is named."""
    if target is None:
        return "DEVICE"
    if declared is None:
        devices: tuple[TargetDevice, ...] = target.accelerators or target.devices
        return next((device.id for device in devices), None)
    return next((device.id for wanted in declared for device in target.devices if matches(wanted, device)), None)


def _install(facts: PluginFacts, *words: str) -> str:
    return " ".join(("spm install", f"{facts.name}=={facts.version}", *(word for word in words if word)))


def _range_unbounded(facts: PluginFacts) -> tuple[Finding, ...]:
    ranges = (("seedance_version", facts.seedance_version), *facts.ranges)
    open_ranges = {member: wanted.text for member, wanted in ranges if not wanted.has_upper_bound}
    found: list[tuple[str, dict[str, Any], str]] = []
    who = f"`{facts.name}` {facts.version}"
    if open_ranges:
        written = ", ".join(f"`{member}: {text}`" for member, text in open_ranges.items())
        message = f"{who} has no upper bound in {written}, so what it was never tested with may be taken"
        # An installer cannot bound a signed range; doing without the plugin is what mends it here.
        found.append((message, {"open": open_ranges}, f"spm uninstall {facts.name}"))
    if facts.fallback:
        why = facts.fallback.removeprefix(f"{facts.name} {facts.version} was accepted as a fallback: ")
        message = f"{who} is not the newest in range; when it was accepted: {why}"
        # An install would only be refused where the fact still stands, and in a project it would pass by the lock.
        found.append((message, {"fallback": facts.fallback}, OUTDATED))
    return tuple(
        Finding(
            trap="range-unbounded",
            severity=Severity.WASTE,
            plugin=facts.name,
            message=message,
            remedy=remedy,
            evidence=evidence,
        )
        for message, evidence, remedy in found
    )


def _batch_policy_missing(facts: PluginFacts, option: str) -> tuple[Finding, ...]:
    policy = facts.batch_policy
    if policy is not None and policy.mode is BatchMode.ADAPTIVE:
        return ()
    if policy is not None and policy.mode is BatchMode.NONE and not facts.can_batch:
        return ()
    if policy is None:
        severity, problem = Severity.WASTE, "has no batch policy, so calls that wait together are run one by one"
    else:
        severity = Severity.UNKNOWN
        problem = f"has the batch policy `{policy.mode.value}`; whether calls queue is not known before it runs"
    return (
        Finding(
            trap="batch-policy-missing",
            severity=severity,
            plugin=facts.name,
            message=f"`{facts.name}` {facts.version} {problem}",
            remedy=_install(facts, "--batch-policy=adaptive", option),
            evidence={"batch_policy": policy.to_value() if policy else None},
        ),
    )

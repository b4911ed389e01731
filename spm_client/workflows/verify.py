"""Verify: is what is installed still what was signed, and does it waste compute on a target? Renews receipts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests.errors import SpmError
from manifests.lockfile import Generation, InstalledEntry
from manifests.names import PluginName
from manifests.target import Target
from manifests.traps import Finding, PluginFacts, find_traps
from runtime.installed import StoreTrust
from spm_client.workflows.hash_in_full import hash_in_full
from spm_client.workflows.near import not_installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One installed plugin: sound with its waste traps, or refused for a reason."""

    entry: InstalledEntry
    refusal: SpmError | None
    findings: tuple[Finding, ...] = ()
    renewed: tuple[str, ...] = ()
    """Files that its receipt covers now and did not before."""
    hashed_at_load: tuple[str, ...] = ()
    """Big files of a plugin beyond `full_hash_bytes` that no receipt covers."""

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "name": self.entry.name,
            "version": str(self.entry.version),
            "type": self.entry.type.value,
            "keyids": list(self.entry.keyids),
            "status": "refused" if self.refusal else "verified",
        }
        if self.entry.registry:
            value["registry"] = self.entry.registry
        if self.entry.fallback:
            value["fallback"] = self.entry.fallback
        if self.renewed or self.hashed_at_load:
            value["receipt"] = {"renewed": list(self.renewed), "hashed_at_load": list(self.hashed_at_load)}
        return value | (self.refusal.to_dict() if self.refusal else {})


def verify(
    names: tuple[PluginName, ...],
    root: Path,
    generation: Generation,
    trust: StoreTrust,
    target: Target,
    *,
    target_option: str = "",
) -> tuple[Checked, ...]:
    """Check signature and every file of the named plugins, or of all; and look for waste traps in the sound ones.

    Each is judged by the trust of its own registry, and what is wrong with that of another one than the store's own is
    a refusal of its plugins alone.
    Raises: NotFound for a name that is not installed; what the trust of the store's own registry is refused for.
    """
    for name in names:
        if generation.find(name) is None:
            raise not_installed(name, (entry.name for entry in generation.plugins))
    entries = [entry for entry in generation.plugins if not names or entry.name in names]
    if any(entry.registry is None for entry in entries):
        trust.of_registry(None)
    return tuple(_check(entry, root, trust, target, target_option) for entry in entries)


def _check(entry: InstalledEntry, root: Path, trust: StoreTrust, target: Target, target_option: str) -> Checked:
    try:
        hashed = hash_in_full(root, entry, trust.of(entry))
    except SpmError as refusal:
        return Checked(entry=entry, refusal=refusal)
    facts = PluginFacts.of_manifest(hashed.plugin.manifest, entry.bindings, entry.fallback)
    return Checked(
        entry=entry,
        refusal=None,
        findings=find_traps(facts, target, target_option=target_option),
        renewed=hashed.renewed,
        hashed_at_load=hashed.hashed_at_load,
    )

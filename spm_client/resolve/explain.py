"""Failures of resolving in words that a person can act on, every leaf of them a true fact. Decides nothing."""

from collections.abc import Iterable
from typing import Any

from manifests.errors import IncompatibleTarget, NotFound, SpmError, Unsatisfiable
from manifests.fit import Misfit
from manifests.names import PluginName
from spm_client.resolve.budget import Budget
from spm_client.resolve.catalogue import Candidates, Catalogue
from spm_client.resolve.conflict import Conflict, Want
from spm_client.resolve.core import find_core
from spm_client.resolve.derivation import steps_of, told
from spm_client.resolve.incompatibility import Cause
from spm_client.resolve.requirement import Requirement
from spm_client.resolve.words import listed

EXPLAIN_STEPS = 10_000


def version_not_found(catalogue: Catalogue, wish: Requirement) -> NotFound | None:
    """Return the refusal of a range in which the plugin has no release, or None where it has one."""
    candidates = catalogue[wish.name]
    if candidates.in_range(wish.range):
        return None
    name, count = wish.name, len(candidates.releases)
    context: dict[str, Any] = {
        "plugin": name,
        "range": wish.range.text,
        "available": [str(r.version) for r in candidates.releases],
    }
    if newer := [one for one in catalogue.hidden.get(name, ()) if wish.range.contains(one.version)]:
        return NotFound(
            f"`{name}` has no release in `{wish.range}` from before `--exclude-newer`; "
            f"{listed(str(one.version) for one in newer)} came later",
            hint="leave `--exclude-newer` away, or name a later date",
            **context,
        )
    if not count:
        return NotFound(f"`{name}` has no releases", **context)
    hidden = [r.version for r in candidates.releases if wish.range.contains(r.version, pre=True)]
    if hidden:
        return NotFound(
            f"`{name}` has only pre-releases in `{wish.range}`: {listed(map(str, hidden))}",
            hint=f"add `--pre {name}`, or ask for one by its version: `{name}=={hidden[0]}`",
            **context,
        )
    newest = next((r for r in candidates.releases if r.yanked is None and not r.version.is_prerelease), None)
    shown = newest or candidates.releases[0]
    yanked = f", and was yanked ({shown.yanked})" if shown.yanked is not None else ""
    return NotFound(
        f"`{name}` has no release in `{wish.range}`; the newest of {count} is {shown.version}{yanked}",
        hint=f"`{name}=={shown.version}` asks for that one{' all the same' if yanked else ''}",
        **context,
    )


def failure(catalogue: Catalogue, proof: Cause, budget: Budget) -> SpmError:
    """Return the refusal of requirements that a proof shows to have no resolution.

    It is IncompatibleTarget where every release that would do is ruled out by the target alone, else Unsatisfiable.
    """
    conflict = Conflict(catalogue, find_core(catalogue, proof, budget))
    context: dict[str, Any] = {
        "requirements": [
            {"plugin": wish.name, "range": wish.range.text, "source": wish.source}
            for wish in conflict.core.requirements
        ],
        "releases": [
            {"plugin": name, "version": complaint.version, "why": complaint.text}
            for name, found in conflict.complaints.items()
            for complaint in found
        ],
    }
    if (steps := steps_of(catalogue, conflict.core.proof)) is not None:
        context["derivation"] = told(catalogue, steps)
    lines = conflict_lines(conflict)
    if (culprit := _target_culprit(conflict)) is not None:
        name, misfit = culprit
        message = "\n".join((f"no release of `{name}` that would do fits the target:", *lines))
        hint = f"`spm info {name}` shows what there is and what it needs; `--target FILE` asks for another host"
        return IncompatibleTarget(message, reason=misfit.reason, hint=hint, **context)
    message = "\n".join(("no set of releases satisfies every requirement:", *lines))
    return Unsatisfiable(message, hint=_way_on(conflict), **context)


def conflict_lines(conflict: Conflict, *, but: str = "") -> list[str]:
    """Return one line per plugin of the core saying who wants it, and below it why each of its releases is out.

    What is out only since the source `but` wants another one is left away.
    """
    lines: list[str] = []
    for name in conflict.names:
        wants = "; ".join(f"`{want.range}` {want.verb} by {want.who()}" for want in conflict.wants[name])
        by_text: dict[str, list[str]] = {}
        for complaint in conflict.complaints[name]:
            by_text.setdefault(complaint.text, []).append(complaint.version)
        told = [f"  {listed(versions)}: {text}" for text, versions in by_text.items()] or ["  it has no releases"]
        lines += [f"`{name}`: {wants}", *(line for line in told if not but or not line.endswith(f"(wanted by {but})"))]
    return lines


def _way_on(conflict: Conflict) -> str:
    """Return what to do about a conflict: take the one yanked release by name, or let go of a requirement."""
    yanked = [
        (name, one.version)
        for name, found in conflict.complaints.items()
        for one in found
        if one.text.startswith("yanked (")
    ]
    asked = {wish.name for wish in conflict.core.requirements}
    if len(conflict.names) == 1 and yanked and yanked[0][0] in asked:
        name, version = yanked[0]
        return f"`{name}=={version}` takes that one all the same"
    return "widen or drop one of these requirements; `--explain` shows the proof step by step"


def _target_culprit(conflict: Conflict) -> tuple[PluginName, Misfit] | None:
    """Return the plugin and newest misfit when nothing but the target stands against the core."""
    culprit: tuple[PluginName, Misfit] | None = None
    for name in conflict.names:
        candidates, wants, found = conflict.catalogue[name], conflict.wants[name], conflict.complaints[name]
        if any(complaint.is_range for complaint in found) or not _common(candidates, wants):
            return None
        if any(not candidates.offered & candidates.in_range(want.range) for want in wants):
            return None
        newest = next((complaint.misfit for complaint in found if complaint.misfit is not None), None)
        if newest is not None and culprit is None:
            culprit = (name, newest)
    return culprit


def _common(candidates: Candidates, wants: Iterable[Want]) -> int:
    """Return the releases that all firm wants take."""
    bits = candidates.offered
    for want in wants:
        if want.is_firm:
            bits &= candidates.in_range(want.range)
    return bits

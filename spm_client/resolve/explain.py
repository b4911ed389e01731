"""Failures of resolving in words that a person can act on, every leaf of them a true fact. Decides nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from manifests.errors import IncompatibleTarget, NotFound, SpmError, Unsatisfiable
from manifests.fit import Misfit
from manifests.names import PluginName
from spm_client.resolve.catalogue import Candidates, Catalogue
from spm_client.resolve.core import Core, Want, find_core, wants_on
from spm_client.resolve.requirement import Requirement
from spm_client.resolve.search import Budget

MAX_LISTED = 4
EXPLAIN_STEPS = 50_000


@dataclass(frozen=True, slots=True)
class Complaint:
    """Why one release is out. `is_range` marks one that fits, but that some releases of requirers exclude."""

    version: str
    text: str
    misfit: Misfit | None = None
    is_range: bool = False


def version_not_found(candidates: Candidates, wish: Requirement) -> NotFound | None:
    """Return the refusal of a range in which the plugin has no release, or None where it has one."""
    if candidates.in_range(wish.range):
        return None
    name, count = wish.name, len(candidates.releases)
    context: dict[str, Any] = {
        "plugin": name,
        "range": wish.range.text,
        "available": [str(r.version) for r in candidates.releases],
    }
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
    return NotFound(
        f"`{name}` has no release in `{wish.range}`; the newest of {count} is {shown.version}",
        hint=f"`{name}=={shown.version}` asks for that one",
        **context,
    )


def failure(catalogue: Catalogue, requirements: Sequence[Requirement], ceilings: Sequence[Requirement]) -> SpmError:
    """Return the refusal of requirements that have no resolution.

    It is IncompatibleTarget where every release that would do is ruled out by the target alone, else Unsatisfiable.
    """
    core = find_core(catalogue, requirements, ceilings, Budget(EXPLAIN_STEPS))
    context: dict[str, Any] = {
        "requirements": [{"plugin": r.name, "range": r.range.text, "source": r.source} for r in core.requirements],
        "releases": [
            {"plugin": name, "version": complaint.version, "why": complaint.text}
            for name in core.names
            for complaint in complaints(catalogue, core, name)
        ],
    }
    lines = conflict_lines(catalogue, core)
    if (culprit := _target_culprit(catalogue, core)) is not None:
        name, misfit = culprit
        message = "\n".join((f"no release of `{name}` that would do fits the target:", *lines))
        return IncompatibleTarget(message, reason=misfit.reason, **context)
    message = "\n".join(("no set of releases satisfies every requirement:", *lines))
    return Unsatisfiable(message, **context)


def conflict_lines(catalogue: Catalogue, core: Core) -> list[str]:
    """Return one line per plugin of the core saying who wants it, and below it why each of its releases is out."""
    lines: list[str] = []
    for name in core.names:
        lines.append(f"`{name}`: " + "; ".join(_want_text(want) for want in wants_on(catalogue, core, name)))
        by_text: dict[str, list[str]] = {}
        for complaint in complaints(catalogue, core, name):
            by_text.setdefault(complaint.text, []).append(complaint.version)
        lines += [f"  {listed(versions)}: {text}" for text, versions in by_text.items()] or ["  it has no releases"]
    return lines


def complaints(catalogue: Catalogue, core: Core, name: PluginName) -> tuple[Complaint, ...]:
    """Return, for each release of a plugin of the core, newest first, why it cannot be taken."""
    wants = wants_on(catalogue, core, name)
    count = len(catalogue[name].releases)
    return tuple(_complaint(catalogue[name], position, wants, core) for position in range(count))


def listed(words: Iterable[str]) -> str:
    """Join words, shortening a long list to its ends and its number."""
    found = tuple(words)
    if len(found) > MAX_LISTED:
        return f"{found[0]} to {found[-1]} ({len(found)} releases)"
    return ", ".join(found)


def _complaint(candidates: Candidates, position: int, wants: tuple[Want, ...], core: Core) -> Complaint:
    release, verdict = candidates.releases[position], candidates.verdicts[position]
    version = str(release.version)
    out = [want for want in wants if not candidates.in_range(want.range) >> position & 1]
    firm = [want for want in out if want.is_firm]
    if firm or (out and len(out) == len(wants)):
        return Complaint(version, _outside(candidates, position, firm or out))
    if release.yanked is not None and not candidates.offered >> position & 1:
        return Complaint(version, f"yanked ({release.yanked})")
    if isinstance(verdict, Misfit):
        return Complaint(version, verdict.text, misfit=verdict)
    if out:
        return Complaint(version, _outside(candidates, position, out), is_range=True)
    required = [
        (other, range_) for other, range_ in release.requires.plugins if other in core.edges_of(candidates.name)
    ]
    told = " and ".join(f"`{other}` `{range_}`" for other, range_ in required)
    return Complaint(version, f"requires {told}" if told else "would do by itself")


def _outside(candidates: Candidates, position: int, out: Sequence[Want]) -> str:
    version = candidates.releases[position].version
    told = [want for want in out if not want.range.contains(version, pre=True)]
    if not told:
        return f"a pre-release, which only `--pre {candidates.name}` lets in"
    if asked := [want for want in told if not want.versions]:
        told = asked
    return "outside " + " and ".join(f"`{want.range}` (wanted by {_who(want, short=want.is_firm)})" for want in told)


def _want_text(want: Want) -> str:
    return f"`{want.range}` {'held' if want.is_ceiling else 'wanted'} by {_who(want)}"


def _who(want: Want, *, short: bool = False) -> str:
    if not want.versions:
        return want.by
    return f"`{want.by}`" if short else f"`{want.by}` {listed(want.versions)}"


def _target_culprit(catalogue: Catalogue, core: Core) -> tuple[PluginName, Misfit] | None:
    """Return the plugin and newest misfit when nothing but the target stands against the core."""
    culprit: tuple[PluginName, Misfit] | None = None
    for name in core.names:
        candidates, wants = catalogue[name], wants_on(catalogue, core, name)
        found = complaints(catalogue, core, name)
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

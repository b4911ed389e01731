"""Sync: which of a lock's targets this host is, and what an install by the lock is asked for. Pure."""

import re
from collections.abc import Mapping
from dataclasses import replace

from manifests.errors import UsageError
from manifests.project_lock import ProjectLock
from manifests.target import Target
from spm_client.resolve import Requirement
from spm_client.workflows.consent import Wishes
from spm_client.workflows.plan import Installed

_COMMANDS = (
    (
        re.compile(r"spm install ([a-z0-9-]+)==[^\s`]+ (--(?:affinity|batch-policy)[^\s`]+)"),
        r"spm add \1 \2 && spm sync",
    ),
    (re.compile(r"spm install [a-z0-9-]+==[^\s`]+"), "spm sync"),
    (re.compile(r"spm install ([a-z0-9-]+)"), r"spm upgrade \1 && spm sync"),
)
_UNINSTALL = re.compile(r"spm uninstall ([a-z0-9-]+)")


def wishes_of(
    lock: ProjectLock, target: str, *, is_dry_run: bool = False, is_strict: bool = False, target_option: str = ""
) -> Wishes:
    """Return the wishes that install exactly what the lock has for a target, and nothing beside it."""
    return Wishes(
        requirements=tuple(
            Requirement(name=wanted.name, range=wanted.range, source="spm.toml", registry=wanted.registry)
            for wanted in lock.requirements
        ),
        locked=lock.releases(target),
        is_exact=True,
        bindings_of=lock.bindings,
        pre=lock.pre | {wanted.name for wanted in lock.requirements if wanted.is_pre},
        is_dry_run=is_dry_run,
        is_strict=is_strict,
        target_option=target_option,
    )


def named_target(targets: Mapping[str, Target], name: str) -> str:
    """Return the name, if it is a target's.

    Raises: UsageError listing the targets.
    """
    if name not in targets:
        raise UsageError(
            f"spm.toml has no target `{name}`; it has {_listed(targets)}", target=name, targets=sorted(targets)
        )
    return name


def choose_target(targets: Mapping[str, Target], host: Target) -> str:
    """Return the name of the target that is the only one, or is as this host is in what matters.

    Raises: UsageError listing the targets.
    """
    if len(targets) == 1:
        return next(iter(targets))
    same = sorted(name for name, target in targets.items() if what_matters(target) == what_matters(host))
    if len(same) == 1:
        return same[0]
    why = f"this host is as {len(same)} targets are ({', '.join(same)})" if same else "this host is as none of them is"
    raise UsageError(
        f"which target to install is not clear: spm.toml has {_listed(targets)}, and {why}",
        hint="`--target NAME` names one; `spm target probe` shows what this host is",
        targets=sorted(targets),
        same=same,
    )


def for_project(installed: Installed) -> Installed:
    """Return what was installed with the remedies of its waste traps as commands of a project."""
    findings = (
        replace(finding, remedy=_UNINSTALL.sub(r"spm remove \1 && spm sync", said_for_project(finding.remedy)))
        for finding in installed.findings
    )
    return replace(installed, findings=tuple(findings))


def said_for_project(text: str) -> str:
    """Return advice with the commands that change spm.lock in place of those that change a store alone."""
    for pattern, command in _COMMANDS:
        text = pattern.sub(command, text)
    return text


def _listed(targets: Mapping[str, Target]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(targets))


def what_matters(target: Target) -> Target:
    """Return a target without what no plugin is chosen by: the names and memory of its devices, driver and glibc."""
    devices = tuple(sorted((replace(d, name=d.id, memory_bytes=None) for d in target.devices), key=lambda d: d.id))
    return replace(target, devices=devices, driver=None, glibc=None)

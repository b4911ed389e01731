"""Bring spm.lock up to date, or hold it to what it would be. Acceptances that are given are written to spm.toml too."""

from collections.abc import Callable
from functools import partial

from manifests.errors import LockDrift, SpmError
from manifests.names import PluginName
from manifests.project_lock import ProjectLock
from spm_client.adapters.project_files import ProjectChange, ProjectFolder
from spm_client.workflows.lock import NOTHING, Locked, require_registry, resolve_lock
from spm_client.workflows.lock_drift import drifted, lock_drift
from spm_client.workflows.project import LOCK_HINT, Asker, Relocked, bound_option, require_known, require_undrifted
from spm_client.workflows.requirements import NO_ADDITION, Addition, edited, extended, require_used

Along = Callable[[ProjectLock, Callable[[], None]], None]
"""What is done by a new lock, and what it calls right before it changes anything for good."""


def relock(
    folder: ProjectFolder,
    asker: Asker,
    *,
    freed: frozenset[PluginName] | None = NOTHING,
    accepting: Addition = NO_ADDITION,
    exclude_newer: str | None = None,
    is_dry_run: bool = False,
    along: Along | None = None,
) -> Relocked:
    """Bring spm.lock up to date: what is locked stays where it still does, save the `freed` (None: everything).

    `along` is done when the new lock is on disk beside the old one, and its refusal leaves that in place. It calls what
    it is given, which may refuse for the last time, right before it changes anything for good;
    it keeps itself what it learns.
    Raises: NotFound for a freed name that is not locked; the refusals of `resolve_lock`.
    """
    _require_locked(freed, folder.lock)
    project = extended(folder.project, accepting)
    with asker.asking(project, is_kept=not is_dry_run and along is None) as (indexes, learnt):
        locked = resolve_lock(
            project,
            folder.targets,
            folder.lock,
            indexes,
            freed=freed,
            exclude_newer=exclude_newer or project.exclude_newer,
            now=asker.now,
            progress=asker.progress,
            command=_command(freed, accepting, exclude_newer),
        )
        require_used(accepting, locked.lock)
        text, data = edited(folder, project, accepting), locked.lock.to_bytes()
        if not is_dry_run and along is None:
            with learnt:
                folder.replace(text=text, lock=data)
    if not is_dry_run and along is not None:
        with folder.changing(text=text, lock=data) as change:
            _put_after(change, partial(along, locked.lock))
    return Relocked.of(folder, locked, is_written=not is_dry_run and data != folder.lock_bytes)


def _require_locked(freed: frozenset[PluginName] | None, lock: ProjectLock | None) -> None:
    for name in sorted(freed or ()):
        require_known(name, (plugin.name for plugin in lock.plugins) if lock else (), "is not in spm.lock")


def _put_after(change: ProjectChange, along: Callable[[Callable[[], None]], None]) -> None:
    """Do what goes along, then put the new lock in place; what was done stands whatever becomes of the lock."""
    along(change.require_unchanged)
    try:
        change.put()
    except SpmError as refusal:
        raise type(refusal)(
            f"what the new spm.lock names is installed, but spm.lock itself is as it was: {refusal.message}",
            reason=refusal.reason,
            hint="make it possible to write there, then run `spm sync` again: it writes spm.lock",
            **refusal.context,
        ) from refusal


def _command(freed: frozenset[PluginName] | None, accepting: Addition, exclude_newer: str | None) -> str:
    bound = [f"--exclude-newer {exclude_newer}"] if exclude_newer else []
    verb = "spm lock" if freed == NOTHING else "spm upgrade"
    return " ".join([verb, *sorted(freed or ()), *accepting.options(), *bound])


def require_current(folder: ProjectFolder, asker: Asker, *, exclude_newer: str | None = None) -> Relocked:
    """Return the lock that would be written just the same now. Writes nothing, neither here nor in the store.

    Raises: as `require_registry` and `require_undrifted`; the refusal of a locked release that is no longer trusted;
    LockDrift for what the registries would now have otherwise, and for releases beyond the bound that is set.
    """
    require_registry(folder.project, folder.lock, asker.conf.registry_id)
    lock = require_undrifted(folder)
    bound = exclude_newer or folder.project.exclude_newer or lock.exclude_newer
    with asker.asking(folder.project, is_kept=False) as (indexes, _):
        locked = resolve_lock(
            folder.project,
            folder.targets,
            lock,
            indexes,
            exclude_newer=bound,
            now=asker.now,
            progress=asker.progress,
        )
    for _, _, refusal in locked.distrusted:
        raise refusal
    if drift := lock_drift(lock, locked.lock):
        raise drifted(drift, hint=LOCK_HINT)
    if locked.beyond:
        raise _beyond(locked, f"{bound}", bound_option(folder.project, bound))
    return Relocked.of(folder, locked, is_written=False)


def _beyond(locked: Locked, bound: str, option: str) -> LockDrift:
    names = " ".join(sorted({name for name, _, _ in locked.beyond}))
    return drifted(
        (
            f"`{name}` {version} was published at {published}, after the bound {bound}"
            for name, version, published in locked.beyond
        ),
        hint=f"`spm upgrade {names}{option}` takes what was there then",
    )

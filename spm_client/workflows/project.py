"""A project begun, whom its commands ask, and what spm.lock does not answer. Resolves and installs nothing."""

import difflib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from keys.keyring import LoaderConf
from manifests.errors import NotFound, SpmError, UsageError
from manifests.lockfile import Generation
from manifests.names import PluginName
from manifests.project import PROJECT_FILE, Project, read_target_name
from manifests.project_lock import ProjectLock
from manifests.target import Target
from manifests.versions import Version
from spm_client.adapters.project_files import ProjectFolder, target_digest
from spm_client.adapters.staged_files import staged
from spm_client.output_file import disk
from spm_client.progress import Progress
from spm_client.project_text import new_text
from spm_client.store.generations import undisturbed
from spm_client.store.layout import Layout, refusals
from spm_client.store.staging import staging
from spm_client.workflows.lock import Locked
from spm_client.workflows.lock_drift import LockChange, changes, drifted, project_drift
from spm_client.workflows.registries import Connect, RegistryIndexes

TARGETS_FOLDER = "targets"
LOCK_HINT = "`spm lock` brings it up to date, `spm lock --dry-run` shows how"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Whom a project's commands ask, and by which clock they judge what is answered."""

    layout: Layout
    conf: LoaderConf
    connect: Connect
    now: datetime
    progress: Progress

    @contextmanager
    def asking(
        self, project: Project, *, is_kept: bool
    ) -> Iterator[tuple[RegistryIndexes, AbstractContextManager[None]]]:
        """Give the registries' indexes, and what keeps in the store what is learnt of them: `with learnt: ...`.

        Without `is_kept` the store is not written. What is installed here has no say in what a project locks.
        """
        wished = {one.name: frozenset({one.registry}) for one in project.requirements if one.registry is not None}
        with ExitStack() as stack:
            if is_kept:
                stack.enter_context(refusals(self.layout.root))
                scratch = stack.enter_context(staging(self.layout))
            else:
                scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            indexes = RegistryIndexes(
                self.layout, self.conf, self.connect, scratch=scratch, now=self.now, wished=wished
            )
            indexes.stand_on(Generation(number=0, registry=indexes.own, created=""))
            yield stack.enter_context(indexes), _keeping(indexes, scratch)


@contextmanager
def _keeping(indexes: RegistryIndexes, scratch: Path) -> Iterator[None]:
    with undisturbed(), indexes.committing(scratch):
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocked:
    """A lock as it is or would be now, what became of each plugin, and what is to be told of what it keeps."""

    lock: ProjectLock
    changes: tuple[LockChange, ...]
    yanked: tuple[tuple[PluginName, Version, str], ...]
    distrusted: tuple[tuple[PluginName, Version, SpmError], ...]
    beyond: tuple[tuple[PluginName, Version, str], ...]
    is_written: bool
    bound_option: str = ""
    """How the bound of the lock is given to another command, where spm.toml does not say it."""

    @classmethod
    def of(cls, folder: ProjectFolder, locked: Locked, *, is_written: bool) -> "Relocked":
        return cls(
            lock=locked.lock,
            changes=changes(folder.lock, locked.lock),
            yanked=locked.yanked,
            distrusted=locked.distrusted,
            beyond=locked.beyond,
            is_written=is_written,
            bound_option=bound_option(folder.project, locked.lock.exclude_newer),
        )


def bound_option(project: Project, bound: str | None) -> str:
    """Return the words that give a command a bound, empty where there is none or spm.toml has it."""
    return "" if bound is None or bound == project.exclude_newer else f" --exclude-newer {bound}"


def require_undrifted(folder: ProjectFolder) -> ProjectLock:
    """Return the lock that answers spm.toml and its targets as they are. Asks nobody.

    Raises: LockMissing; LockDrift listing each difference.
    """
    lock = folder.require_lock()
    if drift := offline_drift(folder):
        raise drifted(drift, hint=LOCK_HINT)
    return lock


def offline_drift(folder: ProjectFolder) -> tuple[str, ...]:
    """Return what spm.toml and its targets say that the lock does not answer; the lock must be there."""
    digests = {name: target_digest(target) for name, target in folder.targets.items()}
    return project_drift(folder.project, digests, folder.require_lock())


def require_known(name: PluginName, known: Iterable[PluginName], what: str) -> None:
    """Refuse a name that is not among those known, with the nearest one as the hint.

    Raises: NotFound.
    """
    names = list(known)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        raise NotFound(f"`{name}` {what}", hint=f"did you mean `{near[0]}`?" if near else "", name=name)


def target_name(target: Target) -> str:
    """Return what a host is called in a project where nobody called it: `linux-x86_64-sm_86`."""
    kinds = sorted({device.sm or device.kind for device in target.accelerators})
    return "-".join((target.os, target.cpu, *kinds))[:64].rstrip("._-")


def begin_project(folder: Path, name: str, target: Target, *, called: str, registry: str | None) -> Path:
    """Write spm.toml, and the target's document in `targets/`; return the latter's path.

    Raises: UsageError where a spm.toml or another document is there.
    """
    file = f"{TARGETS_FOLDER}/{read_target_name(called)}.json"
    text = new_text(name, registry=registry, target=called, target_file=file)
    Project.from_text(text)
    document = (json.dumps(target.to_dict(), indent=2) + "\n").encode()
    path = folder / file
    if os.path.lexists(folder / PROJECT_FILE):
        raise UsageError(f"`{folder / PROJECT_FILE}` is there already: `{folder}` is a project")
    is_there = path.is_file() and path.read_bytes() == document
    if not is_there and os.path.lexists(path):
        raise UsageError(f"`{path}` is there already", hint="`--target NAME` calls this host otherwise")
    new = {**({} if is_there else {path: document}), folder / PROJECT_FILE: text.encode()}
    with _folders(path.parent), staged(new, dict.fromkeys(new)) as files:
        files.put()
    return path


@contextmanager
def _folders(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; after an error, those made here are gone."""
    made = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
    try:
        with disk(folder):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):  # nothing that another program has put into them meanwhile is removed
            for one in made:
                one.rmdir()
        raise

"""Install by spm.lock, with one last question before anything stands. Chooses no target and writes no lock.

The question is asked right before the first irreversible step: trust is kept and the generation's number is taken only
if it is not refused.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from keys.keyring import LoaderConf
from manifests.errors import FallbackRefused, LockDrift
from manifests.target import Target
from runtime.generation import current_generation
from runtime.guard import require_guarded_store
from spm_client.progress import Progress
from spm_client.store.layout import Layout, refusals
from spm_client.store.staging import staging
from spm_client.workflows.consent import Wishes
from spm_client.workflows.install import install_by
from spm_client.workflows.plan import Installed
from spm_client.workflows.registries import Connect, RegistryIndexes, wished_in


class _AskingLast(RegistryIndexes):
    """Registries of which nothing is kept before a last question is answered."""

    last_question: Callable[[], None]

    def knows(self, registry: str) -> bool:
        return registry in self._sources.known

    @contextmanager
    def committing(self, scratch: Path) -> Iterator[None]:
        self.last_question()
        with super().committing(scratch):
            yield


def sync_store(
    wishes: Wishes,
    layout: Layout,
    conf: LoaderConf,
    connect: Connect,
    target: Target,
    *,
    last_question: Callable[[], None] = lambda: None,
    now: datetime,
    created: str,
    progress: Progress,
) -> Installed:
    """Install what the wishes take from a lock; what `last_question` raises is a refusal that changes nothing.

    Raises: as `install`; LockDrift for a plugin that is installed from another registry than it is locked from.
    """
    conf.require_root()
    require_guarded_store(layout.root)
    with refusals(layout.root), staging(layout) as scratch:
        asked = _AskingLast(layout, conf, connect, scratch=scratch, now=now, wished=wished_in(wishes.requirements))
        asked.last_question = last_question
        _require_same_sources(wishes, layout, asked)
        with asked as indexes, _told_for_lock():
            return install_by(
                indexes, wishes, layout, conf, target, scratch=scratch, created=created, progress=progress
            )


@contextmanager
def _told_for_lock() -> Iterator[None]:
    """Have a refused fallback name the command that accepts it in a project: a sync has no flag for that."""
    try:
        yield
    except FallbackRefused as refusal:
        flags = " ".join(f"--accept-fallback {name}" for name in refusal.context.get("accept", []))
        refusal.hint = f"`spm lock {flags}` for this target accepts and records it, then `spm sync`"
        raise


def _require_same_sources(wishes: Wishes, layout: Layout, indexes: _AskingLast) -> None:
    """Accept what is installed as of the registries that the lock has it from, where the store knows these."""
    generation = current_generation(layout.root)
    for entry in generation.plugins if generation.registry == indexes.own else ():
        locked = wishes.locked.get(entry.name)
        wanted = (locked.registry or indexes.own) if locked is not None else None
        found = entry.registry or generation.registry
        if wanted is not None and wanted != found and indexes.knows(wanted):
            raise LockDrift(
                f"`{entry.name}` is installed from the registry `{found}`, and spm.lock has it from `{wanted}`, where "
                "that name is another plugin",
                hint=f"if that one is meant, `spm uninstall {entry.name}`, then `spm sync`",
                name=entry.name,
                expected=wanted,
                found=found,
            )

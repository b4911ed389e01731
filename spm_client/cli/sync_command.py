"""`spm sync`."""

import argparse
from collections.abc import Callable
from dataclasses import replace

from manifests.errors import SpmError
from manifests.project_lock import ProjectLock
from manifests.target import Target
from spm_client.adapters.project_files import ProjectFolder
from spm_client.cli.plan_text import plan_document, plan_lines, warnings
from spm_client.cli.project_options import add_project, asker, require_folder, show_lock
from spm_client.cli.session import Session, timestamp
from spm_client.render import ProgressLine, count, warn
from spm_client.workflows.lock import require_registry
from spm_client.workflows.plan import Installed
from spm_client.workflows.project import offline_drift, require_undrifted
from spm_client.workflows.relock import relock
from spm_client.workflows.sync import choose_target, for_project, named_target, said_for_project, wishes_of
from spm_client.workflows.sync_install import sync_store


def configure(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument(
        "--target", metavar="NAME", help="install for this target of spm.toml (default: the one that this host is)"
    )
    parser.add_argument(
        "--locked", action="store_true", help="refuse if spm.lock does not answer spm.toml, instead of locking first"
    )
    parser.add_argument("--strict", action="store_true", help="refuse plugins with waste traps")
    parser.add_argument("--not-running", action="store_true", help="I know that no host runs what is replaced")
    parser.add_argument("--dry-run", action="store_true", help="show the plan, change nothing")


def run(options: argparse.Namespace, session: Session) -> int:
    folder = require_folder(options)
    require_registry(folder.project, folder.lock, session.conf().registry_id)
    if options.locked:
        require_undrifted(folder)
    if options.target is not None:
        # It may well be another host, as for `spm install --target`.
        name = named_target(folder.targets, options.target)
        target = folder.targets[name]
    else:
        target = session.target(None)
        name = choose_target(folder.targets, target)

    def put(lock: ProjectLock, last_question: Callable[[], None] = _nothing) -> Installed:
        return _install(lock, name, target, options, session, last_question)

    if folder.lock is not None and not offline_drift(folder):
        installed = put(folder.lock)
    else:
        installed = _locked_first(folder, put, options, session)
    session.emit({"target": name, **plan_document(installed, is_dry_run=options.dry_run)})
    for text in warnings(installed):
        warn(text)
    if session.is_json:
        return 0
    for line in plan_lines(installed, is_dry_run=options.dry_run):
        session.say(line)
    if not options.dry_run:
        session.say(f"{count(len(installed.generation.plugins), 'plugin')} installed as spm.lock has them for {name}")
    return 0


def _nothing() -> None:
    pass


def _locked_first(
    folder: ProjectFolder, put: Callable[..., Installed], options: argparse.Namespace, session: Session
) -> Installed:
    """Install by a lock that answers spm.toml as it is now; spm.lock is replaced only if that succeeds."""
    done: list[Installed] = []

    def along(lock: ProjectLock, last_question: Callable[[], None]) -> None:
        done.append(put(lock, last_question))

    relocked = relock(folder, asker(session), is_dry_run=options.dry_run, along=along)
    installed = done[0] if done else put(relocked.lock)
    show_lock(relocked, session, is_dry_run=options.dry_run)
    return installed


def _install(
    lock: ProjectLock,
    name: str,
    target: Target,
    options: argparse.Namespace,
    session: Session,
    last_question: Callable[[], None],
) -> Installed:
    wishes = replace(
        wishes_of(lock, name, is_dry_run=options.dry_run, is_strict=options.strict), is_known_idle=options.not_running
    )
    try:
        return for_project(
            sync_store(
                wishes,
                session.layout,
                session.conf(),
                session.client,
                target,
                last_question=last_question,
                now=session.now(),
                created=timestamp(session.environment),
                progress=ProgressLine(is_wanted=session.wants_progress),
            )
        )
    except SpmError as refusal:
        refusal.hint = said_for_project(refusal.hint)
        raise

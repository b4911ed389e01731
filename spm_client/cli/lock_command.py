"""`spm lock`."""

import argparse

from manifests.errors import UsageError
from manifests.names import parse_query
from manifests.project import read_moment_or_day
from spm_client.cli.install_command import add_consents
from spm_client.cli.project_options import accepting, add_project, asker, lock_members, require_folder, show_lock
from spm_client.cli.session import Session
from spm_client.workflows.relock import relock, require_current


def configure(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument(
        "--upgrade-plugin",
        metavar="NAME",
        action="append",
        default=[],
        help="let NAME move to a newer release; what else is locked stays",
    )
    add_consents(parser)
    add_exclude_newer(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--locked", action="store_true", help="refuse if spm.lock would change; write nothing")
    how.add_argument("--dry-run", action="store_true", help="show what would change; write nothing")


def add_exclude_newer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--exclude-newer",
        metavar="DATE",
        type=read_moment_or_day,
        help="leave out releases published after DATE, as in 2026-01-31 (that day included) or 2026-01-31T12:00:00Z",
    )


def run(options: argparse.Namespace, session: Session) -> int:
    folder = require_folder(options)
    if options.locked:
        if options.upgrade_plugin or options.pre or options.accept_fallback:
            raise UsageError("`--locked` lets nothing change: `--upgrade-plugin`, `--pre` and `--accept-fallback` do")
        relocked = require_current(folder, asker(session), exclude_newer=options.exclude_newer)
    else:
        relocked = relock(
            folder,
            asker(session),
            freed=frozenset(parse_query(name) for name in options.upgrade_plugin),
            accepting=accepting(options),
            exclude_newer=options.exclude_newer,
            is_dry_run=options.dry_run,
        )
    session.emit(lock_members(relocked, folder.lock_path, is_dry_run=options.dry_run))
    show_lock(relocked, session, is_dry_run=options.dry_run)
    return 0

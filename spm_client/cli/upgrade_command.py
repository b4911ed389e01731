"""`spm upgrade`."""

import argparse

from manifests.names import parse_query
from spm_client.cli.install_command import add_consents
from spm_client.cli.lock_command import add_exclude_newer
from spm_client.cli.project_options import accepting, add_project, asker, lock_members, require_folder, show_lock
from spm_client.cli.session import Session
from spm_client.workflows.relock import relock


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="a locked plugin (default: all of them)")
    add_project(parser)
    add_consents(parser)
    add_exclude_newer(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would change; write nothing")


def run(options: argparse.Namespace, session: Session) -> int:
    folder = require_folder(options)
    names = frozenset(parse_query(name) for name in options.names)
    relocked = relock(
        folder,
        asker(session),
        freed=names or None,
        accepting=accepting(options),
        exclude_newer=options.exclude_newer,
        is_dry_run=options.dry_run,
    )
    session.emit(lock_members(relocked, folder.lock_path, is_dry_run=options.dry_run))
    show_lock(relocked, session, is_dry_run=options.dry_run)
    return 0

"""`spm remove`."""

import argparse

from manifests.names import parse_query
from spm_client.cli.project_options import add_project, asker, lock_members, require_folder, show_lock
from spm_client.cli.session import Session
from spm_client.workflows.requirements import remove


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="a plugin that spm.toml requires")
    add_project(parser)


def run(options: argparse.Namespace, session: Session) -> int:
    folder = require_folder(options)
    names = tuple(dict.fromkeys(parse_query(name) for name in options.names))
    relocked = remove(folder, asker(session), names)
    session.emit({"requirements": list(names), **lock_members(relocked, folder.lock_path)})
    for name in () if session.is_json else names:
        session.say(f"spm.toml   requires {name} no more")
    show_lock(relocked, session)
    return 0

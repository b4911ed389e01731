"""`spm uninstall`."""

import argparse

from manifests.names import parse_query
from spm_client.cli.session import Session, timestamp
from spm_client.workflows.uninstall import uninstall


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="an installed plugin")


def run(options: argparse.Namespace, session: Session) -> int:
    names = tuple(dict.fromkeys(parse_query(name) for name in options.names))
    generation, gone = uninstall(names, session.layout, created=timestamp(session.environment))
    session.emit({"generation": generation.number, "removed": [entry.to_dict() for entry in gone]})
    if not session.is_json:
        for entry in gone:
            note = "" if entry.name in names else " (nothing else required it)"
            print(f"removed {entry.name} {entry.release}{note}")
    return 0

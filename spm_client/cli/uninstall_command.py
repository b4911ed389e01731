"""`spm uninstall`."""

import argparse

from spm_client.cli.session import Session, timestamp
from spm_client.cli.store_of import existing_store, parse_installed
from spm_client.workflows.uninstall import uninstall


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="an installed plugin")
    parser.add_argument(
        "--not-running", action="store_true", help="I know that no host runs them (where it cannot be told)"
    )


def run(options: argparse.Namespace, session: Session) -> int:
    names = tuple(dict.fromkeys(parse_installed(name) for name in options.names))
    generation, gone = uninstall(
        names, existing_store(session), created=timestamp(session.environment), is_known_idle=options.not_running
    )
    session.emit({"generation": generation.number, "removed": [entry.to_dict() for entry in gone]})
    if not session.is_json:
        for entry in gone:
            note = "" if entry.name in names else " (nothing else required it)"
            print(f"removed {entry.name} {entry.release}{note}")
    return 0

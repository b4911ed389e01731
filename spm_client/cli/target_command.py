"""`spm target probe`."""

import argparse
import json

from spm_client.cli.command import action_missing
from spm_client.cli.session import Session


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=["probe"], help="`probe` describes this host as it really is")
    parser.add_argument("--output", "-o", metavar="FILE", help="write it to FILE (default: standard output)")
    parser.set_defaults(parser=parser)


def run(options: argparse.Namespace, session: Session) -> int:
    if options.action is None:
        raise action_missing(options.parser)
    document = json.dumps(session.target(None).to_dict(), indent=2)
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(document + "\n")
        session.emit({"output": options.output})
    else:
        print(document)
    return 0

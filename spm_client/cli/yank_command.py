"""`spm yank`."""

import argparse

from manifests.errors import UsageError
from spm_client.cli.session import Session
from spm_client.cli.store_of import installed_names
from spm_client.resolve import parse_spec
from spm_client.workflows.near import suggesting_installed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="NAME==VERSION", help="the release")
    parser.add_argument("--reason", metavar="TEXT", help="why; shown to everybody who has it")
    parser.add_argument("--undo", action="store_true", help="offer the release again")


def run(options: argparse.Namespace, session: Session) -> int:
    requirement = parse_spec(options.spec)
    if requirement.range.exact is None:
        raise UsageError(f"{options.spec!r} does not name one release", hint="write `NAME==1.2.3`")
    if bool(options.reason) == options.undo:
        raise UsageError("a yank needs `--reason TEXT`, and `--undo` takes none")
    version = requirement.range.text.lstrip("= ")
    conf = session.conf()
    path = f"/v1/plugins/{requirement.name}/{version}/yank"
    with (
        suggesting_installed(requirement.name, lambda: installed_names(session)),
        session.client(conf, is_authorized=True) as client,
    ):
        if options.undo:
            client.call("DELETE", path)
        else:
            client.call("POST", path, {"reason": options.reason})
    session.emit({"name": requirement.name, "version": version, "yanked": None if options.undo else options.reason})
    if not session.is_json:
        print(f"{'offered again' if options.undo else 'yanked'} {requirement.name} {version}")
    return 0

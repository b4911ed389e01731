"""`spm init`."""

import argparse
from pathlib import Path

from manifests.errors import UsageError
from manifests.names import fold, parse_name
from manifests.project import PROJECT_FILE
from spm_client.cli.session import Session
from spm_client.workflows.project import begin_project, target_name


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where (default: here)")
    parser.add_argument("--name", help="the project's name (default: the folder's)")
    parser.add_argument("--target", metavar="NAME", help="what this host is called (default: as in `linux-x86_64`)")


def run(options: argparse.Namespace, session: Session) -> int:
    folder = Path(options.folder).absolute()
    name = _name(options.name, folder)
    registry = session.conf().registry_id if session.layout.conf.exists() else None
    target = session.target(None)
    called = options.target or target_name(target)
    path = begin_project(folder, name, target, called=called, registry=registry)
    session.emit(
        {
            "name": name,
            "project": str(folder / PROJECT_FILE),
            "registry": registry,
            "target": called,
            "target_file": str(path),
        }
    )
    if session.is_json:
        return 0
    session.say(f"wrote {folder / PROJECT_FILE}\nwrote {path}, which describes this host")
    session.say("`spm add NAME` adds a plugin and locks it; `spm sync` installs what is locked")
    return 0


def _name(named: str | None, folder: Path) -> str:
    text = named if named is not None else fold(folder.name).strip("-")
    try:
        return parse_name(text)
    except UsageError as error:
        raise UsageError(
            error.message.replace("a plugin name", "a project's name"), hint="`--name NAME` gives another"
        ) from error

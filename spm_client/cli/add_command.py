"""`spm add`."""

import argparse

from manifests.names import PluginName, parse_query
from manifests.project import Project
from spm_client.cli.install_command import add_bindings, add_consents, bindings_of
from spm_client.cli.project_options import add_project, asker, lock_members, require_folder, show_lock
from spm_client.cli.session import Session
from spm_client.resolve import parse_spec
from spm_client.resolve.requirement import ANY
from spm_client.workflows.near import suggesting
from spm_client.workflows.requirements import Addition, add


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "specs",
        nargs="+",
        metavar="SPEC",
        help="`NAME`: its newest release and what is compatible with it; or with a range, as for `spm install`",
    )
    add_project(parser)
    add_bindings(parser)
    add_consents(parser)


def run(options: argparse.Namespace, session: Session) -> int:
    folder = require_folder(options)
    requirements = tuple(parse_spec(spec, source="spm.toml") for spec in options.specs)
    addition = Addition(
        requirements=requirements,
        # A range that was written, be it `*`, is not to be found out.
        bare=frozenset(
            wanted.name
            for wanted, spec in zip(requirements, options.specs, strict=True)
            if wanted.range == ANY and "*" not in spec
        ),
        bindings=bindings_of(options),
        unbind=options.unbind,
        pre=frozenset(parse_query(name) for name in options.pre),
        accept_fallback=frozenset(parse_query(name) for name in options.accept_fallback),
    )
    names = tuple(dict.fromkeys(wanted.name for wanted in requirements))
    whom = asker(session)
    with session.client(whom.conf) as client, suggesting(client, names, registry=whom.conf.registry_id):
        project, relocked = add(folder, whom, addition)
    session.emit(
        {
            "requirements": {name: _of(project, name) for name in names},
            **lock_members(relocked, folder.lock_path),
        }
    )
    for name in () if session.is_json else names:
        session.say(f'spm.toml   {name} = "{_of(project, name)["range"]}"')
    show_lock(relocked, session)
    return 0


def _of(project: Project, name: PluginName) -> dict[str, object]:
    wanted = project.find(name)
    assert wanted is not None, "what was added is required"
    return wanted.to_dict()

"""`spm outdated`."""

import argparse
from collections.abc import Mapping

from manifests.names import PluginName
from manifests.project import Project
from manifests.project_lock import ProjectLock
from manifests.target import Target
from spm_client.adapters.project_files import ProjectFolder
from spm_client.cli.graph_options import installed_ranges
from spm_client.cli.project_options import add_project, asker, find_folder
from spm_client.cli.session import Session
from spm_client.render import table
from spm_client.resolve.requirement import ANY
from spm_client.workflows.lock import require_registry
from spm_client.workflows.outdated import INSTALLED, LOCKED, Held, Outdated, Want, outdated


def configure(parser: argparse.ArgumentParser) -> None:
    add_project(parser)


def run(options: argparse.Namespace, session: Session) -> int:
    folder = find_folder(options)
    if folder is None:
        kind, held, project = INSTALLED, _installed(session), Project(name="store", targets=())
    else:
        kind, held, project = LOCKED, _locked(folder), folder.project
        require_registry(project, folder.lock, session.conf().registry_id)
    found: tuple[Outdated, ...] = ()
    if held:
        with asker(session).asking(project, is_kept=False) as (indexes, _):
            indexes.prefetch([one.name for one in held])
            found = outdated(held, indexes.releases, kind=kind)
    session.emit({"of": kind, "plugins": [one.to_dict() for one in found]})
    if not session.is_json:
        _show(found, kind, {name for one in held for name in one.targets})
    return 0


def _locked(folder: ProjectFolder) -> list[Held]:
    lock = folder.require_lock()
    return [
        Held(
            name=plugin.name,
            version=plugin.version,
            targets={name: folder.targets[name] for name, _ in plugin.targets if name in folder.targets},
            wants=_wants(lock, plugin.name, {name for name, _ in plugin.targets}),
            is_pre=plugin.name in lock.pre or any(one.name == plugin.name and one.is_pre for one in lock.requirements),
        )
        for plugin in lock.plugins
    ]


def _wants(lock: ProjectLock, name: PluginName, targets: set[str]) -> tuple[Want, ...]:
    """Return what spm.toml, and what is locked for any of the targets, puts on a plugin."""
    found = [Want(by="spm.toml", range=one.range) for one in lock.requirements if one.name == name]
    for plugin in lock.plugins:
        if targets & {target for target, _ in plugin.targets}:
            found += [Want(by=f"{plugin.name} {plugin.version}", range=r) for n, r in plugin.requires if n == name]
    return tuple(found)


def _installed(session: Session) -> list[Held]:
    generation = session.generation("")
    host: Mapping[str, Target] = {"": session.target(None)} if generation.plugins else {}
    ranges = {entry.name: installed_ranges(session, entry.manifest_sha256) for entry in generation.plugins}
    return [
        Held(
            name=entry.name,
            version=entry.version,
            targets=host,
            wants=tuple(
                Want(by=f"{other.name} {other.version}", range=ranges[other.name].get(entry.name, ANY))
                for other in generation.plugins
                if entry.name in other.requires
            ),
        )
        for entry in generation.plugins
    ]


def _show(found: tuple[Outdated, ...], kind: str, targets: set[str]) -> None:
    if not found:
        print(f"everything that is {kind} is the newest there is")
        return
    rows = [
        (
            one.name + ("" if set(one.targets) == targets else f" ({', '.join(one.targets)})"),
            str(one.version),
            str(one.in_range or "-"),
            str(one.newest or "-"),
            "; ".join(filter(None, (f"yanked: {one.yanked}" if one.yanked else "", one.kept_back_by))),
        )
        for one in found
    ]
    print(table(("NAME", kind.upper(), "IN RANGE", "NEWEST", "WHY"), rows))

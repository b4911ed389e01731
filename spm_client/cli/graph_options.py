"""Which graph `spm tree` and `spm why` show: a lock's, for one target or each, or the installed one. Draws nothing."""

import argparse
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from manifests.errors import SpmError, UsageError
from manifests.manifest import MAX_MANIFEST_BYTES, Manifest
from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.cli.project_options import add_project, find_folder
from spm_client.cli.session import Session
from spm_client.workflows.graph import Graph, of_generation, of_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A graph, what its root is called, and the targets that it is of; none for what is installed."""

    graph: Graph
    root: str
    targets: tuple[str, ...] = ()


def add_graph(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    parser.add_argument("--target", metavar="NAME", help="show what spm.lock has for this target (default: for each)")


def graphs(options: argparse.Namespace, session: Session) -> tuple[Shown, ...]:
    """Return the graphs to show: one for all targets that take the same, or the one of the store without a project.

    Raises: LockMissing for a project without a lock; UsageError for a target that there is not.
    """
    folder = find_folder(options)
    if folder is None:
        if options.target is not None:
            raise UsageError("`--target` is for a project's lock, and there is no spm.toml here or above")
        return (_installed(session),)
    lock = folder.require_lock()
    names = [name for name, _ in lock.targets]
    if options.target is not None and options.target not in names:
        raise UsageError(
            f"spm.lock has no target `{options.target}`; it has {', '.join(f'`{name}`' for name in names)}"
        )
    grouped: list[tuple[Graph, list[str]]] = []
    for name in names if options.target is None else [options.target]:
        graph = of_lock(lock, name)
        same = next((targets for other, targets in grouped if other == graph), None)
        if same is None:
            grouped.append((graph, [name]))
        else:
            same.append(name)
    return tuple(Shown(graph=graph, root=folder.project.name, targets=tuple(targets)) for graph, targets in grouped)


def _installed(session: Session) -> Shown:
    generation = session.generation("")

    def ranges_of(sha256: str) -> Mapping[PluginName, str]:
        return {name: wanted.text for name, wanted in installed_ranges(session, sha256).items()}

    root = f"{session.layout.root} (generation {generation.number})"
    return Shown(graph=of_generation(generation, ranges_of), root=root)


def installed_ranges(session: Session, sha256: str) -> Mapping[PluginName, Range]:
    """Return the ranges that an installed manifest puts on others; nothing where it is not what was installed.

    They are shown only: what is installed is loaded by `runtime`, which verifies it.
    """
    try:
        with (session.layout.manifest(sha256) / "manifest.json").open("rb") as file:
            data = file.read(MAX_MANIFEST_BYTES + 1)
        if hashlib.sha256(data).hexdigest() != sha256:
            return {}
        return dict(Manifest.from_bytes(data).requires.plugins)
    except (OSError, SpmError):
        return {}

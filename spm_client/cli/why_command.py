"""`spm why`."""

import argparse
from typing import Any

from manifests.names import PluginName, parse_query
from spm_client.cli.graph_options import Shown, add_graph, graphs
from spm_client.cli.session import Session
from spm_client.render import warn
from spm_client.workflows.graph import MAX_PATHS, Edge, Graph, paths_to
from spm_client.workflows.project import require_known


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a locked or an installed plugin")
    add_graph(parser)


def run(options: argparse.Namespace, session: Session) -> int:
    name = parse_query(options.name)
    shown = graphs(options, session)
    what = "is not in spm.lock" if shown[0].targets else "is not installed"
    require_known(name, sorted({one for each in shown for one in each.graph.nodes}), what)
    found = [(each, *paths_to(each.graph, name)) for each in shown if name in each.graph.nodes]
    session.emit({"name": name, "graphs": [_as_dict(each, name, paths, whole) for each, paths, whole in found]})
    for each, paths, is_whole in found:
        if not session.is_json:
            print(_told(each, name, paths, is_named=len(shown) > 1))
        if not is_whole:
            warn(f"note: there are more paths than the {MAX_PATHS} or fewer that were followed")
    return 0


def _as_dict(shown: Shown, name: PluginName, paths: tuple[tuple[Edge, ...], ...], is_whole: bool) -> dict[str, Any]:
    return {
        "targets": list(shown.targets),
        "version": shown.graph.nodes[name].version,
        "paths": [
            [{"name": e.name, "version": shown.graph.nodes[e.name].version, "range": e.range} for e in path]
            for path in paths
        ],
        "is_whole": is_whole,
    }


def _told(shown: Shown, name: PluginName, paths: tuple[tuple[Edge, ...], ...], *, is_named: bool) -> str:
    head = str(shown.graph.nodes[name]) + (f" for {', '.join(shown.targets)}" if is_named else "")
    root = shown.root if shown.targets else "you"
    return "\n".join((head, *(f"  {_path(shown.graph, root, path)}" for path in paths)))


def _path(graph: Graph, root: str, path: tuple[Edge, ...]) -> str:
    return " -> ".join((root, *(f"{graph.nodes[edge.name]}{edge}" for edge in path)))

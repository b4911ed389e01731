"""`spm tree`."""

import argparse

from spm_client.cli.graph_options import Shown, add_graph, graphs
from spm_client.cli.session import Session
from spm_client.workflows.graph import tree_lines

MAX_DEPTH = 9999


def configure(parser: argparse.ArgumentParser) -> None:
    add_graph(parser)
    parser.add_argument("--depth", type=_depth, metavar="N", help="show no more than N levels below the root")


def _depth(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MAX_DEPTH:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a number from 1 to {MAX_DEPTH}")
    return int(text)


def run(options: argparse.Namespace, session: Session) -> int:
    shown = graphs(options, session)
    session.emit({"trees": [{"root": one.root, "targets": list(one.targets), **one.graph.to_dict()} for one in shown]})
    if not session.is_json:
        print("\n\n".join(_tree(one, options.depth, is_named=len(shown) > 1) for one in shown))
    return 0


def _tree(shown: Shown, depth: int | None, *, is_named: bool) -> str:
    head = shown.root + (f" for {', '.join(shown.targets)}" if is_named else "")
    if not shown.graph.roots:
        return f"{head}: nothing is {'required' if shown.targets else 'installed'}"
    return "\n".join((head, *tree_lines(shown.graph, depth=depth)))

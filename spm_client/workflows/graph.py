"""What requires what, of a lock or of a generation: as a tree, and as the paths to one plugin. Pure; reads nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from manifests.lockfile import Generation
from manifests.names import PluginName
from manifests.project_lock import ProjectLock

MAX_PATHS = 1000
MAX_STEPS = 200_000

Above = tuple[PluginName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A requirement of a plugin; the range is None where nothing says it."""

    name: PluginName
    range: str | None

    def __str__(self) -> str:
        return f" ({self.range})" if self.range is not None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One plugin in a graph."""

    name: PluginName
    version: str
    requires: tuple[Edge, ...] = ()
    is_fallback: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Plugins by name, and those that were asked for; what is required is always among them."""

    roots: tuple[Edge, ...]
    nodes: Mapping[PluginName, Node]

    def to_dict(self) -> dict[str, Any]:
        return {
            "requirements": {edge.name: edge.range for edge in self.roots},
            "plugins": [
                {
                    "name": node.name,
                    "version": node.version,
                    "is_fallback": node.is_fallback,
                    "requires": {edge.name: edge.range for edge in node.requires},
                }
                for node in self.nodes.values()
            ],
        }


def of_lock(lock: ProjectLock, target: str) -> Graph:
    """Return what a lock has for one target."""
    return Graph(
        roots=tuple(Edge(name=wanted.name, range=wanted.range.text) for wanted in lock.requirements),
        nodes={
            plugin.name: Node(
                name=plugin.name,
                version=str(plugin.version),
                requires=tuple(Edge(name=name, range=wanted.text) for name, wanted in plugin.requires),
                is_fallback=bool((pin := plugin.pin(target)) and pin.fallback),
            )
            for plugin in lock.of_target(target)
        },
    )


def of_generation(generation: Generation, ranges_of: Callable[[str], Mapping[PluginName, str]]) -> Graph:
    """Return what is installed; `ranges_of` tells a manifest's requirements by its digest, as far as it can."""
    return Graph(
        roots=tuple(Edge(name=entry.name, range=None) for entry in generation.plugins if entry.requested),
        nodes={
            entry.name: Node(
                name=entry.name,
                version=str(entry.version),
                requires=tuple(
                    Edge(name=name, range=ranges_of(entry.manifest_sha256).get(name)) for name in sorted(entry.requires)
                ),
                is_fallback=entry.fallback is not None,
            )
            for entry in generation.plugins
        },
    )


def tree_lines(graph: Graph, *, depth: int | None = None) -> Iterator[str]:
    """Yield the tree below its root, as `cargo tree` draws it.

    What was shown with its requirements before is marked `(*)`, what requires itself in the end `(cycle)`.
    """
    shown: set[PluginName] = set()
    waiting = list(reversed(_branches(graph.roots, "", ())))
    while waiting:
        edge, indent, is_last, above = waiting.pop()
        node = graph.nodes[edge.name]
        is_seen = edge.name in shown
        yield f"{indent}{'└── ' if is_last else '├── '}{node}{edge}{_mark(node, above, is_seen=is_seen)}"
        if is_seen or (depth is not None and len(above) + 1 >= depth):
            continue
        shown.add(edge.name)
        below = indent + ("    " if is_last else "│   ")
        waiting.extend(reversed(_branches(node.requires, below, (*above, edge.name))))


def _branches(edges: tuple[Edge, ...], indent: str, above: Above) -> list[tuple[Edge, str, bool, Above]]:
    return [(edge, indent, place == len(edges), above) for place, edge in enumerate(edges, 1)]


def _mark(node: Node, above: Above, *, is_seen: bool) -> str:
    fallback = " (fallback)" if node.is_fallback else ""
    if node.name in above:
        return f"{fallback} (cycle)"
    return f"{fallback} (*)" if is_seen and node.requires else fallback


def paths_to(graph: Graph, name: PluginName) -> tuple[tuple[tuple[Edge, ...], ...], bool]:
    """Return the paths of requirements from what was asked for to a plugin, short ones first; and if these are all.

    No path goes through a plugin twice. Of very many, those found first are returned.
    """
    far = _distances(graph, name)
    found: list[tuple[Edge, ...]] = []
    waiting: list[tuple[Edge, ...]] = [
        (root,) for root in sorted(graph.roots, key=lambda edge: far.get(edge.name, 0), reverse=True)
    ]
    steps = 0
    while waiting and len(found) < MAX_PATHS and steps < MAX_STEPS:
        path = waiting.pop()
        steps += 1
        if path[-1].name == name:
            found.append(path)
            continue
        taken = {edge.name for edge in path}
        onward = [edge for edge in graph.nodes[path[-1].name].requires if edge.name in far and edge.name not in taken]
        waiting.extend((*path, edge) for edge in sorted(onward, key=lambda edge: far[edge.name], reverse=True))
    return tuple(sorted(found, key=lambda path: (len(path), [edge.name for edge in path]))), not waiting


def _distances(graph: Graph, name: PluginName) -> dict[PluginName, int]:
    """Return how many requirements lie between a plugin and each that needs it, at least."""
    requirers: dict[PluginName, list[PluginName]] = {}
    for node in graph.nodes.values():
        for edge in node.requires:
            requirers.setdefault(edge.name, []).append(node.name)
    far, queue = {name: 0}, [name]
    for one in queue:
        for other in requirers.get(one, ()):
            if other not in far:
                far[other] = far[one] + 1
                queue.append(other)
    return far

"""A large public graph: every release of it as a root is solved or refuted, and each answer is checked."""

from typing import Any

from manifests.ranges import Range
from manifests.versions import Version
from spm_client.resolve import NoSolution
from spm_client.resolve.universe import Universe
from tests.spm_client.resolve.vectors import vectors

Graph = dict[str, dict[str, dict[str, str]]]


def packages_of(graph: Graph) -> dict[str, Any]:
    return {
        name: {version: {"requires": requires, "yanked": False} for version, requires in releases.items()}
        for name, releases in graph.items()
    }


def unmet(graph: Graph, chosen: dict[str, str]) -> list[str]:
    return [
        f"{name} {version} requires {other} {wanted}"
        for name, version in chosen.items()
        for other, wanted in graph[name][version].items()
        if other not in chosen or not Range.parse(wanted).contains(Version.parse(chosen[other]))
    ]


def test_every_root_of_the_graph_is_solved_or_refuted() -> None:
    graph: Graph = vectors("pubgrub_graph_0.json")
    universe = Universe(packages_of(graph))

    solved, refuted, wrong = 0, 0, []
    for name, releases in graph.items():
        for version in releases:
            try:
                chosen = universe.solve({name: f"=={version}"})
            except NoSolution as refused:
                refuted += 1
                wrong += [] if f"`{name}`" in refused.message else [refused.message]
            else:
                solved += 1
                wrong += unmet(graph, chosen)

    assert (wrong, solved, refuted) == ([], 593, 48)

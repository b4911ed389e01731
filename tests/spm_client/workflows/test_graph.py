"""What requires what, drawn and explained: trees as golden text, every path to a plugin, and no end to a cycle."""

from collections.abc import Mapping

from manifests.lockfile import Generation
from manifests.names import PluginName
from spm_client.workflows.graph import MAX_PATHS, Edge, Graph, Node, of_generation, paths_to, tree_lines
from tests.manifests.builders import CREATED, installed


def graph(roots: str, **nodes: str) -> Graph:
    """Make a graph of plugins that require others by `^1`: `graph("a", a="b c", b="", c="")`."""
    return Graph(
        roots=edges(roots),
        nodes={
            PluginName(name): Node(name=PluginName(name), version="1.0.0", requires=edges(text))
            for name, text in nodes.items()
        },
    )


def edges(text: str) -> tuple[Edge, ...]:
    return tuple(Edge(name=PluginName(name), range="^1") for name in text.split())


def drawn(found: Graph, depth: int | None = None) -> str:
    return "\n".join(tree_lines(found, depth=depth))


def told(found: Graph, name: str) -> list[str]:
    paths, is_whole = paths_to(found, PluginName(name))
    assert is_whole
    return [" ".join(edge.name for edge in path) for path in paths]


def test_a_tree_shows_each_plugin_with_its_requirements_once() -> None:
    found = graph("a d", a="b c", b="e", c="b", d="", e="")

    assert drawn(found) == (
        "├── a 1.0.0 (^1)\n"
        "│   ├── b 1.0.0 (^1)\n"
        "│   │   └── e 1.0.0 (^1)\n"
        "│   └── c 1.0.0 (^1)\n"
        "│       └── b 1.0.0 (^1) (*)\n"
        "└── d 1.0.0 (^1)"
    )


def test_a_leaf_that_is_shown_again_is_not_marked() -> None:
    assert drawn(graph("a b", a="b", b="")) == "├── a 1.0.0 (^1)\n│   └── b 1.0.0 (^1)\n└── b 1.0.0 (^1)"


def test_a_cycle_ends_where_it_closes() -> None:
    assert drawn(graph("a", a="b", b="a")) == (
        "└── a 1.0.0 (^1)\n    └── b 1.0.0 (^1)\n        └── a 1.0.0 (^1) (cycle)"
    )


def test_depth_cuts_below_and_repeats_nothing_for_it() -> None:
    assert drawn(graph("a b", a="b", b="c", c=""), depth=2) == (
        "├── a 1.0.0 (^1)\n│   └── b 1.0.0 (^1)\n└── b 1.0.0 (^1)\n    └── c 1.0.0 (^1)"
    )


def test_a_very_deep_tree_is_drawn() -> None:
    names = [f"p{place}" for place in range(3000)]
    nodes = dict(zip(names, [*names[1:], ""], strict=True))

    assert len(list(tree_lines(graph("p0", **nodes)))) == 3000
    assert len(told(graph("p0", **nodes), "p2999")) == 1


def test_an_installed_fallback_is_marked_and_ranges_come_from_the_manifests() -> None:
    plugins = (
        installed("alpha", requires=(PluginName("beta"), PluginName("gamma")), fallback="it was accepted"),
        installed("beta", requested=False),
        installed("gamma", requested=False),
    )
    generation = Generation(number=3, registry="team.example", created=CREATED, plugins=plugins)

    def ranges_of(_sha256: str) -> Mapping[PluginName, str]:
        return {PluginName("beta"): "^1.0"}

    assert drawn(of_generation(generation, ranges_of)) == (
        "└── alpha 1.0.0 (fallback)\n    ├── beta 1.0.0 (^1.0)\n    └── gamma 1.0.0"
    )


def test_every_path_is_told_the_short_ones_first() -> None:
    assert told(graph("a d", a="b c", b="c", c="", d="a"), "c") == ["a c", "a b c", "d a c", "d a b c"]


def test_a_plugin_that_was_asked_for_and_is_required_has_both_paths() -> None:
    assert told(graph("a b", a="b", b=""), "b") == ["b", "a b"]


def test_paths_go_through_no_plugin_twice() -> None:
    assert told(graph("a", a="b", b="a c", c="b"), "c") == ["a b c"]


def test_of_very_many_paths_the_first_are_told() -> None:
    nodes = {f"l{n}": f"m{n} k{n}" for n in range(40)}
    nodes |= {f"{side}{n}": f"l{n + 1}" for side in "mk" for n in range(40)} | {"l40": ""}

    paths, is_whole = paths_to(graph("l0", **nodes), PluginName("l40"))

    assert (len(paths), is_whole) == (MAX_PATHS, False)

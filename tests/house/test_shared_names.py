"""Tests share a registry, which lets no two names in that a reader could take for one another; so they need others."""

import ast
from collections import defaultdict

from manifests.names import confusable_key
from tests.house.rooms import ROOT


def published() -> set[str]:
    """Return the names that end-to-end tests publish, wherever they write them out."""
    calls = (
        node
        for path in sorted((ROOT / "tests" / "e2e").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "write_source"
    )
    names = (call.args[1].value for call in calls if len(call.args) > 1 and isinstance(call.args[1], ast.Constant))
    return {name for name in names if isinstance(name, str)}


def test_no_two_names_that_tests_publish_could_be_taken_for_one_another() -> None:
    alike = defaultdict(set)
    for name in published():
        alike[confusable_key(name)].add(name)

    assert len(alike) > 5
    assert [names for names in alike.values() if len(names) > 1] == []

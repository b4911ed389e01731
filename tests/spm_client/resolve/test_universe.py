"""A universe given as JSON: what outside checks call."""

from typing import Any

import pytest

from manifests.errors import UsageError
from spm_client.resolve import NoSolution, solve_universe

PAIRS: dict[str, Any] = {
    name: releases
    for pair in range(12)
    for name, releases in {
        f"alto{pair}": {"1.0.0": {"requires": {}}, "2.0.0": {"requires": {}}},
        f"mid{pair}": {"1.0.0": {"requires": {f"alto{pair}": "^1"}}},
        f"beat{pair}": {"1.0.0": {"requires": {}}, "2.0.0": {"requires": {f"mid{pair}": "*"}}},
    }.items()
}
ROOT = {name: "*" for name in PAIRS if not name.startswith("mid")}


@pytest.mark.parametrize("accept_fallback", [True, False])
def test_resolution_without_fallback_is_taken_where_there_is_one(accept_fallback: bool) -> None:
    found = solve_universe(PAIRS, ROOT, accept_fallback=accept_fallback)

    assert {found[f"beat{pair}"] for pair in range(12)} == {"2.0.0"}
    assert {found[f"alto{pair}"] for pair in range(12)} == {"1.0.0"}


def test_text_of_no_solution_is_the_explanation() -> None:
    packages = {"a": {"1.0.0": {"requires": {"b": "^2"}}}, "b": {"1.0.0": {"requires": {}}}}

    with pytest.raises(NoSolution) as refused:
        solve_universe(packages, {"a": "*"})

    assert str(refused.value) == (
        "no set of releases satisfies every requirement:\n"
        "`a`: `*` wanted by you\n"
        "  1.0.0: requires `b` `^2`\n"
        "`b`: `^2` wanted by `a` 1.0.0\n"
        "  1.0.0: outside `^2` (wanted by `a`)"
    )


def test_fallback_is_no_solution_where_none_is_accepted() -> None:
    packages = {"a": {"1.0.0": {"requires": {}}, "2.0.0": {"requires": {"gone": "*"}}}}

    with pytest.raises(NoSolution) as refused:
        solve_universe(packages, {"a": "*"}, accept_fallback=False)

    assert (refused.value.reason, str(refused.value)) == (
        "fallback",
        "`a` would fall back to 1.0.0, older than the newest release in range:\n"
        "  2.0.0: requires `gone` `*`, in which there is no release",
    )
    assert solve_universe(packages, {"a": "*"}) == {"a": "1.0.0"}


def test_yanked_release_is_not_taken() -> None:
    packages = {"a": {"1.0.0": {"requires": {}}, "2.0.0": {"requires": {}, "yanked": True}}}

    assert solve_universe(packages, {"a": "*"}) == {"a": "1.0.0"}
    assert solve_universe(packages, {"a": "==2.0.0"}) == {"a": "2.0.0"}


def test_long_chain_that_ends_nowhere_is_told_link_by_link() -> None:
    length = 300
    packages = {f"p{place}": {"1.0.0": {"requires": {f"p{place + 1}": "*"}}} for place in range(length)}

    with pytest.raises(NoSolution) as refused:
        solve_universe(packages, {"p0": "*"})

    lines = str(refused.value).splitlines()
    assert len(lines) == 1 + 2 * length + 2
    assert lines[-2:] == [f"`p{length}`: `*` wanted by `p{length - 1}` 1.0.0", "  it has no releases"]


@pytest.mark.parametrize(
    ("packages", "root"),
    [
        ({"a": {"1.0.0": {"requires": None}}}, {"a": "*"}),
        ({"a": {"1.0.0": None}}, {"a": "*"}),
        ({"a": ["1.0.0"]}, {"a": "*"}),
        ({"a": {"1.0.0": {"requires": {}}}}, ["a"]),
        ({"a": {"1.0.0": {"requires": {"b": 1}}}}, {"a": "*"}),
    ],
)
def test_other_shapes_are_refused(packages: Any, root: Any) -> None:
    with pytest.raises(UsageError):
        solve_universe(packages, root)

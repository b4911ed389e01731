"""packse's scenarios, through an adapter: its pre-release rule is Python's, and its JSON holds one range a plugin."""

from typing import Any

import pytest

from spm_client.resolve import NoSolution, solve_universe
from tests.spm_client.resolve.vectors import vectors

ONE_VERSION_TWICE = {"direct-incompatible-versions": {"a": "==1.0.0,==2.0.0"}}
"""Two requirements on one plugin, of which the JSON kept the last one."""


def opted_in(scenario: dict[str, Any]) -> set[str]:
    """Return the plugins whose pre-releases packse lets in.

    Those asked for by a range with a pre-release in it, those that have nothing else, and where the user said so all.
    """
    if scenario["name"].endswith("global-opt-in"):
        return set(scenario["packages"])
    asked = {name for name, wanted in scenario["root"].items() if "-" in wanted}
    return asked | {name for name, releases in scenario["packages"].items() if all("-" in text for text in releases)}


def solved(scenario: dict[str, Any], *, accept_fallback: bool) -> dict[str, str] | None:
    root = ONE_VERSION_TWICE.get(scenario["name"], scenario["root"])
    try:
        return solve_universe(scenario["packages"], root, pre=opted_in(scenario), accept_fallback=accept_fallback)
    except NoSolution:
        return None


def is_expected(scenario: dict[str, Any], found: dict[str, str] | None) -> bool:
    """Hold an answer against the scenario's; some say only that there is one."""
    if not scenario["satisfiable"]:
        return found is None
    return found == scenario["expected"] if scenario["expected"] else found is not None


@pytest.mark.parametrize("accept_fallback", [True, False])
def test_every_scenario_of_packse_ends_as_expected(accept_fallback: bool) -> None:
    scenarios = vectors("packse.json")

    wrong = {
        scenario["name"]: found
        for scenario in scenarios
        if not is_expected(scenario, found := solved(scenario, accept_fallback=accept_fallback))
    }

    assert wrong == {}
    assert len(scenarios) == 25


EXPLAINED = {
    "backtrack-to-missing-package": """\
no set of releases satisfies every requirement:
`b`: `*` wanted by you
  3.0.0, 2.0.0, 1.0.0: requires `a` `==1.0.0`
`a`: `==1.0.0` wanted by `b` 3.0.0, 2.0.0, 1.0.0
  2.0.0: outside `==1.0.0` (wanted by `b`)
  1.0.0: requires `c` `*`
`c`: `*` wanted by `a` 1.0.0
  it has no releases""",
    "requires-exact-version-does-not-exist": "`a` has no release in `==2.0.0`; the newest of 1 is 1.0.0",
    "requires-less-version-does-not-exist": "`a` has no release in `<2.0.0`; the newest of 3 is 4.0.0",
    "requires-package-does-not-exist": "`a` has no releases",
    "transitive-incompatible-with-transitive": """\
no set of releases satisfies every requirement:
`a`: `*` wanted by you
  1.0.0: requires `c` `==1.0.0`
`b`: `*` wanted by you
  1.0.0: requires `c` `==2.0.0`
`c`: `==1.0.0` wanted by `a` 1.0.0; `==2.0.0` wanted by `b` 1.0.0
  2.0.0: outside `==1.0.0` (wanted by `a`)
  1.0.0: outside `==2.0.0` (wanted by `b`)""",
    "transitive-prerelease-and-stable-dependency": """\
no set of releases satisfies every requirement:
`a`: `*` wanted by you
  1.0.0: requires `c` `==2.0.0-beta.1`
`b`: `*` wanted by you
  1.0.0: requires `c` `>=1.0.0,<=3.0.0`
`c`: `==2.0.0-beta.1` wanted by `a` 1.0.0; `>=1.0.0,<=3.0.0` wanted by `b` 1.0.0
  2.0.0-beta.1: a pre-release, which only `--pre c` lets in
  1.0.0: outside `==2.0.0-beta.1` (wanted by `a`)""",
}


@pytest.mark.parametrize("name", EXPLAINED)
def test_explanation_names_the_facts_of_the_scenario(name: str) -> None:
    scenario = next(scenario for scenario in vectors("packse.json") if scenario["name"] == name)

    with pytest.raises(NoSolution) as refused:
        solve_universe(scenario["packages"], scenario["root"], pre=opted_in(scenario))

    assert refused.value.message == EXPLAINED[name]

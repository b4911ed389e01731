"""Proofs that there is no resolution: every step follows, every fact is true, and the whole is readable."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import Unsatisfiable
from manifests.names import PluginName
from spm_client.resolve import resolve
from spm_client.resolve.budget import Budget
from spm_client.resolve.catalogue import Catalogue
from spm_client.resolve.core import find_core
from spm_client.resolve.derivation import Step, Terms, steps_of
from spm_client.resolve.fit import judge_for
from spm_client.resolve.incompatibility import Requires, Wished
from spm_client.resolve.solver import Solver
from tests.spm_client.resolve.test_against_brute_force import NAMES, every_resolution, random_universe
from tests.spm_client.resolve.universe import HOST, Universe, release, wishes


def proof_of(seed: int) -> tuple[Catalogue, list[Step]] | None:
    universe, roots = random_universe(seed)
    catalogue = Catalogue(provider=universe, judge=judge_for(HOST), wishes=roots, pre=frozenset(), locked={})
    solver = Solver(catalogue, roots, (), Budget(10_000))
    if solver.solve() is not None or solver.proof is None:
        assert any(True for _ in every_resolution(universe, roots))
        return None
    core = find_core(catalogue, solver.proof, Budget(10_000))
    steps = steps_of(catalogue, core.proof)
    assert steps is not None
    return catalogue, steps


def holds(terms: Terms, choice: dict[PluginName, int]) -> bool:
    """Tell whether all terms hold: bit 0 is the choice not to take a plugin."""
    return all(mask >> choice[name] & 1 for name, mask in terms.items())


@pytest.mark.property
@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_every_step_follows_from_its_premises_and_the_last_leaves_nothing(seed: int) -> None:
    found = proof_of(seed)
    if found is None:
        return
    catalogue, steps = found

    for step in steps:
        if isinstance(step.why, tuple):
            first, second = (steps[premise].terms for premise in step.why)
            names = sorted({*first, *second})
            widths = [range(len(catalogue[name].releases) + 1) for name in names]
            for numbers in product(*widths):
                choice = dict(zip(names, numbers, strict=True))
                assert holds(first, choice) or holds(second, choice) or not holds(step.terms, choice)
    assert steps[-1].terms == {}


@pytest.mark.property
@given(st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_every_fact_of_a_proof_is_true_of_the_universe(seed: int) -> None:
    found = proof_of(seed)
    if found is None:
        return
    universe, roots = random_universe(seed)

    for step in found[1]:
        match step.why:
            case Wished(wish):
                assert wish in roots
            case Requires(name, other, wanted):
                assert any((other, wanted) in entry.requires.plugins for entry in universe.plugins[name])
            case _:
                assert set(step.terms) <= set(NAMES)


def test_proof_reads_from_the_facts_to_the_end() -> None:
    universe = Universe(
        beat=[release("1.0.0", requires={"mel": "^2"}), release("1.1.0", requires={"mel": "^2"})],
        mel=[release("1.0.0"), release("2.0.0")],
    )

    with pytest.raises(Unsatisfiable) as refused:
        resolve(universe, wishes("beat", "mel@^1"), HOST)

    assert refused.value.context["derivation"] == [
        {"step": 1, "text": "you want `beat` `*`"},
        {"step": 2, "text": "you want `mel` `^1`"},
        {"step": 3, "text": "`beat` 1.1.0, 1.0.0 requires `mel` `^2`"},
        {"step": 4, "text": "so `beat` 1.1.0, 1.0.0 cannot be taken", "from": [3, 2]},
        {"step": 5, "text": "so there is no resolution", "from": [4, 1]},
    ]


def pigeons(holes: int) -> Universe:
    """Return a universe in which one pigeon more than there are holes wants a hole of its own."""
    count = holes + 1
    pigeon = {
        f"pigeon{one}": [release(f"{hole}.0.0", requires={f"hole{hole}": f"=={one}.0.0"}) for hole in range(1, count)]
        for one in range(1, count + 1)
    }
    hole = {f"hole{hole}": [release(f"{one}.0.0") for one in range(1, count + 1)] for hole in range(1, count)}
    return Universe(**pigeon, **hole)


def test_proof_that_nobody_would_read_is_left_out_and_the_refusal_stands() -> None:
    with pytest.raises(Unsatisfiable) as refused:
        resolve(pigeons(6), wishes(*(f"pigeon{one}" for one in range(1, 8))), HOST)

    assert "derivation" not in refused.value.context
    assert refused.value.message.startswith("no set of releases satisfies every requirement:\n`pigeon1`: `*` wanted by")

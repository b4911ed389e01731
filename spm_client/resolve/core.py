"""The smallest part of a problem that already cannot be resolved. Words it nowhere.

It begins with the facts at the leaves of a proof, and leaves out one after the other while the rest still proves it.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from spm_client.resolve.budget import Budget, LimitSpent
from spm_client.resolve.catalogue import Catalogue
from spm_client.resolve.incompatibility import Cause, Held, Requires, Wished, facts
from spm_client.resolve.requirement import Requirement
from spm_client.resolve.solver import Edge, Solver


@dataclass(frozen=True, slots=True)
class Core:
    """Requirements, ceilings and plugin-to-plugin edges that together have no resolution; none can be spared."""

    requirements: tuple[Requirement, ...]
    ceilings: tuple[Requirement, ...]
    edges: frozenset[Edge]
    proof: Cause

    @classmethod
    def of(cls, proof: Cause) -> "Core":
        """Return all that a proof rests on."""
        leaves = list(facts(proof))
        return cls(
            requirements=_sorted(leaf.requirement for leaf in leaves if isinstance(leaf, Wished)),
            ceilings=_sorted(leaf.requirement for leaf in leaves if isinstance(leaf, Held)),
            edges=frozenset((leaf.plugin, leaf.other) for leaf in leaves if isinstance(leaf, Requires)),
            proof=proof,
        )


def find_core(catalogue: Catalogue, proof: Cause, budget: Budget) -> Core:
    """Return a core of a problem that a proof shows to have no resolution, as small as the budget allows."""
    core = Core.of(proof)
    # Out of steps: what was left out so far was proven superfluous, so the rest is true, only longer.
    with suppress(LimitSpent):
        core = _without_requirements(catalogue, core, budget)
        for edge in sorted(core.edges, reverse=True):
            if edge in core.edges:
                core = _if_it_fails(catalogue, core, core.requirements, core.ceilings, core.edges - {edge}, budget)
    return core


def _without_requirements(catalogue: Catalogue, core: Core, budget: Budget) -> Core:
    for wish in reversed(core.requirements):
        if wish in core.requirements:
            rest = tuple(other for other in core.requirements if other is not wish)
            core = _if_it_fails(catalogue, core, rest, core.ceilings, core.edges, budget)
    for ceiling in reversed(core.ceilings):
        if ceiling in core.ceilings:
            rest = tuple(other for other in core.ceilings if other is not ceiling)
            core = _if_it_fails(catalogue, core, core.requirements, rest, core.edges, budget)
    return core


def _if_it_fails(
    catalogue: Catalogue,
    core: Core,
    requirements: Sequence[Requirement],
    ceilings: Sequence[Requirement],
    edges: Collection[Edge],
    budget: Budget,
) -> Core:
    """Return what the lesser problem's own proof rests on; the core as it is where that one has a resolution."""
    solver = Solver(catalogue, requirements, ceilings, budget, edges=edges)
    return core if solver.solve() is not None or solver.proof is None else Core.of(solver.proof)


def _sorted(wishes: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(wishes, key=lambda wish: (wish.name, wish.range.text, wish.source)))

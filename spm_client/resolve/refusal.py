"""A fallback in words: what better release or variant is passed over, by which fact, and what would accept it."""

from collections.abc import Sequence

from manifests.errors import FallbackRefused
from manifests.fit import Misfit, Unknown
from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve.budget import Budget, LimitSpent
from spm_client.resolve.catalogue import Catalogue
from spm_client.resolve.conflict import Conflict
from spm_client.resolve.core import find_core
from spm_client.resolve.explain import EXPLAIN_STEPS, conflict_lines
from spm_client.resolve.fallback import Fallback
from spm_client.resolve.fit import Fits, tag_of
from spm_client.resolve.requirement import Requirement
from spm_client.resolve.solver import Chosen, Solver
from spm_client.resolve.words import listed

TRIAL = "this release"
MAX_GROUPS, MAX_SENTENCE = 20, 4
GIVEN_UP = "whether there is a resolution without that was not found out: the search for one grew too long"


class FallbackTeller:
    """Usage: `raise teller.refusal(forbidden)`, `teller.sentence(accepted)`."""

    def __init__(
        self,
        catalogue: Catalogue,
        requirements: Sequence[Requirement],
        ceilings: Sequence[Requirement],
        chosen: Chosen,
        budget: Budget,
        *,
        is_undecided: bool,
    ) -> None:
        self._catalogue = catalogue
        self._requirements = tuple(requirements)
        self._ceilings = tuple(ceilings)
        self._chosen = chosen
        self._budget = budget
        self._is_undecided = is_undecided
        self._told: dict[tuple[PluginName, int], str] = {}

    def refusal(self, forbidden: Sequence[Fallback]) -> FallbackRefused:
        """Return the refusal of fallbacks that nobody accepted, every passed-over release with its fact.

        It says so where the search for a resolution without them was given up.
        """
        lines = [line for fallback in forbidden for line in self._lines(fallback)]
        lines += [GIVEN_UP] if self._is_undecided else []
        flags = " ".join(f"--accept-fallback {fallback.name}" for fallback in forbidden)
        return FallbackRefused(
            "\n".join(lines),
            hint=f"add `{flags}` to accept that; it is recorded and shown ever after",
            fallbacks=[
                {
                    "plugin": fallback.name,
                    "version": self._version(fallback.name, self._chosen[fallback.name]),
                    "passed_over": [{"release": what, "why": why} for what, why in self._passed_over(fallback)],
                }
                for fallback in forbidden
            ],
            accept=[fallback.name for fallback in forbidden],
        )

    def sentence(self, fallback: Fallback) -> str:
        """Return what is recorded of a fallback that was accepted, or that the lockfile holds."""
        taken = f"{fallback.name} {self._version(fallback.name, self._chosen[fallback.name])}"
        if fallback.newer and fallback.is_locked:
            newer = listed(self._version(fallback.name, position) for position in fallback.newer)
            return f"{taken} is kept by the lockfile although {newer} is newer"
        grouped = _grouped(self._passed_over(fallback))
        passed = "; ".join(f"{listed(whats)} {'; '.join(_stripped(why))}" for why, whats in grouped[:MAX_SENTENCE])
        how = "is kept by the lockfile" if fallback.is_locked else "was accepted as a fallback"
        more = f"; and {len(grouped) - MAX_SENTENCE} more" if len(grouped) > MAX_SENTENCE else ""
        return f"{taken} {how}: {passed}{more}"

    def _lines(self, fallback: Fallback) -> list[str]:
        name = fallback.name
        version = self._version(name, self._chosen[name])
        if fallback.newer:
            head = f"`{name}` would fall back to {version}, older than the newest release in range:"
        else:
            head = f"`{name}` {version} would fall back to the variant `{self._taken_tag(name)}`, less specific than:"
        grouped = _grouped(self._passed_over(fallback))
        lines = [f"  {listed(whats)}: {why}" for why, whats in grouped[:MAX_GROUPS]]
        return [head, *lines, *([f"  ... and {len(grouped) - MAX_GROUPS} more"] if len(grouped) > MAX_GROUPS else [])]

    def _passed_over(self, fallback: Fallback) -> list[tuple[str, str]]:
        name = fallback.name
        verdict = self._catalogue[name].verdicts[self._chosen[name]]
        variants = verdict.passed_over if isinstance(verdict, Fits) else ()
        return [
            *((self._version(name, position), self._why_not(name, position)) for position in fallback.newer),
            *((f"variant `{tag_of(entry)}`", misfit.text) for entry, misfit in variants),
        ]

    def _why_not(self, name: PluginName, position: int) -> str:
        found = self._told.get((name, position))
        if found is None:
            found = self._told[name, position] = self._excluding_fact(name, position)
        return found

    def _excluding_fact(self, name: PluginName, position: int) -> str:
        """Return the fact that excludes a release: the target's, a clash with what is chosen, or a longer conflict."""
        verdict = self._catalogue[name].verdicts[position]
        if isinstance(verdict, Misfit | Unknown):
            return verdict.text
        for other, wanted in self._catalogue.release(name, position).requires.plugins:
            if (clash := self._clash(other, wanted)) is not None:
                return f"requires `{other}` `{wanted}`, {clash}"
        return self._conflict(name, position)

    def _clash(self, name: PluginName, wanted: Range) -> str | None:
        candidates = self._catalogue[name]
        bits = candidates.in_range(wanted)
        if not bits:
            return self._nothing_in(name, wanted)
        if not bits & candidates.usable:
            newest = (bits & -bits).bit_length() - 1
            verdict, yanked = candidates.verdicts[newest], candidates.releases[newest].yanked
            fact = verdict.text if isinstance(verdict, Misfit) else f"is yanked ({yanked})"
            return f"of which {self._version(name, newest)} {fact}"
        chosen = self._chosen.get(name)
        if chosen is None or bits >> chosen & 1 or not (since := self._since(name, bits)):
            return None
        return f"and `{name}` {self._version(name, chosen)} is taken{since}"

    def _nothing_in(self, name: PluginName, wanted: Range) -> str:
        """Say what there is of a plugin in a range in which nothing is offered."""
        if later := [one for one in self._catalogue.hidden.get(name, ()) if wanted.contains(one.version)]:
            return f"of which {listed(str(one.version) for one in later)} came after `--exclude-newer`"
        releases = self._catalogue[name].releases
        if early := [one for one in releases if wanted.contains(one.version, pre=True)]:
            return f"in which there are only pre-releases ({listed(str(one.version) for one in early)})"
        return "in which there is no release"

    def _since(self, name: PluginName, bits: int) -> str:
        """Return who wants a range of a plugin that leaves none of these releases, if one alone does."""
        wants = [(wish.range, wish.source) for wish in (*self._requirements, *self._ceilings) if wish.name == name]
        for other in sorted(self._chosen):
            release = self._catalogue.release(other, self._chosen[other])
            wants += [(r, f"`{other}` {release.version}") for n, r in release.requires.plugins if n == name]
        candidates = self._catalogue[name]
        told = (
            f", since {who} wants `{r}`" if who != "you" else f", since you want `{r}`"
            for r, who in wants
            if not candidates.in_range(r) & bits
        )
        return next(told, "")

    def _conflict(self, name: PluginName, position: int) -> str:
        version = self._version(name, position)
        forced = Requirement(name=name, range=Range.parse(f"=={version}"), source=TRIAL)
        solver = Solver(self._catalogue, (*self._requirements, forced), self._ceilings, self._budget)
        try:
            solver.solve()
        except LimitSpent:
            return f"no resolution with it was found within {EXPLAIN_STEPS} steps"
        if solver.proof is None:
            return (
                "was found only with another fallback"
                if self._is_undecided
                else "can be had only with another fallback"
            )
        conflict = Conflict(self._catalogue, find_core(self._catalogue, solver.proof, self._budget))
        lines = conflict_lines(conflict, but=TRIAL)
        return "\n    ".join(("cannot be had with the rest:", *lines))

    def _taken_tag(self, name: PluginName) -> str:
        verdict = self._catalogue[name].verdicts[self._chosen[name]]
        return tag_of(verdict.variant) if isinstance(verdict, Fits) else "any"

    def _version(self, name: PluginName, position: int) -> str:
        return str(self._catalogue.release(name, position).version)


def _stripped(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def _grouped(passed_over: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Return each fact once, with all that it excludes."""
    by_fact: dict[str, list[str]] = {}
    for what, why in passed_over:
        by_fact.setdefault(why, []).append(what)
    return list(by_fact.items())

"""A fallback in words: what better release or variant is passed over, by which fact, and what would accept it."""

from collections.abc import Sequence

from manifests.errors import FallbackRefused
from manifests.fit import Misfit, Unknown
from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve.catalogue import Catalogue
from spm_client.resolve.core import find_core
from spm_client.resolve.explain import EXPLAIN_STEPS, conflict_lines, listed
from spm_client.resolve.fallback import Fallback
from spm_client.resolve.fit import Fits, tag_of
from spm_client.resolve.requirement import Requirement
from spm_client.resolve.search import Budget, Chosen, LimitSpent, search

TRIAL = "this release"


class FallbackTeller:
    """Usage: `raise teller.refusal(forbidden)`, `teller.sentence(accepted)`."""

    def __init__(
        self,
        catalogue: Catalogue,
        requirements: Sequence[Requirement],
        ceilings: Sequence[Requirement],
        chosen: Chosen,
    ) -> None:
        self._catalogue = catalogue
        self._requirements = tuple(requirements)
        self._ceilings = tuple(ceilings)
        self._chosen = chosen
        self._budget = Budget(EXPLAIN_STEPS)

    def refusal(self, forbidden: Sequence[Fallback]) -> FallbackRefused:
        """Return the refusal of fallbacks that nobody accepted, every passed-over release with its fact."""
        lines = [line for fallback in forbidden for line in self._lines(fallback)]
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
        passed = "; ".join(f"{what} {'; '.join(_stripped(why))}" for what, why in self._passed_over(fallback))
        return f"{taken} was accepted as a fallback: {passed}"

    def _lines(self, fallback: Fallback) -> list[str]:
        name = fallback.name
        version = self._version(name, self._chosen[name])
        if fallback.newer:
            head = f"`{name}` would fall back to {version}, older than the newest release in range:"
        else:
            head = f"`{name}` {version} would fall back to the variant `{self._taken_tag(name)}`, less specific than:"
        return [head, *(f"  {what}: {why}" for what, why in self._passed_over(fallback))]

    def _passed_over(self, fallback: Fallback) -> list[tuple[str, str]]:
        name = fallback.name
        verdict = self._catalogue[name].verdicts[self._chosen[name]]
        variants = verdict.passed_over if isinstance(verdict, Fits) else ()
        return [
            *((self._version(name, position), self._why_not(name, position)) for position in fallback.newer),
            *((f"variant `{tag_of(entry)}`", misfit.text) for entry, misfit in variants),
        ]

    def _why_not(self, name: PluginName, position: int) -> str:
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
            return "in which there is no release"
        if not bits & candidates.usable:
            newest = (bits & -bits).bit_length() - 1
            verdict, yanked = candidates.verdicts[newest], candidates.releases[newest].yanked
            fact = verdict.text if isinstance(verdict, Misfit) else f"is yanked ({yanked})"
            return f"of which {self._version(name, newest)} {fact}"
        chosen = self._chosen.get(name)
        if chosen is None or bits >> chosen & 1:
            return None
        return f"and `{name}` {self._version(name, chosen)} is taken{self._since(name, bits)}"

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
        requirements = (*self._requirements, forced)
        try:
            found = search(self._catalogue, requirements, self._ceilings, self._budget)
        except LimitSpent:
            return f"no resolution with it was found within {EXPLAIN_STEPS} steps"
        if found is not None:
            return "can be had only with another fallback"
        core = find_core(self._catalogue, requirements, self._ceilings, self._budget)
        lines = [line for line in conflict_lines(self._catalogue, core) if not line.endswith(f"(wanted by {TRIAL})")]
        return "\n    ".join(("cannot be had with the rest:", *lines))

    def _taken_tag(self, name: PluginName) -> str:
        verdict = self._catalogue[name].verdicts[self._chosen[name]]
        return tag_of(verdict.variant) if isinstance(verdict, Fits) else "any"

    def _version(self, name: PluginName, position: int) -> str:
        return str(self._catalogue.release(name, position).version)


def _stripped(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]

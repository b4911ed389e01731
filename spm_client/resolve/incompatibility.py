"""Incompatibilities: sets of releases that cannot all be taken, each with the cause that makes it true. Solves nothing.

The words are those of pub's doc/solver.md. A term says of one plugin that the choice made for it is one of a set. The
choices of a plugin are its releases and *none at all*, so a set is an integer: bit 0 is "not taken", bit n + 1 the
release at position n, newest first. A negative term ("not one of these") is the complement, with bit 0 in it.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from manifests.names import PluginName
from manifests.ranges import Range
from spm_client.resolve.requirement import Requirement

ABSENT = 1
"""The choice not to take a plugin at all."""
EVERYTHING = -1
Plugin = TypeVar("Plugin", bound=Hashable)
"""A plugin's name, or its number in the solver."""


@dataclass(frozen=True, slots=True)
class Wished:
    """A requirement puts its range on a plugin."""

    requirement: Requirement


@dataclass(frozen=True, slots=True)
class Held:
    """A pin bounds a plugin without asking for it."""

    requirement: Requirement


@dataclass(frozen=True, slots=True)
class Requires:
    """Releases of a plugin require another one in a range."""

    plugin: PluginName
    other: PluginName
    range: Range


@dataclass(frozen=True, slots=True)
class Unusable:
    """Facts of the index or the target rule releases of a plugin out: yanked, no variant that fits, too new."""

    plugin: PluginName


@dataclass(frozen=True, slots=True)
class NoFallback:
    """Taking an older release, or a lesser variant, would be a fallback that nobody accepted."""

    plugin: PluginName


@dataclass(frozen=True, slots=True)
class Derived:
    """Both hold, so this does too: the rule of resolution, applied on one plugin."""

    first: "Cause"
    second: "Incompatibility"
    plugin: PluginName


Fact = Wished | Held | Requires | Unusable | NoFallback
Cause = Fact | Derived


class Incompatibility:
    """Terms that cannot all hold: for each plugin (by its number in the solver) a set of choices.

    The first two plugins are watched by the solver, which reorders them.
    """

    __slots__ = ("cause", "masks", "plugins")

    def __init__(self, terms: Mapping[int, int], cause: Cause) -> None:
        self.plugins = list(terms)
        self.masks = list(terms.values())
        self.cause = cause


def resolvent(first: Mapping[Plugin, int], second: Mapping[Plugin, int], plugin: Plugin) -> dict[Plugin, int]:
    """Return what cannot all hold since neither of two incompatibilities can: either term of the plugin, all others."""
    terms = dict(first)
    for other, mask in second.items():
        terms[other] = terms.get(other, EVERYTHING) & mask
    terms[plugin] = first[plugin] | second[plugin]
    if terms[plugin] == EVERYTHING:
        del terms[plugin]
    return terms


def facts(cause: Cause) -> Iterator[Fact]:
    """Yield each fact at the leaves of a derivation once."""
    seen: set[int] = set()
    told: set[Fact] = set()
    todo = [cause]
    while todo:
        found = todo.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, Derived):
            todo += [found.second.cause, found.first]
        elif found not in told:
            told.add(found)
            yield found

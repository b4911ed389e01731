"""Which registry a plugin's name belongs to: exactly one, whatever others may have of that name. Pure; asks none.

In this order, and the first that says something decides; whatever contradicts it is a refusal, never a second choice:
1. the one claim that covers the name      (two claims: refused)
2. a registry that was named with it       (one that no claim covers; another than the claim's: refused)
3. the registry that it is installed from
4. the store's own registry                (refused where that claims other names, so that nothing is its by default)
What is installed from another registry than the one decided on stays what it is: refused.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

from manifests.errors import AmbiguousSource, ConfigMissing, SpmError, UsageError
from manifests.names import REGISTRY_ID, PluginName, parse_query

_SHOWN = 80


def parse_registry_id(text: str) -> str:
    """Return the text as a registry's id, which may then be part of a path.

    Raises: UsageError.
    """
    if not re.fullmatch(REGISTRY_ID, text):
        raise UsageError(
            f"{text[:_SHOWN]!r} is not a registry's id: an id is of a-z, 0-9, `.` and `-`, begins and ends with one of "
            "a-z and 0-9, and has 64 characters at most",
            hint="`spm doctor` shows the registries that this store knows",
        )
    return text


def parse_query_of(text: str) -> tuple[str | None, PluginName]:
    """Return what a person means by `NAME` or `ID/NAME`: the registry, if one was named, and the plugin.

    Raises: UsageError.
    """
    registry, separator, name = text.rpartition("/")
    return parse_registry_id(registry) if separator else None, parse_query(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The patterns of names for which one registry alone is asked."""

    registry: str
    names: tuple[str, ...]

    def pattern_for(self, name: str) -> str | None:
        """Return the first pattern that covers a name."""
        return next((pattern for pattern in self.names if fnmatchcase(name, pattern)), None)

    def told(self, name: str) -> str:
        return f"`{self.registry}` (`{self.pattern_for(name)}`)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The registries that a store knows: its own, and what each claims. Every other one has a claim."""

    own: str
    claims: tuple[Claim, ...] = ()

    @property
    def known(self) -> tuple[str, ...]:
        """Return the ids of all registries, the store's own first."""
        return (self.own, *sorted({claim.registry for claim in self.claims} - {self.own}))

    def registry_of(self, name: PluginName, *, wished: Collection[str] = (), installed: str | None = None) -> str:
        """Return the one registry that is to be asked for a name.

        `wished` are those that were named with it, `installed` is the one that it came from.
        Raises: AmbiguousSource; ConfigMissing for a registry that the store does not know.
        """
        decided = self._decided(name, sorted(set(wished)), installed)
        if installed is not None and installed != decided:
            raise _moved(name, installed, decided)
        return decided

    def _decided(self, name: PluginName, wished: list[str], installed: str | None) -> str:
        claims = [claim for claim in self.claims if claim.pattern_for(name) is not None]
        if len(claims) > 1:
            raise _claimed_twice(name, claims)
        if strange := [registry for registry in wished if registry not in self.known]:
            raise self._unknown(name, strange[0])
        if len(wished) > 1:
            raise _wished_twice(name, wished)
        if claims and wished and wished[0] != claims[0].registry:
            raise _against_claim(name, wished[0], claims[0])
        if claims or wished:
            return claims[0].registry if claims else wished[0]
        if installed is not None:
            return self._still_known(name, installed)
        if own := next((claim for claim in self.claims if claim.registry == self.own), None):
            raise _of_none(name, own)
        return self.own

    def _still_known(self, name: PluginName, installed: str) -> str:
        if installed in self.known:
            return installed
        raise AmbiguousSource(
            f"`{name}` is installed from the registry `{installed}`, which this store no longer knows",
            hint=f"put `registries/{installed}/loader.conf` back, or `spm uninstall {name}` first",
            name=name,
            registries=[installed],
        )

    def _unknown(self, name: PluginName, registry: str) -> SpmError:
        known = ", ".join(f"`{one}`" for one in self.known)
        return ConfigMissing(
            f"`{registry}/{name}` was asked for, but this store knows no registry `{registry}`: it knows {known}",
            hint=f"get its loader.conf from whoever runs it, and put it at `registries/{registry}/loader.conf` in the "
            "store",
            name=name,
            registries=[registry],
        )


def _claimed_twice(name: PluginName, claims: list[Claim]) -> AmbiguousSource:
    told = [claim.told(name) for claim in claims]
    return AmbiguousSource(
        f"`{name}` is claimed by {', '.join(told[:-1])} and {told[-1]}: a name belongs to exactly one registry, so "
        "none was asked",
        hint="change `registry.names` in one of the loader.conf files, so that one alone claims it",
        name=name,
        registries=[claim.registry for claim in claims],
    )


def _wished_twice(name: PluginName, wished: list[str]) -> AmbiguousSource:
    told = [f"`{registry}/{name}`" for registry in wished]
    return AmbiguousSource(
        f"{', '.join(told[:-1])} and {told[-1]} were asked for: a name belongs to exactly one registry, so none was "
        "asked",
        hint="name one registry everywhere",
        name=name,
        registries=wished,
    )


def _against_claim(name: PluginName, wished: str, claim: Claim) -> AmbiguousSource:
    return AmbiguousSource(
        f"`{wished}/{name}` was asked for, but the name is claimed by the registry {claim.told(name)}, so neither was "
        "asked",
        hint=f"write `{name}` if that one is meant; if not, change `registry.names` in its loader.conf",
        name=name,
        registries=[wished, claim.registry],
    )


def _of_none(name: PluginName, own: Claim) -> AmbiguousSource:
    patterns = ", ".join(f"`{pattern}`" for pattern in own.names)
    return AmbiguousSource(
        f"no registry of this store claims `{name}`: its own, `{own.registry}`, is asked for {patterns} only",
        hint=f"name the registry, as in `{own.registry}/{name}`, or add the name to `registry.names` in the "
        "loader.conf of the one that it belongs to",
        name=name,
        registries=[],
    )


def _moved(name: PluginName, installed: str, decided: str) -> AmbiguousSource:
    return AmbiguousSource(
        f"`{name}` is installed from the registry `{installed}`, and would now come from `{decided}`, where that name "
        "is another plugin",
        hint=f"if that one is meant, `spm uninstall {name}` first",
        name=name,
        registries=[installed, decided],
    )

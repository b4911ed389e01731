"""Resolving a universe that is given as JSON, without a registry and without a target. Reads and fetches nothing.

`{"mel": {"1.0.0": {"requires": {"fft": "^2"}, "yanked": false}}}`; a plugin that is not in it has no releases.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from manifests.errors import FallbackRefused, ResolutionError, SpmError, Unsatisfiable, UsageError
from manifests.index import ReleaseEntry, VariantEntry
from manifests.names import PluginName, parse_name
from manifests.parts import PluginType, Requires
from manifests.ranges import Range
from manifests.versions import Version
from spm_client.resolve.budget import Budget
from spm_client.resolve.catalogue import Catalogue, Releases
from spm_client.resolve.fit import Fits
from spm_client.resolve.requirement import ANY, Requirement
from spm_client.resolve.resolution import BETTER_STEPS, MAX_STEPS, Problem

_BUILD = VariantEntry(variant=None, manifest_sha256="0" * 64, manifest_size=1, signatures=(), blobs_size=0)
_FITS = Fits(_BUILD)
GLANCE_STEPS = 10
"""Where fallbacks are accepted, only so much for each further requirement is spent on a resolution without any."""


class NoSolution(Unsatisfiable):
    """No set of releases meets the root's requirements; the text is the explanation."""


def solve_universe(
    packages: Mapping[str, Any],
    root: Mapping[str, str],
    *,
    pre: Collection[str] = (),
    accept_fallback: bool = True,
) -> dict[str, str]:
    """Return plugin to version for all that the root's requirements (name to range) need.

    With `accept_fallback` a release may be older than the newest in range, without it that is refused as well.
    Raises: NoSolution; UsageError for what is no object, name, version or range; Undecided at the solver's step limit.
    """
    return Universe(packages).solve(root, pre=pre, accept_fallback=accept_fallback)


class Universe:
    """A universe whose releases are read once, each when it first matters, for many roots."""

    def __init__(self, packages: Mapping[str, Any]) -> None:
        self._packages = _object(packages, "the universe")
        self._names = frozenset(map(parse_name, packages))
        self._shelf: dict[PluginName, Releases] = {}

    def releases(self, name: PluginName) -> Sequence[ReleaseEntry]:
        found = _object(self._packages.get(name, {}), f"the releases of `{name}`")
        return [_release(version, _object(told, f"`{name}` {version}")) for version, told in found.items()]

    def solve(
        self,
        root: Mapping[str, str],
        *,
        pre: Collection[str] = (),
        accept_fallback: bool = True,
        max_steps: int = MAX_STEPS,
    ) -> dict[str, str]:
        """Return what `solve_universe` does."""
        wishes = tuple(Requirement(name=n, range=r, source="you") for n, r in _wants(_object(root, "the root")))
        catalogue = Catalogue(
            provider=self,
            judge=lambda _release: _FITS,
            wishes=wishes,
            pre=frozenset(map(parse_name, pre)),
            locked={},
            shelf=self._shelf,
        )
        accepted = self._names if accept_fallback else frozenset[PluginName]()
        steps = min(GLANCE_STEPS * (len(wishes) - 1), BETTER_STEPS) if accept_fallback else BETTER_STEPS
        problem = Problem(catalogue, wishes, (), accepted, Budget(max_steps), better_steps=steps)
        try:
            chosen = problem.choose()
        except ResolutionError as refusal:
            raise _no_solution(refusal) from refusal
        return {name: str(catalogue.release(name, chosen[name]).version) for name in sorted(chosen)}


def _no_solution(refusal: SpmError) -> NoSolution:
    reason = refusal.reason if isinstance(refusal, FallbackRefused) else None
    return NoSolution(refusal.message, reason=reason, hint=refusal.hint, **refusal.context)


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{what} is a {type(value).__name__}, where an object is wanted")
    return value


def _release(version: str, told: Mapping[str, Any]) -> ReleaseEntry:
    requires = _object(told.get("requires", {}), "`requires`")
    return ReleaseEntry(
        version=Version.parse(version),
        type=PluginType.EXT,
        seedance_version=ANY,
        requires=Requires(plugins=tuple(_wants(requires))),
        variants=(_BUILD,),
        yanked="yanked" if told.get("yanked") else None,
    )


def _wants(told: Mapping[str, str]) -> list[tuple[PluginName, Range]]:
    return sorted(((parse_name(name), Range.parse(text)) for name, text in told.items()), key=lambda want: want[0])

"""A wish for a plugin, and how people write one on the command line. Resolves nothing."""

import re
from dataclasses import dataclass, replace

from manifests.errors import UsageError
from manifests.names import MAX_NAME_LENGTH, REGISTRY_ID, PluginName, fold, parse_name
from manifests.ranges import MAX_RANGE_LENGTH, Range

ANY = Range.parse("*")
MAX_SPEC_LENGTH = 64 + 1 + MAX_NAME_LENGTH + 1 + MAX_RANGE_LENGTH

_VERSION = r"[0-9]+\.[0-9]+\.[0-9]+(?:-(?:alpha|beta|rc|dev)\.[0-9]+)?(?:\+[0-9A-Za-z.-]+)?"
_DASHED = re.compile(rf"(?P<name>[A-Za-z0-9._-]+)-v(?P<version>{_VERSION})")
_REGISTRY = re.compile(rf"(?P<registry>{REGISTRY_ID})/(?P<spec>.*)", re.DOTALL)
_SPEC = re.compile(r"(?P<name>[A-Za-z0-9._-]+)\s*(?:@(?P<at>.*)|(?P<comparators>[<>=!~^].*))?", re.DOTALL)
_FORMS = "write `NAME`, `NAME==1.2.3`, `NAME@^1.2`, `NAME>=1.2,<2` or `NAME-v1.2.3`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A plugin's name, the range of versions that will do, and who wants it (`you`, `spm.toml`, `beat 2.0.0`).

    `registry` is the one that was named with it, as in `team-b/mel`.
    """

    name: PluginName
    range: Range
    source: str
    registry: str | None = None

    def __str__(self) -> str:
        return f"`{self.name}` `{self.range}`"


def parse_spec(text: str, *, source: str = "you") -> Requirement:
    """Return the requirement that a command-line argument spells. Case, `_` and `.` in the name are folded.

    Raises: UsageError unless it is `NAME`, `NAME==V`, `NAME@RANGE`, `NAME>=V,<W` or `NAME-vX.Y.Z` (exactly that one),
    or one of these after the registry that it comes from: `REGISTRY/NAME`.
    """
    spec = text.strip()
    if not spec or len(spec) > MAX_SPEC_LENGTH:
        raise UsageError(f"{text[:80]!r} is not a plugin specifier", hint=_FORMS)
    named = _REGISTRY.fullmatch(spec)
    requirement = _parse(named["spec"] if named else spec, spec, source)
    return replace(requirement, registry=named["registry"]) if named else requirement


def _parse(spec: str, whole: str, source: str) -> Requirement:
    if re.fullmatch(_VERSION, spec):
        raise UsageError(f"{spec!r} is a version, not a plugin", hint=f"write it with its plugin: `NAME=={spec}`")
    if dashed := _DASHED.fullmatch(spec):
        return _requirement(spec, dashed["name"], f"=={dashed['version']}", source)
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise UsageError(f"{whole!r} is not a plugin specifier", hint=_FORMS)
    return _requirement(spec, match["name"], _range_text(spec, match["at"], match["comparators"]), source)


def _range_text(spec: str, at: str | None, comparators: str | None) -> str:
    if at is None:
        return comparators or ANY.text
    if not at.strip():
        raise UsageError(f"{spec!r} is not a plugin specifier: no range follows `@`", hint=_FORMS)
    return at.strip()


def _requirement(spec: str, name: str, range_text: str, source: str) -> Requirement:
    try:
        return Requirement(name=parse_name(fold(name)), range=Range.parse(range_text), source=source)
    except UsageError as error:
        raise UsageError(
            f"{spec!r} is not a plugin specifier: {error.message}", hint=error.hint or _FORMS, **error.context
        ) from error

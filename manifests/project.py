"""spm.toml as a value: what a project requires, of which registry, for which targets. No I/O; edits no text."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from manifests import fields
from manifests.errors import ConfigSyntax, SpmError, TooBig, UsageError
from manifests.fields import Fields
from manifests.lockfile import Bindings
from manifests.names import REGISTRY_ID, PluginName, fold, parse_name
from manifests.parts import read_affinity, read_batch_policy
from manifests.paths import check_path
from manifests.ranges import Range

PROJECT_FILE = "spm.toml"
MAX_PROJECT_BYTES = 1 << 20
MAX_REQUIREMENTS = 1024
MAX_TARGETS = 64

_TARGET = r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MOMENT_HINT = 'write "2026-01-31" (to the end of that day, UTC) or "2026-01-31T12:00:00Z", in quotes'

T = TypeVar("T")
K = TypeVar("K", bound=str)

read_target_name = fields.matching(_TARGET, "a target's name: 1 to 64 of a-z, 0-9, `.`, `_` and `-`")
read_registry = fields.matching(REGISTRY_ID, "a registry id")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRequirement:
    """One line of `[requirements]`: the range that will do, and what is accepted and bound for this plugin."""

    name: PluginName
    range: Range
    registry: str | None = None
    is_pre: bool = False
    is_fallback_accepted: bool = False
    bindings: Bindings = Bindings()

    @classmethod
    def read(cls, name: PluginName, reader: Fields) -> "ProjectRequirement":
        """Read the table of a requirement, as spm.toml and spm.lock both write it."""
        return cls(
            name=name,
            range=reader.required("range", Range.parse),
            registry=reader.optional("registry", read_registry),
            is_pre=reader.optional("pre", fields.boolean) or False,
            is_fallback_accepted=reader.optional("accept-fallback", fields.boolean) or False,
            bindings=Bindings(
                affinity=reader.optional("affinity", read_affinity),
                batch_policy=reader.optional("batch-policy", read_batch_policy),
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the members that are written, by the names that spm.toml has for them."""
        value: dict[str, Any] = {"range": self.range.text}
        if self.registry is not None:
            value["registry"] = self.registry
        value |= {"pre": True} if self.is_pre else {}
        value |= {"accept-fallback": True} if self.is_fallback_accepted else {}
        return value | {name.replace("_", "-"): bound for name, bound in self.bindings.to_dict().items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project's wishes. Requirements and targets are ordered by name; a target is the path of its document.

    `pre` and `accept_fallback` are for plugins that others require; of the project's own, each says it itself.
    """

    name: str
    targets: tuple[tuple[str, str], ...]
    requirements: tuple[ProjectRequirement, ...] = ()
    registry: str | None = None
    exclude_newer: str | None = None
    pre: frozenset[PluginName] = frozenset()
    accept_fallback: frozenset[PluginName] = frozenset()

    @classmethod
    def from_text(cls, text: str) -> "Project":
        """Read a spm.toml.

        Raises: TooBig beyond 1 MiB; ConfigSyntax where it is not TOML; TypeMismatch listing every problem.
        """
        return cls.from_dict(_parse(text))

    @classmethod
    def from_dict(cls, value: Any) -> "Project":
        with fields.document(PROJECT_FILE) as problems:
            reader = Fields(value, "", problems)
            about, resolution = reader.table("project"), reader.table("resolution")
            project = cls(
                name=about.required("name", _read_project_name),
                registry=about.optional("registry", read_registry),
                requirements=read_requirements(reader, problems, _shorthand),
                targets=read_table(reader, "targets", problems, read_target_name, _read_target_file, MAX_TARGETS),
                exclude_newer=resolution.optional("exclude-newer", read_moment_or_day),
                pre=_names(resolution, "pre"),
                accept_fallback=_names(resolution, "accept-fallback"),
            )
            for one in (about, resolution, reader):
                one.close()
            if not problems and not project.targets:
                problems.append('`targets` names none: write `NAME = "FILE.json"`, as `spm target probe` makes FILE')
        return project

    def find(self, name: str) -> ProjectRequirement | None:
        return next((wanted for wanted in self.requirements if wanted.name == name), None)


def read_moment_or_day(value: Any) -> str:
    """Read a moment, or a day, which means its last second: both in UTC, whatever the host's time zone.

    Raises: UsageError.
    """
    try:
        word = fields.matching(rf"{_DAY}(T.*)?", "a day or a moment")(value)
        return fields.moment(word if "T" in word else f"{word}T23:59:59Z")
    except UsageError as error:
        raise UsageError(f"{str(value)[:40]!r} is not a day or a moment of the calendar", hint=_MOMENT_HINT) from error


def read_requirements(
    reader: Fields, problems: list[str], shorthand: Callable[[Any], Any] = lambda value: value
) -> tuple[ProjectRequirement, ...]:
    """Read the table of requirements, each problem with its path."""

    def read(name: PluginName, value: Any, path: str) -> ProjectRequirement:
        table = Fields(shorthand(value), path, problems)
        wanted = ProjectRequirement.read(name, table)
        table.close()
        return wanted

    found = read_table(reader, "requirements", problems, _read_name, read, MAX_REQUIREMENTS)
    return tuple(wanted for _, wanted in found)


def read_table(
    reader: Fields,
    name: str,
    problems: list[str],
    read_key: Callable[[Any], K],
    read: Callable[[K, Any, str], T],
    limit: int,
) -> tuple[tuple[K, T], ...]:
    """Read a table whose members are not known beforehand, ordered by key; `read` gets key, value and its path."""
    table = reader.optional(name, lambda value: value)
    if not isinstance(table, dict | None) or len(table or ()) > limit:
        problems.append(f"`{name}` is not a table of at most {limit} members")
        return ()
    found: list[tuple[K, T]] = []
    for key, value in sorted((table or {}).items()):
        try:
            found.append((read_key(key), read(read_key(key), value, f"{name}.{key}.")))
        except SpmError as error:
            problems.append(f"`{name}.{str(key)[:64]}`: {error.message}" + (f" ({error.hint})" if error.hint else ""))
    return tuple(found)


def _parse(text: str) -> dict[str, Any]:
    if len(text) > MAX_PROJECT_BYTES:
        raise TooBig(f"{PROJECT_FILE} has more than the {MAX_PROJECT_BYTES} characters allowed")
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigSyntax(f"{PROJECT_FILE} is not TOML: {error}") from error
    except ValueError as error:  # of a number of thousands of digits
        raise _too_long() from error
    _require_small_numbers(value)
    return value


def spoilt(data: bytes) -> tuple[str, str] | None:
    """Say what makes a whole file unreadable that editors and merges leave behind, and what to do; None if nothing."""
    if data.startswith(b"\xef\xbb\xbf"):
        return "begins with a byte order mark, which does not belong in it", "save it as UTF-8 without one"
    for number, line in enumerate(data.split(b"\n") if b"<<<<<<< " in data else (), 1):
        if line.startswith(b"<<<<<<< "):
            return (
                f"has the conflict markers of a merge in it, from line {number} on",
                "decide the conflict first; of spm.lock, take either side whole and run `spm lock`",
            )
    return None


def _require_small_numbers(value: Any) -> None:
    """Refuse integers beyond the 64 bits of TOML: one in hexadecimal may be too long to be shown in a message."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int) and one.bit_length() > 63:
            raise _too_long()
        if isinstance(one, dict | list):
            waiting.extend(one.values() if isinstance(one, dict) else one)


def _too_long() -> ConfigSyntax:
    return ConfigSyntax(f"{PROJECT_FILE} is not TOML: it has an integer of more than 64 bits")


def _shorthand(value: Any) -> Any:
    if not isinstance(value, str | dict):
        raise UsageError(f"{str(value)[:40]!r} is neither a range in quotes nor a table with `range`")
    return {"range": value} if isinstance(value, str) else value


def _read_name(value: Any) -> PluginName:
    try:
        return parse_name(value)
    except UsageError as error:
        folded = fold(str(value))
        hint = "" if folded == value else f"write `{folded}`"
        raise UsageError(error.message, hint=hint) from error


def _read_project_name(value: Any) -> str:
    try:
        return parse_name(value)
    except UsageError as error:
        raise UsageError(error.message.replace("a plugin name", "a project's name")) from error


def _read_target_file(_name: str, value: Any, _path: str) -> str:
    return check_path(fields.text(value))


def _names(reader: Fields, member: str) -> frozenset[PluginName]:
    return frozenset(reader.optional(member, fields.many(_read_name, MAX_REQUIREMENTS)) or ())

"""Add and remove a project's requirements: spm.toml and spm.lock change together, or neither does."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from manifests.errors import NotFound, SpmError, UsageError
from manifests.lockfile import Bindings
from manifests.names import PluginName
from manifests.project import Project, ProjectRequirement
from manifests.project_lock import ProjectLock
from manifests.ranges import Range
from manifests.versions import Version
from spm_client.adapters.project_files import ProjectFolder
from spm_client.project_text import uneditable, with_names, with_requirement, without_requirement
from spm_client.resolve import Requirement
from spm_client.resolve.requirement import ANY
from spm_client.workflows.lock import NOTHING, Locked, resolve_lock
from spm_client.workflows.project import Asker, Relocked, require_known
from spm_client.workflows.registries import RegistryIndexes


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """What is to be added: what was written, of that the names without a range, and what is accepted and bound."""

    requirements: tuple[Requirement, ...]
    bare: frozenset[PluginName] = NOTHING
    bindings: Bindings = Bindings()
    unbind: bool = False
    pre: frozenset[PluginName] = NOTHING
    accept_fallback: frozenset[PluginName] = NOTHING

    @property
    def names(self) -> frozenset[PluginName]:
        return frozenset(requirement.name for requirement in self.requirements)

    @property
    def command(self) -> str:
        """The command that adds these requirements, as a person writes it."""
        specs = (shlex.quote(_spec(one, self.bare)) for one in self.requirements)
        return " ".join(["spm add", *specs, *self.options()])

    def options(self) -> Iterator[str]:
        """Yield what is accepted and bound, as a person writes it."""
        bound = self.bindings.to_dict()
        if "affinity" in bound:
            yield f"--affinity {','.join(bound['affinity'])}"
        if "batch_policy" in bound:
            yield f"--batch-policy {bound['batch_policy']}"
        if self.unbind:
            yield "--unbind"
        yield from (f"--pre {name}" for name in sorted(self.pre))
        yield from (f"--accept-fallback {name}" for name in sorted(self.accept_fallback))


NO_ADDITION = Addition(requirements=())


def add(folder: ProjectFolder, asker: Asker, addition: Addition) -> tuple[Project, Relocked]:
    """Add requirements and lock them. A name without a range gets one from the release that is taken: `^1.2.0`.

    Raises: UsageError for a binding of several, or an acceptance that accepts nothing; the refusals of `resolve_lock`.
    """
    _require_one_each(addition.requirements)
    project = extended(folder.project, addition)
    new = {name for name in addition.bare if folder.project.find(name) is None}
    with asker.asking(project, is_kept=True) as (indexes, learnt):
        locked = _resolved(folder, asker, project, indexes, command=addition.command)
        if new:
            ranges = {name: range_from(locked.lock, name) for name in new}
            project = with_ranges(project, ranges)
            locked = _resolved(folder, asker, project, indexes, command=addition.command)
        require_used(addition, locked.lock)
        text = edited(folder, project, addition)
        with learnt:
            folder.replace(text=text, lock=locked.lock.to_bytes())
    return project, Relocked.of(folder, locked, is_written=locked.lock.to_bytes() != folder.lock_bytes)


def remove(folder: ProjectFolder, asker: Asker, names: tuple[PluginName, ...]) -> Relocked:
    """Take requirements out, and lock what is left.

    Raises: NotFound for a name that spm.toml does not require; the refusals of `resolve_lock`.
    """
    for name in names:
        _require_removable(folder, name)
    kept = tuple(wanted for wanted in folder.project.requirements if wanted.name not in names)
    project = replace(folder.project, requirements=kept)
    text = folder.text
    for name in names:
        text = without_requirement(text, name)
    _require_same_meaning(text, project)
    with asker.asking(project, is_kept=True) as (indexes, learnt):
        locked = _resolved(folder, asker, project, indexes)
        with learnt:
            folder.replace(text=text, lock=locked.lock.to_bytes())
    return Relocked.of(folder, locked, is_written=locked.lock.to_bytes() != folder.lock_bytes)


def extended(project: Project, addition: Addition) -> Project:
    """Return the project with what is added; the range of a bare name that is there already stays. Pure."""
    is_bound = addition.bindings != Bindings() or addition.unbind
    if is_bound and len(addition.names) != 1:
        raise UsageError("`--affinity`, `--batch-policy` and `--unbind` are for one plugin: add it alone")
    found = {wanted.name: wanted for wanted in project.requirements}
    for requirement in addition.requirements:
        found[requirement.name] = _laid_over(found.get(requirement.name), requirement, addition)
    for name in addition.pre & found.keys():
        found[name] = replace(found[name], is_pre=True)
    for name in addition.accept_fallback & found.keys():
        found[name] = replace(found[name], is_fallback_accepted=True)
    return replace(
        project,
        requirements=tuple(found[name] for name in sorted(found)),
        pre=project.pre | (addition.pre - found.keys()),
        accept_fallback=project.accept_fallback | (addition.accept_fallback - found.keys()),
    )


def _spec(requirement: Requirement, bare: frozenset[PluginName]) -> str:
    registry = f"{requirement.registry}/" if requirement.registry else ""
    return f"{registry}{requirement.name}" + ("" if requirement.name in bare else f"@{requirement.range}")


def _require_one_each(requirements: tuple[Requirement, ...]) -> None:
    """Refuse two different specifiers of one plugin: neither is meant more than the other."""
    first: dict[PluginName, Requirement] = {}
    for one in requirements:
        other = first.setdefault(one.name, one)
        if other != one:
            told = [f"`{_spec(spec, frozenset({spec.name} if spec.range == ANY else ()))}`" for spec in (other, one)]
            raise UsageError(
                f"{told[0]} and {told[1]} are both for `{one.name}`, and spm.toml has one range for each plugin",
                hint=f"write one range that means both, as in `{one.name}@>=1.2,<2`",
                name=one.name,
            )


def range_from(lock: ProjectLock, name: PluginName) -> Range:
    """Return the range to write for what was taken: `^1.2.0`, or from the lowest to below the highest's next major."""
    versions = sorted({plugin.version for plugin in lock.plugins if plugin.name == name})
    low, high = versions[0], versions[-1]
    if low.release[0] == high.release[0] != 0 or low == high:
        return Range.parse(f"^{_plain(low)}")
    return Range.parse(f">={_plain(low)},<{high.release[0] + 1}")


def with_ranges(project: Project, ranges: Mapping[PluginName, Range]) -> Project:
    return replace(
        project,
        requirements=tuple(
            replace(wanted, range=ranges.get(wanted.name, wanted.range)) for wanted in project.requirements
        ),
    )


def _plain(version: Version) -> str:
    return str(version).partition("+")[0]


def _laid_over(before: ProjectRequirement | None, requirement: Requirement, addition: Addition) -> ProjectRequirement:
    is_range_kept = before is not None and requirement.name in addition.bare
    base = before or ProjectRequirement(name=requirement.name, range=ANY)
    kept = Bindings() if addition.unbind else base.bindings
    return replace(
        base,
        range=base.range if is_range_kept else requirement.range,
        registry=requirement.registry or base.registry,
        bindings=Bindings(
            affinity=addition.bindings.affinity or kept.affinity,
            batch_policy=addition.bindings.batch_policy or kept.batch_policy,
        ),
    )


def edited(folder: ProjectFolder, project: Project, addition: Addition) -> str:
    """Return the text of spm.toml with what is added, which says just what the project does.

    Raises: UsageError where it is written in a form that does not let itself be edited.
    """
    text = folder.text
    changed = addition.names | ((addition.pre | addition.accept_fallback) & {one.name for one in project.requirements})
    for requirement in project.requirements:
        if requirement.name in changed:
            text = with_requirement(text, requirement)
    text = with_names(text, "pre", project.pre - folder.project.pre)
    text = with_names(text, "accept-fallback", project.accept_fallback - folder.project.accept_fallback)
    _require_same_meaning(text, project)
    return text


def _require_same_meaning(text: str, project: Project) -> None:
    try:
        is_same = Project.from_text(text) == project
    except SpmError:
        is_same = False
    if not is_same:
        raise uneditable("requirements")


def _resolved(
    folder: ProjectFolder, asker: Asker, project: Project, indexes: RegistryIndexes, *, command: str = "spm lock"
) -> Locked:
    return resolve_lock(
        project,
        folder.targets,
        folder.lock,
        indexes,
        exclude_newer=project.exclude_newer,
        now=asker.now,
        progress=asker.progress,
        command=command,
    )


def require_used(addition: Addition, lock: ProjectLock) -> None:
    """Refuse an acceptance that accepts nothing: it is a slip of the pen, or a wrong picture of what happens."""
    taken = {plugin.name for plugin in lock.plugins}
    for name in sorted(addition.accept_fallback - taken):
        raise UsageError(f"`--accept-fallback {name}`: `{name}` is not among what would be locked")
    for name in sorted(addition.pre - taken):
        raise UsageError(f"`--pre {name}`: `{name}` is not among what would be locked")


def _require_removable(folder: ProjectFolder, name: PluginName) -> None:
    if folder.project.find(name) is not None:
        return
    plugins = folder.lock.plugins if folder.lock else ()
    if any(plugin.name == name for plugin in plugins):
        who = sorted({plugin.name for plugin in plugins if name in dict(plugin.requires)})
        raise NotFound(
            f"spm.toml does not require `{name}`; it is there since {', '.join(f'`{one}`' for one in who)} "
            f"require{'s' * (len(who) == 1)} it",
            hint=f"`spm why {name}` shows how",
            name=name,
        )
    require_known(name, (wanted.name for wanted in folder.project.requirements), "is not required by spm.toml")

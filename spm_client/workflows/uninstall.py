"""Uninstall: commit a generation without the plugins, then take away their trees. Resolves and fetches nothing.

Manifests and blobs stay, so that a rollback can lay the trees out again; `spm gc` frees them.
"""

from manifests.errors import Unsatisfiable
from manifests.lockfile import Generation, InstalledEntry
from manifests.names import PluginName
from runtime.generation import current_generation
from runtime.in_use import excluded
from spm_client.store.generations import MAX_RACES, NumberTaken, commit, lost_races, point_at_newest
from spm_client.store.layout import Layout, refusals
from spm_client.store.staging import staging
from spm_client.workflows.near import not_installed
from spm_client.workflows.take_away import remove_trees


def uninstall(
    names: tuple[PluginName, ...], layout: Layout, *, created: str, is_known_idle: bool = False
) -> tuple[Generation, tuple[InstalledEntry, ...]]:
    """Remove plugins, and what was installed only for them.

    Returns the generation that now stands and the entries that are gone.
    Raises: NotFound for one that is not installed; Unsatisfiable when another installed plugin requires one; InUse when
    a host runs one; Undecided when the disk cannot tell, unless `is_known_idle`.
    """
    with refusals(layout.root), staging(layout) as scratch:
        for _ in range(MAX_RACES):
            point_at_newest(layout, scratch=scratch)
            base = current_generation(layout.root)
            gone = plan(base, names)
            kept = tuple(entry for entry in base.plugins if entry not in gone)
            generation = base.following(created=created, plugins=kept)
            # A host that begins between here and the removal keeps its tree: `remove_trees` asks again.
            with excluded(layout.root, _shown(gone), is_known_idle=is_known_idle):
                pass
            try:
                commit(layout, generation, scratch=scratch)
            except NumberTaken:
                continue
            remove_trees(gone, layout, scratch, is_known_idle=is_known_idle)
            return generation, gone
    raise lost_races(layout)


def plan(base: Generation, names: tuple[PluginName, ...]) -> tuple[InstalledEntry, ...]:
    """Return what goes: the named plugins, and those that nothing asked for and nothing kept requires. Pure."""
    for name in names:
        _require_removable(base, name, names)
    wanted = [entry.name for entry in base.plugins if entry.requested and entry.name not in names]
    kept = {entry.name for name in wanted for entry in base.closure(name)}
    return tuple(entry for entry in base.plugins if entry.name not in kept)


def _shown(gone: tuple[InstalledEntry, ...]) -> dict[str, str]:
    return {entry.manifest_sha256: f"`{entry.name}` {entry.release}" for entry in gone}


def _require_removable(base: Generation, name: PluginName, names: tuple[PluginName, ...]) -> None:
    if base.find(name) is None:
        raise not_installed(name, (entry.name for entry in base.plugins))
    if dependants := [other for other in base.dependants(name) if other not in (*names, name)]:
        listed = ", ".join(f"`{other}`" for other in dependants)
        above = [entry.name for entry in base.plugins if any(one.name in names for one in base.closure(entry.name))]
        raise Unsatisfiable(
            f"`{name}` cannot be removed: {listed} require{'s' * (len(dependants) == 1)} it",
            hint=f"remove {'both' if len(above) == 2 else 'all'}: `spm uninstall {' '.join(above)}`",
            name=name,
            required_by=list(dependants),
        )

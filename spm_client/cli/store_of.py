"""The store that a command was told to use, and what is in it. Makes no store and changes none."""

import os

from manifests.errors import ConfigMissing, SpmError, UsageError
from manifests.names import PluginName, parse_query
from spm_client.cli.session import Session
from spm_client.store.layout import Layout


def existing_store(session: Session) -> Layout:
    """Return the store, where it is one: a mistyped root is neither made nor taken for a store without plugins.

    Raises: ConfigMissing.
    """
    layout = session.layout
    if any(os.path.lexists(path) for path in (layout.conf, layout.current, layout.generations)):
        return layout
    raise ConfigMissing(
        f"`{layout.root}` is no store of spm: it has no loader.conf, and nothing was ever installed in it",
        hint="check `--root` and `SPM_ROOT`; a store begins with a loader.conf, and `spm install` makes the rest",
        root=str(layout.root),
    )


def installed_names(session: Session) -> list[str]:
    """Return the names of what is installed; none where that cannot be read."""
    from runtime.generation import current_generation

    try:
        return [entry.name for entry in current_generation(session.root).plugins]
    except SpmError:
        return []


def parse_installed(text: str) -> PluginName:
    """Return the installed plugin that a person means: a store has one of a name, so its registry is not named.

    Raises: UsageError.
    """
    try:
        return parse_query(text)
    except UsageError as error:
        _, slash, name = text.rpartition("/")
        if slash and name:
            error.hint = f"an installed plugin is named without its registry: `{name:.64}`"
        raise

"""`spm list`."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keys.revoked_glance import RevokedGlance, glance
from spm_client.cli.session import Session
from spm_client.render import fitted, terminal_width, warn
from spm_client.store.shown_generation import shown_generation

Plugin = Mapping[str, Any]
"""An installed plugin as its generation has it written."""


def configure(parser: argparse.ArgumentParser) -> None:
    del parser


def run(_options: argparse.Namespace, session: Session) -> int:
    generation = shown_generation(session.root)
    glances = _glances(session.root, generation["plugins"])
    plugins = [_judged(plugin, glances[plugin.get("registry")]) for plugin in generation["plugins"]]
    session.emit({"generation": generation["number"], "plugins": plugins})
    if session.is_json:
        return 0
    session.say(_table(plugins, generation["registry"]) if plugins else f"nothing is installed in {session.root}")
    if not plugins and not session.root.is_dir():
        warn("note: there is no store there")
    return 0


def _glances(root: Path, plugins: list[Plugin]) -> dict[str | None, RevokedGlance]:
    """Return what each registry is last known to have revoked; None is the store's own."""
    others = {plugin["registry"] for plugin in plugins if "registry" in plugin}
    if not others:
        return {None: glance(root)}
    # Imported here, since it reads configuration files, which a store of one registry need not wait for.
    from runtime.registries import registry_root

    return {registry: glance(registry_root(root, registry)) for registry in (None, *others)}


def _judged(plugin: Plugin, revoked: RevokedGlance) -> dict[str, Any]:
    is_revoked = revoked.marks(plugin["manifest_sha256"], plugin["keyids"], is_core=plugin["type"] == "core")
    return {**plugin, "is_fallback": "fallback" in plugin, "is_revoked": is_revoked}


def _table(plugins: list[dict[str, Any]], own: str) -> str:
    header = ("NAME", "VERSION", "CLASS", "BOUND TO", "BATCH", "WANTED BY")
    rows = [
        _row(plugin, [other["name"] for other in plugins if plugin["name"] in other["requires"]]) for plugin in plugins
    ]
    if not any("registry" in plugin for plugin in plugins):
        return _fitted(header, rows)
    registries = [plugin.get("registry", own) for plugin in plugins]
    return _fitted((*header, "FROM"), [(*row, registry) for row, registry in zip(rows, registries, strict=True)])


def _fitted(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return the table; what a narrow terminal leaves out first is what nobody has chosen."""
    return fitted(header, rows, terminal_width(), wrapped="WANTED BY", spare=("CLASS",), least=12)


def _row(plugin: Plugin, dependants: list[str]) -> tuple[str, ...]:
    bindings = plugin.get("bindings", {})
    policy = bindings.get("batch_policy", "-")
    marks = (" (fallback)" if plugin["is_fallback"] else "") + (" (revoked)" if plugin["is_revoked"] else "")
    return (
        plugin["name"],
        plugin["release"] + marks,
        plugin["type"],
        ",".join(bindings.get("affinity", ())) or "-",
        policy["mode"] if isinstance(policy, dict) else policy,
        ", ".join((["you"] if plugin["requested"] else []) + dependants),
    )

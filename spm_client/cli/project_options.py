"""What a project's commands share: which project, whom to ask, and how a lock is shown. Decides nothing."""

import argparse
from pathlib import Path
from typing import Any

from manifests.names import parse_query
from manifests.project_lock import LOCK_FILE
from spm_client.adapters.project_files import ProjectFolder, find_project, no_project
from spm_client.cli.session import Session
from spm_client.render import ProgressLine, count, warn
from spm_client.workflows.lock_drift import LockChange, spoken
from spm_client.workflows.project import Asker, Relocked
from spm_client.workflows.requirements import Addition


def add_project(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--project", metavar="DIR", help="the folder with spm.toml (default: this one, or the nearest above)"
    )


def find_folder(options: argparse.Namespace) -> ProjectFolder | None:
    """Return the project that is meant; None where none was named and there is none here or above.

    Raises: LockMissing for a named folder that is none; the refusals of spm.toml's reader.
    """
    folder = Path(options.project).absolute() if options.project is not None else find_project(Path.cwd())
    return None if folder is None else ProjectFolder.open(folder)


def require_folder(options: argparse.Namespace) -> ProjectFolder:
    """Return the project that is meant.

    Raises: LockMissing where there is none; the refusals of spm.toml's reader.
    """
    folder = find_folder(options)
    if folder is None:
        raise no_project(Path.cwd())
    return folder


def accepting(options: argparse.Namespace) -> Addition:
    """Return the acceptances that a command was given, to be written to spm.toml."""
    return Addition(
        requirements=(),
        pre=frozenset(parse_query(name) for name in options.pre),
        accept_fallback=frozenset(parse_query(name) for name in options.accept_fallback),
    )


def asker(session: Session) -> Asker:
    """Return whom to ask: the registries of the store.

    Raises: ConfigError where loader.conf is absent, open to others, or not as it must be.
    """
    return Asker(
        layout=session.layout,
        conf=session.conf(),
        connect=session.client,
        now=session.now(),
        progress=ProgressLine(is_wanted=session.wants_progress),
    )


def lock_members(relocked: Relocked, path: Path, *, is_dry_run: bool = False) -> dict[str, Any]:
    """Return the JSON members of what became of a lock."""
    return {
        "lock": str(path),
        "written": relocked.is_written,
        "dry_run": is_dry_run,
        "registry": relocked.lock.registry,
        "targets": [name for name, _ in relocked.lock.targets],
        "changes": [_as_dict(change) for change in relocked.changes if change.verb != "unchanged"],
        "plugins": [plugin.to_dict() for plugin in relocked.lock.plugins],
        "yanked": [{"name": name, "version": str(version), "why": why} for name, version, why in relocked.yanked],
        "distrusted": [
            {"name": name, "version": str(version), **refusal.to_dict()}
            for name, version, refusal in relocked.distrusted
        ],
        "beyond_bound": [
            {"name": name, "version": str(version), "published": published}
            for name, version, published in relocked.beyond
        ],
    }


def show_lock(relocked: Relocked, session: Session, *, is_dry_run: bool = False) -> None:
    """Tell a person what changed in spm.lock; warnings go to stderr."""
    for name, version, why in relocked.yanked:
        warn(
            f"warning[yanked]: `{name}` {version} stays locked, and was yanked: {why}\n"
            f"  remedy: `spm upgrade {name}` takes a release that is not"
        )
    for name, _, refusal in relocked.distrusted:
        warn(
            f"warning[{refusal.reason}]: {refusal.message}; it stays locked, and no host installs or loads it\n"
            f"  remedy: `spm upgrade {name}` takes a release that is trusted, or refuses"
        )
    for name, version, published in relocked.beyond:
        warn(
            f"warning[exclude-newer]: `{name}` {version} stays locked, and was published at {published}, after "
            f"{relocked.lock.exclude_newer}\n"
            f"  remedy: `spm upgrade {name}{relocked.bound_option}` takes what was there then"
        )
    if session.is_json:
        return
    for change in relocked.changes:
        if change.verb != "unchanged":
            verb = f"would be {change.verb}" if is_dry_run else change.verb
            session.say(f"{verb:10} {_described(change, relocked.lock.registry)}")
    plugins = count(len({plugin.name for plugin in relocked.lock.plugins}), "plugin")
    told = f"{plugins} for {count(len(relocked.lock.targets), 'target')}"
    if is_dry_run:
        session.say(f"{LOCK_FILE} would have {told}; nothing was written")
    else:
        session.say(f"{LOCK_FILE} has {told}" + ("" if relocked.is_written else ", unchanged"))


def _described(change: LockChange, own: str) -> str:
    before, after = spoken(change.before), spoken(change.after)
    if not change.after:
        return f"{change.name} {before}"
    was = f", was {before}" if change.before and before != after else ""
    if (moved := change.moved(own)) is not None:
        was += f", of `{moved[1]}`, was of `{moved[0]}`"
    if change.before and change.before.keys() != change.after.keys():
        was += f", for {', '.join(sorted(change.after))}"
    return f"{change.name} {after}{was}" + "".join(f"\n           (fallback) {words}" for words in change.fallbacks)


def _as_dict(change: LockChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "change": change.verb,
        "before": {target: str(plugin.version) for target, plugin in sorted(change.before.items())},
        "after": {target: str(plugin.version) for target, plugin in sorted(change.after.items())},
        "fallbacks": list(change.fallbacks),
    }

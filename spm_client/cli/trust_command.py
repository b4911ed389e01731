"""`spm trust`."""

import argparse
import json
import os
import stat
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from manifests.errors import TypeMismatch, UsageError
from spm_client.cli.command import add_action, add_actions
from spm_client.cli.session import Session
from spm_client.render import warn

if TYPE_CHECKING:
    from keys.keyring import LoaderConf
    from spm_client.store.layout import Layout
    from spm_client.workflows.trust import Learnt
    from spm_client.workflows.trust_summary import TrustSummary


@dataclass(frozen=True, slots=True)
class _Named:
    """The registry that a command is about, and where its trust lies; `other` is None for the store's own."""

    conf: "LoaderConf"
    layout: "Layout"
    other: str | None

    def told(self) -> AbstractContextManager[None]:
        """Have what is refused within say whose it is, where it is not the store's own."""
        from runtime.registries import of_registry

        return of_registry(self.other)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "What is trusted begins with the root that loader.conf pins; no option leads around it."
    actions = add_actions(parser)
    add_action(actions, "init", "begin from the root that loader.conf pins, held to its digest", _init)
    add_action(actions, "show", "show what this store remembers of its registry, without asking it", _show)
    add_action(actions, "update", "bring it up to date", _update)
    taken = add_action(actions, "import", "take what root keys signed from a trust file, asking no registry", _import)
    taken.add_argument("file", metavar="FILE", help="a file that `spm trust export` wrote")
    given = add_action(actions, "export", "write what root keys signed to a trust file", _export)
    given.add_argument("file", metavar="FILE", help="where it goes")
    given.add_argument("--force", action="store_true", help="replace the file if it is there")
    for action in actions.choices.values():
        action.add_argument(
            "--registry", metavar="ID", help="the registry in `registries/ID` of the store (default: the store's own)"
        )


def run(options: argparse.Namespace, session: Session) -> int:
    options.action(options, session)
    return 0


def _named(options: argparse.Namespace, session: Session) -> _Named:
    """Return the registry that `--registry` names."""
    from runtime.registries import registry_root, require_known
    from spm_client.store.layout import Layout

    own, layout = session.conf(), session.layout
    if options.registry is None or options.registry == own.registry_id:
        return _Named(own, layout, None)
    conf = require_known(layout.root, own, options.registry)
    return _Named(conf, Layout(registry_root(layout.root, options.registry)), options.registry)


def _init(options: argparse.Namespace, session: Session) -> None:
    _refresh(options, session, is_new=True)


def _update(options: argparse.Namespace, session: Session) -> None:
    _refresh(options, session, is_new=False)


def _refresh(options: argparse.Namespace, session: Session, *, is_new: bool) -> None:
    from spm_client.workflows.trust import update

    named = _named(options, session)
    with named.told(), session.client(named.conf) as client:
        learnt = update(named.layout, named.conf, client, now=session.now(), is_new=is_new)
    _tell_learnt(named, learnt, session)


def _show(options: argparse.Namespace, session: Session) -> None:
    from spm_client.workflows.trust import held_state
    from spm_client.workflows.trust_summary import TrustSummary

    named = _named(options, session)
    with named.told():
        summary = TrustSummary.of(named.conf, held_state(named.layout, named.conf))
    endings = _warn(summary, session)
    session.emit(summary.to_dict() | {"warnings": endings})
    if not session.is_json:
        _print(summary)


def _import(options: argparse.Namespace, session: Session) -> None:
    from spm_client.workflows.trust import import_file

    named = _named(options, session)
    data = _read(Path(options.file))
    _require_trust_file(data, options.file)
    with named.told():
        learnt = import_file(named.layout, named.conf, data, now=session.now())
    _tell_learnt(named, learnt, session)


def _export(options: argparse.Namespace, session: Session) -> None:
    from keys.trust_file import trust_file
    from spm_client.workflows.trust import held_state

    named = _named(options, session)
    with named.told():
        state = held_state(named.layout, named.conf)
    path = Path(options.file)
    _write(path, trust_file(state), is_replacing=options.force)
    session.emit({"registry": state.registry, "root": state.root_version, "output": str(path)})
    if not session.is_json:
        print(f"wrote the root keys' word on {state.registry} to {path}; `spm trust import` takes it elsewhere")


def _tell_learnt(named: _Named, learnt: "Learnt", session: Session) -> None:
    """Tell what changed, and what is refused for it; all that is trusted where nothing was remembered of this root."""
    from spm_client.workflows.trust_changes import changes_between, refused_plugins
    from spm_client.workflows.trust_summary import TrustSummary

    summary = TrustSummary.of(named.conf, learnt.state)
    is_begun = learnt.is_begun
    changes = () if is_begun or learnt.before is None else changes_between(learnt.before, learnt.state)
    refused = refused_plugins(session.layout, named.conf, learnt, registry=named.other)
    endings = _warn(summary, session)
    session.emit(
        summary.to_dict()
        | {
            "is_begun": is_begun,
            "changes": [change.to_dict() for change in changes],
            "refused": [one.to_dict() for one in refused],
            "warnings": endings,
        }
    )
    if session.is_json:
        return
    if is_begun:
        _print(summary)
    elif not changes:
        print(f"nothing has changed: root {summary.root_version}, keyring {summary.serial}; index {summary.index_text}")
    for told in (*(change.text for change in changes), *(one.text for one in refused)):
        print(told)


def _warn(summary: "TrustSummary", session: Session) -> list[str]:
    endings = list(summary.endings(session.now()))
    for told in endings:
        warn(f"warning[ending]: {told}")
    return endings


def _print(summary: "TrustSummary") -> None:
    for about, told in summary.rows():
        print(f"{about:9} {told}")


def _require_trust_file(data: bytes, path: str) -> None:
    """Refuse what was never meant as a trust file, before its bytes are held to the form of one."""
    try:
        kind = json.loads(data)["_type"]
    except (ValueError, TypeError, LookupError, RecursionError):
        kind = None
    if not str(kind).startswith("spm.trust-file/"):
        raise TypeMismatch(f"`{path}` is not a trust file", hint="`spm trust export` writes one", path=path)


def _read(path: Path) -> bytes:
    from keys.one_read import read_once
    from keys.trust_file import MAX_TRUST_FILE_BYTES

    try:
        data, status = read_once(path, MAX_TRUST_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"the trust file `{path}` cannot be read: {os.strerror(error.errno or 0)}") from error
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"the trust file `{path}` is no file, but a pipe or device")
    return data


def _write(path: Path, data: bytes, *, is_replacing: bool) -> None:
    from spm_client.output_file import disk, written

    with written(path, is_replacing=is_replacing) as (file, _), disk(path):
        file.write(data)
        file.flush()
        os.fsync(file.fileno())

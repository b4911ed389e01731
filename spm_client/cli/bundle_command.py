"""`spm bundle`."""

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from manifests.names import parse_query
from spm_client.bundle_format import spec_text
from spm_client.cli.command import add_action, add_actions
from spm_client.cli.install_command import add_consents, add_options, show, wishes_of
from spm_client.cli.session import Session, target_option, timestamp
from spm_client.cli.store_of import installed_names
from spm_client.render import ProgressLine, fitted, size, terminal_width, warn
from spm_client.resolve import parse_spec
from spm_client.workflows.bundle_check import Carried, CheckedBundle
from spm_client.workflows.bundle_export import export_bundle
from spm_client.workflows.bundle_import import import_bundle, verify_bundle
from spm_client.workflows.consent import Wishes
from spm_client.workflows.near import suggesting_installed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "A bundle is held to loader.conf as a registry is, wherever it came from."
    actions = add_actions(parser)
    given = add_action(
        actions, "export", "write plugins and what they require to a file, with all that proves them", _export
    )
    _add_specs(given, "+", "`NAME`, `NAME==1.2.3`, `NAME@^1.2`, `NAME>=1,<2` or `NAME-v1.2.3`")
    given.add_argument("--output", metavar="FILE", required=True, help="where the bundle goes")
    given.add_argument("--force", action="store_true", help="replace the file if it is there")
    given.add_argument("--target", metavar="FILE", help="export for the host that FILE describes, not for this one")
    add_consents(given)
    looked = add_action(actions, "verify", "check a bundle as an import would, and show what is in it", _verify)
    looked.add_argument("file", metavar="FILE", help="a file that `spm bundle export` wrote")
    taken = add_action(actions, "import", "install from a bundle, asking no registry", _import)
    taken.add_argument("file", metavar="FILE", help="a file that `spm bundle export` wrote")
    _add_specs(taken, "*", "what to install of it (default: what was asked for at its export)")
    add_options(taken)


def _add_specs(parser: argparse.ArgumentParser, nargs: str, text: str) -> None:
    parser.add_argument("specs", nargs=nargs, metavar="SPEC", help=text)


def run(options: argparse.Namespace, session: Session) -> int:
    options.action(options, session)
    return 0


def _export(options: argparse.Namespace, session: Session) -> None:
    conf = session.conf()
    output = Path(options.output)
    wishes = Wishes(
        requirements=tuple(parse_spec(spec) for spec in options.specs),
        accept_fallback=frozenset(parse_query(name) for name in options.accept_fallback),
        pre=frozenset(parse_query(name) for name in options.pre),
        target_option=target_option(options.target),
    )
    with ExitStack() as stack:
        for name in wishes.names:
            stack.enter_context(suggesting_installed(name, lambda: installed_names(session)))
        client = stack.enter_context(session.client(conf))
        exported = export_bundle(
            wishes,
            session.layout,
            conf,
            client,
            session.target(options.target),
            output,
            is_replacing=options.force,
            now=session.now(),
            progress=ProgressLine(is_wanted=session.wants_progress),
        )
    session.emit({"output": str(output), **_as_dict(exported)})
    if not session.is_json:
        _show(exported)
        print(f"\nwrote {output}; `spm bundle import` installs from it, without a network")


def _verify(options: argparse.Namespace, session: Session) -> None:
    checked = verify_bundle(
        Path(options.file),
        session.layout,
        session.conf(),
        now=session.now(),
        progress=ProgressLine(is_wanted=session.wants_progress),
    )
    session.emit({"bundle": options.file, **_as_dict(checked)})
    if not session.is_json:
        _show(checked)
        print(f"\nsound: all in it is proven; `spm bundle import {options.file} --dry-run` shows what it would install")


def _import(options: argparse.Namespace, session: Session) -> None:
    checked, installed = import_bundle(
        Path(options.file),
        wishes_of(options),
        session.layout,
        session.conf(),
        session.target(options.target),
        now=session.now(),
        created=timestamp(session.environment),
        progress=ProgressLine(is_wanted=session.wants_progress),
    )
    for one in checked.carried if not options.specs else ():
        if one.newest != one.listed.version:
            warn(_older(one, checked))
    show(installed, session, is_dry_run=options.dry_run)


def _older(one: Carried, checked: CheckedBundle) -> str:
    asked = ", ".join(f"`{spec_text(wish)}`" for wish in checked.asked)
    return (
        f"warning[older]: the bundle brings `{one.name}` {one.listed.version}, while its index lists {one.newest} too\n"
        f"  what was asked for at its export: {asked}"
    )


def _as_dict(checked: CheckedBundle) -> dict[str, Any]:
    state = checked.trust.state
    return {
        "registry": checked.registry,
        "asked": [spec_text(wish) for wish in checked.asked],
        "size": checked.size,
        "root": state.root_version,
        "issued": _moment(state.issued),
        "expires": _moment(state.expires),
        "plugins": [_carried(one) for one in checked.carried],
    }


def _carried(one: Carried) -> dict[str, Any]:
    manifest = one.verified.manifest
    return {
        "name": manifest.name,
        "version": str(manifest.version),
        "release": manifest.release,
        "type": manifest.type.value,
        "publisher": manifest.publisher,
        "manifest_sha256": one.verified.sha256,
        "keyids": sorted(one.verified.keyids),
        "files": len(manifest.files),
        "size": manifest.size,
        "requires": [str(name) for name, _ in manifest.requires.plugins],
        "yanked": one.listed.yanked,
        "newest": str(one.newest),
    }


def _show(checked: CheckedBundle) -> None:
    state = checked.trust.state
    print(f"registry: {checked.registry}   size: {size(checked.size)}   root: {state.root_version}")
    print(f"index:    signed at {_moment(state.issued)}, fresh until {_moment(state.expires)}")
    print(f"asked:    {', '.join(spec_text(wish) for wish in checked.asked)}\n")
    rows = [
        (
            one.name,
            one.verified.manifest.release,
            one.verified.manifest.type.value,
            size(one.verified.manifest.size),
            one.verified.manifest.publisher,
            ", ".join(f"{keyid[:16]}…" for keyid in sorted(one.verified.keyids)),
            _note(one),
        )
        for one in checked.carried
    ]
    header = ("PLUGIN", "RELEASE", "CLASS", "SIZE", "PUBLISHER", "SIGNED BY", "NOTE")
    print(fitted(header, rows, terminal_width(), spare=("CLASS", "SIZE"), least=20))


def _note(one: Carried) -> str:
    notes = [f"yanked: {one.listed.yanked}"] if one.listed.yanked else []
    notes += [f"{one.newest} is listed too"] if one.newest != one.listed.version else []
    return "; ".join(notes) or "-"


def _moment(moment: Any) -> str | None:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else None

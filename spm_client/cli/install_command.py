"""`spm install`."""

import argparse

from manifests.batching import BatchPolicy
from manifests.devices import parse_affinity
from manifests.lockfile import Bindings
from manifests.names import parse_query
from spm_client.cli.session import Session, target_option, timestamp
from spm_client.render import ProgressLine, warn
from spm_client.resolve import parse_spec
from spm_client.workflows.consent import Wishes
from spm_client.workflows.install import Change, Installed, NoLongerTrusted, install


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "specs", nargs="+", metavar="SPEC", help="`NAME`, `NAME==1.2.3`, `NAME@^1.2`, `NAME>=1,<2` or `NAME-v1.2.3`"
    )
    add_bindings(parser)
    add_consents(parser)
    parser.add_argument("--target", metavar="FILE", help="install for the host that FILE describes, not for this one")
    parser.add_argument("--strict", action="store_true", help="refuse plugins with waste traps")
    parser.add_argument("--dry-run", action="store_true", help="resolve and verify, show the plan, change nothing")


def add_bindings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--affinity", metavar="DEVICES", help="bind the plugin to devices, as in `cuda:0,cpu`")
    parser.add_argument("--batch-policy", metavar="MODE", help="bind a batch policy: adaptive, static or none")
    parser.add_argument("--unbind", action="store_true", help="first drop the bindings that the plugin has")


def add_consents(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--accept-fallback",
        metavar="NAME",
        action="append",
        default=[],
        help="let NAME be older than the newest in range",
    )
    parser.add_argument("--pre", metavar="NAME", action="append", default=[], help="let pre-releases of NAME in")


def bindings_of(options: argparse.Namespace) -> Bindings:
    return Bindings(
        affinity=None if options.affinity is None else parse_affinity(options.affinity.split(",")),
        batch_policy=None if options.batch_policy is None else BatchPolicy.from_value(options.batch_policy),
    )


def run(options: argparse.Namespace, session: Session) -> int:
    wishes = Wishes(
        requirements=tuple(parse_spec(spec) for spec in options.specs),
        bindings=bindings_of(options),
        unbind=options.unbind,
        accept_fallback=frozenset(parse_query(name) for name in options.accept_fallback),
        pre=frozenset(parse_query(name) for name in options.pre),
        is_strict=options.strict,
        is_dry_run=options.dry_run,
        target_option=target_option(options.target),
    )
    conf = session.conf()
    with session.client(conf) as client:
        installed = install(
            wishes,
            session.layout,
            conf,
            client,
            session.target(options.target),
            now=session.now(),
            created=timestamp(session.environment),
            progress=ProgressLine(is_wanted=session.wants_progress),
        )
    show(installed, session, is_dry_run=options.dry_run)
    return 0


def show(installed: Installed, session: Session, *, is_dry_run: bool) -> None:
    session.emit(
        {
            "generation": installed.generation.number,
            "dry_run": is_dry_run,
            "plugins": [_as_dict(change) for change in installed.changes],
            "repaired": sorted(installed.repaired),
            "removed": [entry.to_dict() for entry in installed.dropped],
            "waste_traps": [finding.to_dict() for finding in installed.findings],
            "refused": [_refused(one) for one in installed.refused],
        }
    )
    for one in installed.refused:
        warn(_warning(one))
    for change in installed.changes:
        if change.yanked:
            release = f"`{change.after.name}` {change.after.version}"
            warn(f"warning[yanked]: {release} was yanked: {change.yanked}")
        elif change.once_yanked:
            release = f"`{change.after.name}` {change.after.version}"
            warn(f"note: {release} was yanked before ({change.once_yanked}), and is offered again")
    for finding in installed.findings:
        warn(f"warning[{finding.trap}]: {finding.message}\n  remedy: {finding.remedy}")
    if session.is_json:
        return
    for change in installed.changes:
        verb = "repaired" if change.after.name in installed.repaired else _verb(change)
        if verb != "unchanged" or change.after.name in installed.wished:
            print(f"{f'would be {verb}' if is_dry_run else verb:10} {_described(change)}")
    for entry in installed.dropped:
        print(f"{'would be removed' if is_dry_run else 'removed':10} {entry.name} {entry.release}, nothing requires it")


def _refused(one: NoLongerTrusted) -> dict[str, object]:
    return {"name": one.entry.name, "version": str(one.entry.version), **one.refusal.to_dict()}


def _warning(one: NoLongerTrusted) -> str:
    name, refusal = one.entry.name, one.refusal
    text = f"warning[{refusal.reason}]: what is installed runs no more: {refusal.message}"
    return (
        f"{text}\n  remedy: `spm install {name}` looks for a release that is trusted, `spm uninstall {name}` removes it"
    )


def _as_dict(change: Change) -> dict[str, object]:
    before = str(change.before.version) if change.before else None
    changed = change.before != change.after
    told = {"before": before, "changed": changed, "yanked": change.yanked, "once_yanked": change.once_yanked}
    return {**change.after.to_dict(), **told}


def _verb(change: Change) -> str:
    if change.before == change.after:
        return "unchanged"
    if change.before is None:
        return "installed"
    if change.before.version == change.after.version:
        return "changed"
    return "upgraded" if change.before.version < change.after.version else "downgraded"


def _described(change: Change) -> str:
    after, before = change.after, change.before
    text = f"{after.name} {after.release} ({after.type.value})"
    if before and before.version != after.version:
        text += f", was {before.version}"
    if not after.requested:
        text += ", required by another plugin"
    return text + (f"\n           (fallback) {after.fallback}" if after.fallback else "")

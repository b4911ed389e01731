"""`spm install`."""

import argparse

from manifests.batching import BatchPolicy
from manifests.devices import parse_affinity
from manifests.lockfile import Bindings
from manifests.names import parse_query
from spm_client.cli.limits import parse_arch, parse_cutoff
from spm_client.cli.plan_text import plan_document, plan_lines, warnings
from spm_client.cli.session import Session, target_option, timestamp
from spm_client.render import ProgressLine, warn
from spm_client.resolve import parse_spec
from spm_client.workflows.consent import Wishes
from spm_client.workflows.install import install
from spm_client.workflows.near import suggesting
from spm_client.workflows.plan import Installed


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "specs", nargs="+", metavar="SPEC", help="`NAME`, `NAME==1.2.3`, `NAME@^1.2`, `NAME>=1,<2` or `NAME-v1.2.3`"
    )
    add_options(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add all that `wishes_of` reads beside the specs."""
    add_bindings(parser)
    add_consents(parser)
    parser.add_argument(
        "--exclude-newer",
        metavar="DATE",
        help="leave out releases published later: a moment as in `2026-01-31T12:00:00Z`, "
        "or a day as in `2026-01-31`, to its end in UTC",
    )
    parser.add_argument("--force-arch", metavar="SM", help="of builds for GPUs, take only those for just SM: `sm_86`")
    parser.add_argument("--no-deps", action="store_true", help="install nothing that is required and not there yet")
    parser.add_argument("--target", metavar="FILE", help="install for the host that FILE describes, not for this one")
    parser.add_argument("--strict", action="store_true", help="refuse plugins with waste traps")
    parser.add_argument("--dry-run", action="store_true", help="resolve and verify, show the plan, change nothing")
    parser.add_argument("--not-running", action="store_true", help="I know that no host runs what is replaced")


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


def wishes_of(options: argparse.Namespace) -> Wishes:
    return Wishes(
        requirements=tuple(parse_spec(spec) for spec in options.specs),
        bindings=bindings_of(options),
        unbind=options.unbind,
        accept_fallback=frozenset(parse_query(name) for name in options.accept_fallback),
        pre=frozenset(parse_query(name) for name in options.pre),
        is_strict=options.strict,
        is_dry_run=options.dry_run,
        target_option=target_option(options.target),
        no_deps=options.no_deps,
        exclude_newer=None if options.exclude_newer is None else parse_cutoff(options.exclude_newer),
        force_arch=None if options.force_arch is None else parse_arch(options.force_arch),
        is_known_idle=options.not_running,
    )


def run(options: argparse.Namespace, session: Session) -> int:
    wishes = wishes_of(options)
    conf = session.conf()
    with session.client(conf) as client, suggesting(client, wishes.names, registry=conf.registry_id):
        installed = install(
            wishes,
            session.layout,
            conf,
            session.client,
            session.target(options.target),
            now=session.now(),
            created=timestamp(session.environment),
            progress=ProgressLine(is_wanted=session.wants_progress),
        )
    show(installed, session, is_dry_run=options.dry_run)
    return 0


def show(installed: Installed, session: Session, *, is_dry_run: bool) -> None:
    """Tell what an install did; of a dry run, what it would do."""
    session.emit(plan_document(installed, is_dry_run=is_dry_run))
    for text in warnings(installed):
        warn(text)
    if not session.is_json:
        for line in plan_lines(installed, is_dry_run=is_dry_run):
            print(line)

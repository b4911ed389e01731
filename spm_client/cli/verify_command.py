"""`spm verify`."""

import argparse

from manifests.errors import SpmError, WasteTrapFound
from runtime.installed import StoreTrust
from spm_client.cli.session import Session, target_option
from spm_client.cli.store_of import parse_installed
from spm_client.render import warn
from spm_client.workflows.verify import Checked, verify

_LISTED = 5


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="installed plugins (default: all)")
    parser.add_argument("--strict", action="store_true", help="a waste trap is a refusal (exit 11)")
    parser.add_argument("--report-json", action="store_true", help="print the report as JSON, as `--json` does")
    parser.add_argument("--target", metavar="FILE", help="look for waste traps on the host that FILE describes")


def run(options: argparse.Namespace, session: Session) -> int:
    session.is_json = session.is_json or options.report_json
    names = tuple(parse_installed(name) for name in options.names)
    conf = session.conf()
    conf.require_root()
    target = session.target(options.target)
    checked = verify(
        names,
        session.layout.root,
        session.generation(conf.registry_id),
        StoreTrust(session.layout.root, conf, session.now()),
        target,
        target_option=target_option(options.target),
    )
    report = {
        "target": {"os": target.os, "cpu": target.cpu, "devices": [device.id for device in target.devices]},
        "strict": options.strict,
        "plugins": [one.to_dict() for one in checked],
        "waste_traps": [finding.to_dict() for one in checked for finding in one.findings],
    }
    _show(checked, session)
    if refusal := _refusal(checked, is_strict=options.strict):
        session.partial = report
        raise refusal
    session.emit(report)
    return 0


def _show(checked: tuple[Checked, ...], session: Session) -> None:
    if not checked:
        session.say("nothing is installed")
    for one in checked:
        status = f"REFUSED [{one.refusal.reason}]" if one.refusal else "verified"
        # Of what is sound, a waste trap has the words.
        words = f" {one.entry.fallback}" if one.refusal else ""
        fallback = f" (fallback){words}" if one.entry.fallback else ""
        registry = f" (from {one.entry.registry})" if one.entry.registry else ""
        session.say(f"{status:10} {one.entry.name} {one.entry.release}{registry}{fallback}")
        if one.renewed:
            session.say(f"  its receipt now covers {_listed(one.renewed)}")
        if one.hashed_at_load:
            session.say(f"  hashed at each load, for want of a receipt: {_listed(one.hashed_at_load)}")
        for finding in one.findings:
            waiver = finding.evidence.get("publisher_waiver")
            warn(f"  trap[{finding.trap}] {finding.severity.value}: {finding.message}")
            if waiver:
                warn(f"    its publisher says: {waiver}")
            warn(f"    remedy: {finding.remedy}")


def _listed(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _LISTED} more" if len(paths) > _LISTED else ""
    return ", ".join(paths[:_LISTED]) + more


def _refusal(checked: tuple[Checked, ...], *, is_strict: bool) -> SpmError | None:
    """Return the refusal that decides the exit code: the first broken plugin, else the traps."""
    for one in checked:
        if one.refusal:
            return one.refusal
    findings = [finding for one in checked for finding in one.findings]
    if not is_strict or not findings:
        return None
    plugins = sorted({finding.plugin for finding in findings})
    return WasteTrapFound(
        f"{len(findings)} waste trap{'s' * (len(findings) > 1)} in {', '.join(f'`{plugin}`' for plugin in plugins)}",
        reason=findings[0].trap,
        hint=findings[0].remedy,
        traps=[finding.trap for finding in findings],
    )

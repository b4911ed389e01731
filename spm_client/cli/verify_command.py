"""`spm verify`."""

import argparse
import sys

from manifests.errors import SpmError, WasteTrapFound
from manifests.names import parse_query
from spm_client.cli.session import Session, target_option
from spm_client.workflows.verify import Checked, verify


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="installed plugins (default: all)")
    parser.add_argument("--strict", action="store_true", help="a waste trap is a refusal (exit 11)")
    parser.add_argument("--report-json", action="store_true", help="print the report as JSON, as `--json` does")
    parser.add_argument("--target", metavar="FILE", help="look for waste traps on the host that FILE describes")


def run(options: argparse.Namespace, session: Session) -> int:
    session.is_json = session.is_json or options.report_json
    conf = session.conf()
    target = session.target(options.target)
    names = tuple(parse_query(name) for name in options.names)
    checked = verify(
        names,
        session.layout.root,
        session.generation(conf.registry_id),
        conf,
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
        fallback = f" (fallback) {one.entry.fallback}" if one.entry.fallback else ""
        session.say(f"{status:10} {one.entry.name} {one.entry.release}{fallback}")
        for finding in one.findings:
            waiver = finding.evidence.get("publisher_waiver")
            print(f"  trap[{finding.trap}] {finding.severity.value}: {finding.message}", file=sys.stderr)
            if waiver:
                print(f"    its publisher says: {waiver}", file=sys.stderr)
            print(f"    remedy: {finding.remedy}", file=sys.stderr)


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

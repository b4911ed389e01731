"""What an install did or would do, as lines and as JSON, which differs in `dry_run` alone. Decides nothing."""

from collections.abc import Iterator
from typing import Any

from spm_client.render import count, size
from spm_client.workflows.plan import Change, Installed, NoLongerTrusted

_LEAST = 10
_INDENT = " " * (_LEAST + 1)


def plan_document(installed: Installed, *, is_dry_run: bool) -> dict[str, Any]:
    return {
        "generation": installed.generation.number,
        "dry_run": is_dry_run,
        "plugins": [_as_dict(change, installed) for change in installed.changes],
        "repaired": sorted(installed.repaired),
        "removed": [entry.to_dict() for entry in installed.dropped],
        "download": {"blobs": installed.downloaded.blobs, "bytes": installed.downloaded.size},
        "waste_traps": [finding.to_dict() for finding in installed.findings],
        "refused": [_refused(one) for one in installed.refused],
    }


def warnings(installed: Installed) -> Iterator[str]:
    for one in installed.refused:
        yield _warning(one)
    for change in installed.changes:
        release = f"`{change.after.name}` {change.after.version}"
        if change.yanked:
            yield f"warning[yanked]: {release} was yanked: {change.yanked}"
        elif change.once_yanked:
            yield f"note: {release} was yanked before ({change.once_yanked}), and is offered again"
    for finding in installed.findings:
        yield f"warning[{finding.trap}]: {finding.message}\n  remedy: {finding.remedy}"


def plan_lines(installed: Installed, *, is_dry_run: bool) -> Iterator[str]:
    """Yield what changes, and what was asked for; of a dry run also who signed it, and what would be fetched."""
    would = "would be " if is_dry_run else ""
    shown = [one for one in installed.changes if _is_shown(one, installed)]
    verbs = [installed.verb(one) for one in shown] + ["removed"] * len(installed.dropped)
    width = max([_LEAST, *(len(would + verb) for verb in verbs)])
    told = {finding.plugin for finding in installed.findings if "fallback" in finding.evidence}
    for change, verb in zip(shown, verbs, strict=False):
        yield f"{would + verb:{width}} {_described(change, is_told=change.after.name in told)}"
        if is_dry_run and verb != "unchanged":
            yield f"{_INDENT}signed by {', '.join(f'{keyid[:16]}…' for keyid in change.after.keyids)}"
    why = "not in spm.lock" if installed.is_exact else "nothing requires it"
    for entry in installed.dropped:
        yield f"{would + 'removed':{width}} {entry.name} {entry.release}, {why}"
    if is_dry_run:
        yield _of_the_rest(installed)


def _is_shown(change: Change, installed: Installed) -> bool:
    return installed.verb(change) != "unchanged" or change.after.name in installed.wished


def _of_the_rest(installed: Installed) -> str:
    blobs = installed.downloaded.blobs
    fetched = f"{size(installed.downloaded.size)} in {count(blobs, 'file')}" if blobs else "nothing"
    kept = sum(installed.verb(change) == "unchanged" for change in installed.changes)
    return f"{fetched} would be downloaded" + (f"; {count(kept, 'plugin')} would stay unchanged" if kept else "")


def _refused(one: NoLongerTrusted) -> dict[str, object]:
    return {"name": one.entry.name, "version": str(one.entry.version), **one.refusal.to_dict()}


def _warning(one: NoLongerTrusted) -> str:
    name, refusal = one.entry.name, one.refusal
    text = f"warning[{refusal.reason}]: what is installed runs no more: {refusal.message}"
    return (
        f"{text}\n  remedy: `spm install {name}` looks for a release that is trusted, `spm uninstall {name}` removes it"
    )


def _as_dict(change: Change, installed: Installed) -> dict[str, object]:
    before = str(change.before.version) if change.before else None
    told = {"action": installed.verb(change), "variant": change.variant, "before": before}
    yanks = {"yanked": change.yanked, "once_yanked": change.once_yanked}
    return {**change.after.to_dict(), **told, "changed": change.before != change.after, **yanks}


def _described(change: Change, *, is_told: bool) -> str:
    """Return what became of a plugin; why it is a fallback only where no waste trap has told it."""
    after, before = change.after, change.before
    text = f"{after.name} {after.release} ({after.type.value})"
    if before and before.version != after.version:
        text += f", was {before.version}"
    if after.registry is not None:
        text += f", from {after.registry}"
    if not after.requested:
        text += ", required by another plugin"
    if not after.fallback:
        return text
    return f"{text} (fallback)" if is_told else f"{text}\n{_INDENT}(fallback) {after.fallback}"

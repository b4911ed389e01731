"""`spm gc`."""

import argparse

from manifests.errors import UsageError
from runtime.in_use import described
from spm_client.cli.parser import whole
from spm_client.cli.session import Session
from spm_client.cli.store_of import existing_store
from spm_client.render import count, size, warn
from spm_client.workflows.gc import Freed, gc
from spm_client.workflows.unneeded import Kind

_NOUNS = {
    Kind.GENERATIONS: "older generation",
    Kind.RELEASES: "release",
    Kind.RECEIPTS: "receipt",
    Kind.BLOBS: "blob",
    Kind.PARTIALS: "partial download",
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would be freed, change nothing")
    parser.add_argument(
        "--keep", metavar="N", type=whole, default=2, help="how many generations to keep, the current one counted (2)"
    )
    parser.add_argument(
        "--not-running", action="store_true", help="I know that no host runs what goes (where it cannot be told)"
    )


def run(options: argparse.Namespace, session: Session) -> int:
    if options.keep < 1:
        raise UsageError(f"`--keep {options.keep}` would not keep what is installed", hint="keep 1 or more")
    freed = gc(
        existing_store(session),
        keep=options.keep,
        now=session.now().timestamp(),
        is_dry_run=options.dry_run,
        is_known_idle=options.not_running,
    )
    session.emit(_as_dict(freed, is_dry_run=options.dry_run))
    for one in freed.still_run:
        warn(f"note: {one.item.words} stays, it is run by {described(one.processes)}")
    if not freed.is_complete:
        warn("note: another command began, so the rest stays: run `spm gc` again when it is done")
    if not session.is_json:
        _show(freed, session, is_dry_run=options.dry_run)
    return 0


def _as_dict(freed: Freed, *, is_dry_run: bool) -> dict[str, object]:
    return {
        "generation": freed.generation,
        "kept_generations": list(freed.kept),
        "dry_run": is_dry_run,
        "is_complete": freed.is_complete,
        "files": freed.footprint.files,
        "bytes": freed.footprint.bytes,
        "generations": [int(number) for number in freed.of(Kind.GENERATIONS)],
        "releases": freed.of(Kind.RELEASES),
        "manifests": freed.manifests,
        "receipts": len(freed.of(Kind.RECEIPTS)),
        "blobs": len(freed.of(Kind.BLOBS)),
        "partials": len(freed.of(Kind.PARTIALS)),
        "in_use": [{"release": one.item.shown, "processes": list(one.processes)} for one in freed.still_run],
    }


def _show(freed: Freed, session: Session, *, is_dry_run: bool) -> None:
    verb = "would free" if is_dry_run else "freed"
    if not freed.items:
        session.say("nothing to free")
        return
    for release in freed.of(Kind.RELEASES):
        session.say(f"{verb} {release}")
    counts = [count(len(freed.of(kind)), noun) for kind, noun in _NOUNS.items() if freed.of(kind)]
    counts[1:1] = [count(freed.manifests, "manifest")] if freed.manifests else []
    files = f"{count(freed.footprint.files, 'file')}, {size(freed.footprint.bytes)}"
    session.say(f"{verb} {files}: {', '.join(counts)}")

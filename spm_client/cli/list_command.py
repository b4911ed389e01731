"""`spm list`."""

import argparse

from keys.revoked_glance import RevokedGlance, glance
from manifests.lockfile import InstalledEntry
from spm_client.cli.session import Session
from spm_client.render import table


def configure(parser: argparse.ArgumentParser) -> None:
    del parser


def run(_options: argparse.Namespace, session: Session) -> int:
    generation = session.generation("")
    revoked = glance(session.layout.root)
    plugins = [_as_dict(entry, revoked) for entry in generation.plugins]
    session.emit({"generation": generation.number, "plugins": plugins})
    if session.is_json:
        return 0
    if not generation.plugins:
        session.say(f"nothing is installed in {session.layout.root}")
        return 0
    header = ("NAME", "VERSION", "CLASS", "BOUND TO", "BATCH", "WANTED BY")
    print(table(header, [_row(entry, revoked, generation.dependants(entry.name)) for entry in generation.plugins]))
    return 0


def _as_dict(entry: InstalledEntry, revoked: RevokedGlance) -> dict[str, object]:
    return {**entry.to_dict(), "is_fallback": entry.fallback is not None, "is_revoked": revoked.marks(entry)}


def _row(entry: InstalledEntry, revoked: RevokedGlance, dependants: tuple[str, ...]) -> tuple[str, ...]:
    bindings = entry.bindings
    return (
        entry.name,
        str(entry.release) + (" (fallback)" if entry.fallback else "") + (" (revoked)" if revoked.marks(entry) else ""),
        entry.type.value,
        ",".join(map(str, bindings.affinity)) if bindings.affinity else "-",
        bindings.batch_policy.mode.value if bindings.batch_policy else "-",
        ", ".join((("you",) if entry.requested else ()) + dependants),
    )

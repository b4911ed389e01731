"""`spm-registry token list`: shows every token but its text."""

import argparse
import time

from registry.commands.output import show, show_json
from registry.services.times import moment_text
from registry.services.tokens import revoked_at
from registry.storage.rows import TokenRow
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Print all tokens, oldest first."""
    with using_site(options.root) as site, site.database.reading() as records:
        rows = [(row, revoked_at(records, row)) for row in records.tokens()]
    if options.json:
        show_json({"tokens": [_value(row, revoked) for row, revoked in rows]})
        return 0
    now = int(time.time())
    for row, revoked in rows:
        used = "never used" if row.last_used_at is None else f"last used {moment_text(row.last_used_at)}"
        names = " ".join(row.names)
        life = _life(row, revoked, now)
        show(f"{row.id}  {row.role:<9}  {row.label:<16}  {names:<16}  {life:<28}  {used}")
    return 0


def _life(row: TokenRow, revoked: int | None, now: int) -> str:
    if revoked is not None:
        return f"revoked {moment_text(revoked)}"
    return f"{'expired' if row.expires_at <= now else 'until'} {moment_text(row.expires_at)}"


def _value(row: TokenRow, revoked: int | None) -> dict[str, object]:
    return {
        "id": row.id,
        "label": row.label,
        "role": row.role,
        "names": list(row.names),
        "created": moment_text(row.created_at),
        "expires": moment_text(row.expires_at),
        "revoked": None if revoked is None else moment_text(revoked),
        "last_used": None if row.last_used_at is None else moment_text(row.last_used_at),
    }

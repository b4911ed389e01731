"""`spm-registry token list`: shows every token but its text."""

import argparse
import time

from registry.commands.output import show, show_json
from registry.commands.times import day_of
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
        used = "never used" if row.last_used_at is None else f"last used {day_of(row.last_used_at)}"
        names = " ".join(row.names)
        life = _life(row, revoked, now)
        show(f"{row.id}  {row.role:<9}  {row.label:<16}  {names:<16}  {life:<28}  {used}")
    return 0


def _life(row: TokenRow, revoked: int | None, now: int) -> str:
    if revoked is not None:
        return f"revoked {day_of(revoked)}"
    return f"{'expired' if row.expires_at <= now else 'until'} {day_of(row.expires_at)}"


def _value(row: TokenRow, revoked: int | None) -> dict[str, object]:
    return {
        "id": row.id,
        "label": row.label,
        "role": row.role,
        "names": list(row.names),
        "created": day_of(row.created_at),
        "expires": day_of(row.expires_at),
        "revoked": None if revoked is None else day_of(revoked),
        "last_used": None if row.last_used_at is None else day_of(row.last_used_at),
    }

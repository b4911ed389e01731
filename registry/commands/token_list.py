"""`spm-registry token list`: shows every token but its text."""

import argparse
import json

from registry.commands.times import day_of
from registry.storage.rows import TokenRow
from registry.storage.site import open_site


def run(options: argparse.Namespace) -> int:
    """Print all tokens, oldest first."""
    with open_site(options.root).database.reading() as records:
        rows = records.tokens()
    if options.json:
        print(json.dumps({"tokens": [_value(row) for row in rows]}, ensure_ascii=False))
        return 0
    for row in rows:
        used = "never used" if row.last_used_at is None else f"last used {day_of(row.last_used_at)}"
        names = " ".join(row.names)
        print(f"{row.id}  {row.role:<9}  {row.label:<16}  {names:<16}  until {day_of(row.expires_at)}  {used}")
    return 0


def _value(row: TokenRow) -> dict[str, object]:
    return {
        "id": row.id,
        "label": row.label,
        "role": row.role,
        "names": list(row.names),
        "created": day_of(row.created_at),
        "expires": day_of(row.expires_at),
        "last_used": None if row.last_used_at is None else day_of(row.last_used_at),
    }

"""`spm-registry token new`: makes a token and shows it once."""

import argparse
import json
import sys
import time

from registry.commands.times import day_of
from registry.services import tokens
from registry.services.policy import Role
from registry.services.setup import OPERATOR
from registry.services.tokens import TokenRequest
from registry.storage.site import open_site


def run(options: argparse.Namespace) -> int:
    """Make the token and print it."""
    site = open_site(options.root)
    request = TokenRequest(label=options.label, role=Role(options.role), names=tuple(options.names), days=options.days)
    with site.database.writing() as records:
        text, row = tokens.issue(records, request, secret=site.secret, actor=OPERATOR, now=int(time.time()))
    if options.json:
        value = {
            "token": text,
            "id": row.id,
            "label": row.label,
            "role": row.role,
            "names": list(row.names),
            "expires": day_of(row.expires_at),
        }
        print(json.dumps(value, ensure_ascii=False))
    else:
        print(text)
        print(f"`{row.label}` may be {row.role} until {day_of(row.expires_at)}.", file=sys.stderr)
        print("The token is not stored and cannot be shown again.", file=sys.stderr)
    return 0

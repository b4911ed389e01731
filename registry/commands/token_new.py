"""`spm-registry token new`: makes a token and shows it once."""

import argparse
import time

from registry.commands.output import note, show, show_json
from registry.services import tokens
from registry.services.policy import Role
from registry.services.setup import OPERATOR
from registry.services.times import moment_text
from registry.services.tokens import TokenRequest
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Make the token and print it."""
    request = TokenRequest(label=options.label, role=Role(options.role), names=tuple(options.names), days=options.days)
    with using_site(options.root) as site, site.database.writing() as records:
        text, row = tokens.issue(records, request, secret=site.secret, actor=OPERATOR, now=int(time.time()))
        owned = records.owned(row.label)
    if options.json:
        value = {
            "token": text,
            "id": row.id,
            "label": row.label,
            "role": row.role,
            "names": list(row.names),
            "expires": moment_text(row.expires_at),
        }
        show_json(value)
    else:
        show(text)
        note(f"Token for `{row.label}`: {row.role}, valid until {moment_text(row.expires_at)}")
        note("The token is not stored and cannot be shown again.")
    if owned:
        note(f"This label already owns: {', '.join(owned)}")
    return 0

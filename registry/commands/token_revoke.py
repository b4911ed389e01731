"""`spm-registry token revoke`: ends a token's life now."""

import argparse
import time

from registry.commands.output import note, show_json
from registry.services import tokens
from registry.services.setup import OPERATOR
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Revoke the token."""
    with using_site(options.root) as site, site.database.writing() as records:
        row = tokens.revoke(records, options.id, actor=OPERATOR, now=int(time.time()))
    if options.json:
        show_json({"id": row.id, "label": row.label, "revoked": True})
    else:
        note(f"Revoked the token {row.id} of `{row.label}`")
    return 0

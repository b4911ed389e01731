"""`spm-registry token revoke`: ends a token's life now."""

import argparse
import json
import sys
import time

from registry.services import tokens
from registry.services.setup import OPERATOR
from registry.storage.site import open_site


def run(options: argparse.Namespace) -> int:
    """Revoke the token."""
    with open_site(options.root).database.writing() as records:
        row = tokens.revoke(records, options.id, actor=OPERATOR, now=int(time.time()))
    if options.json:
        print(json.dumps({"id": row.id, "label": row.label, "revoked": True}, ensure_ascii=False))
    else:
        print(f"Revoked the token {row.id} of `{row.label}`", file=sys.stderr)
    return 0

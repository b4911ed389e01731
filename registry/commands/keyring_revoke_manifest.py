"""`spm-registry keyring revoke-manifest`: takes one signed variant back for ever."""

import argparse
import time

from registry.commands.ceremony import open_signers, tell
from registry.services.known_keys import require_published
from registry.services.root_ceremony import change
from registry.services.root_terms import Terms, with_revoked_manifest
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    signers = open_signers(options.sign, options.passphrase_fd)
    with using_site(options.root) as site:

        def edit(terms: Terms) -> Terms:
            if not options.unknown:
                with site.database.reading() as records:
                    require_published(records, terms, options.sha256)
            return with_revoked_manifest(terms, options.sha256)

        outcome = change(site, edit, signers, int(time.time()))
    return tell(outcome, options)

"""`spm-registry keyring revoke`: ends the trust in a key, from a moment on or altogether."""

import argparse
import time

from keys.pinned_keys import RevocationReason
from registry.commands.ceremony import open_signers, tell, written_keyid
from registry.services.known_keys import known_keyids, require_known, the_key
from registry.services.root_ceremony import change
from registry.services.root_terms import Terms, with_revoked_key
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    reason = RevocationReason(options.reason)
    now = int(time.time())
    written = written_keyid(options.keyid)
    signers = open_signers(options.sign, options.passphrase_fd)
    with using_site(options.root) as site:

        def edit(terms: Terms) -> Terms:
            with site.database.reading() as records:
                known = known_keyids(site, records, terms)
            keyid = the_key(written, known)
            if not options.unknown:
                require_known(keyid, known)
            return with_revoked_key(terms, keyid, reason, options.since, now)

        outcome = change(site, edit, signers, now)
    return tell(outcome, options)

"""`spm-registry root remove-key`: takes a key out of the root."""

import argparse
import time

from registry.commands.ceremony import open_signers, tell, written_keyid
from registry.services.known_keys import root_keyids, the_key
from registry.services.root_ceremony import change
from registry.services.root_terms import Terms, without_root_key
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    keyid = written_keyid(options.keyid)

    def edit(terms: Terms) -> Terms:
        return without_root_key(terms, the_key(keyid, root_keyids(terms)))

    signers = open_signers(options.sign, options.passphrase_fd)
    with using_site(options.root) as site:
        outcome = change(site, edit, signers, int(time.time()))
    return tell(outcome, options)

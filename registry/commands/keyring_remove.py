"""`spm-registry keyring remove`: takes a key out of the keyring."""

import argparse

from registry.commands.ceremony import carry_out, written_keyid
from registry.services.known_keys import keyring_keyids, the_key
from registry.services.root_terms import Terms, without_keyring_key


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    keyid = written_keyid(options.keyid)

    def edit(terms: Terms) -> Terms:
        return without_keyring_key(terms, the_key(keyid, keyring_keyids(terms)))

    return carry_out(edit, options)

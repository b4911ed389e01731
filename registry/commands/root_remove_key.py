"""`spm-registry root remove-key`: takes a key out of the root."""

import argparse

from registry.commands.ceremony import carry_out, written_keyid
from registry.services.known_keys import root_keyids, the_key
from registry.services.root_terms import Terms, without_root_key


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    keyid = written_keyid(options.keyid)

    def edit(terms: Terms) -> Terms:
        return without_root_key(terms, the_key(keyid, root_keyids(terms)))

    return carry_out(edit, options)

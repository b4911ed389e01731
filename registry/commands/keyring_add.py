"""`spm-registry keyring add`: lets clients load what a key signs, by the keyring that the root keys sign."""

import argparse
from functools import partial

from registry.commands.ceremony import carry_out
from registry.services.pins import read_key
from registry.services.root_terms import with_keyring_key


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    key = read_key(options.file)
    edit = partial(with_keyring_key, key=key, names=tuple(options.names), expires=options.expires)
    return carry_out(edit, options)

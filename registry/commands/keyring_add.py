"""`spm-registry keyring add`: lets clients load what a key signs, by the keyring that the root keys sign."""

import argparse
import time
from functools import partial

from registry.commands.ceremony import open_signers, tell
from registry.services.pins import read_key
from registry.services.root_ceremony import change
from registry.services.root_terms import with_keyring_key
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    key = read_key(options.file)
    edit = partial(with_keyring_key, key=key, names=tuple(options.names), expires=options.expires)
    signers = open_signers(options.sign, options.passphrase_fd)
    with using_site(options.root) as site:
        outcome = change(site, edit, signers, int(time.time()))
    return tell(outcome, options)

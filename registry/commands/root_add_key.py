"""`spm-registry root add-key`: lets one more key sign the root."""

import argparse
import time
from functools import partial

from registry.commands.ceremony import open_signers, tell
from registry.services.pins import read_key
from registry.services.root_ceremony import change
from registry.services.root_terms import with_root_key
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    edit = partial(with_root_key, key=read_key(options.file))
    signers = open_signers(options.sign, options.passphrase_fd)
    with using_site(options.root) as site:
        outcome = change(site, edit, signers, int(time.time()))
    return tell(outcome, options)

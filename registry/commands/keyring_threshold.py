"""`spm-registry keyring threshold`: says how many core keys must sign a core plugin."""

import argparse
import time
from functools import partial

from registry.commands.ceremony import open_signers, tell
from registry.services.root_ceremony import change
from registry.services.root_terms import with_core_threshold
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    edit = partial(with_core_threshold, threshold=options.number)
    signers = open_signers(options.sign, options.passphrase_fd)
    with using_site(options.root) as site:
        outcome = change(site, edit, signers, int(time.time()))
    return tell(outcome, options)

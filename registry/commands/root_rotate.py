"""`spm-registry root rotate`: drafts a root that ends later, with another threshold or online key if asked."""

import argparse
import time

from registry.commands.ceremony import open_signers, tell
from registry.services.root_ceremony import rotate
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    signers = open_signers(options.sign, options.passphrase_fd)
    with using_site(options.root) as site:
        outcome = rotate(site, options.threshold, signers, int(time.time()), is_online_new=options.online)
    return tell(outcome, options)

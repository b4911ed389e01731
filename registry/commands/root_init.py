"""`spm-registry root init`: drafts the first root of a registry."""

import argparse
import time

from registry.commands.ceremony import open_signers, tell
from registry.services.pins import read_key
from registry.services.root_ceremony import begin
from registry.services.root_terms import DEFAULT_BINS
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Draft the root, and adopt it if the keys at hand suffice."""
    keys = [read_key(file) for file in options.files]
    signers = open_signers(options.sign, options.passphrase_fd)
    with using_site(options.root) as site:
        outcome = begin(site, keys, options.threshold, options.bins or DEFAULT_BINS, signers, int(time.time()))
    return tell(outcome, options)

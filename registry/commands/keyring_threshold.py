"""`spm-registry keyring threshold`: says how many core keys must sign a core plugin."""

import argparse
from functools import partial

from registry.commands.ceremony import carry_out
from registry.services.root_terms import with_core_threshold


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    edit = partial(with_core_threshold, threshold=options.number)
    return carry_out(edit, options)

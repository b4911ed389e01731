"""`spm-registry root add-key`: lets one more key sign the root."""

import argparse
from functools import partial

from registry.commands.ceremony import carry_out
from registry.services.pins import read_key
from registry.services.root_terms import with_root_key


def run(options: argparse.Namespace) -> int:
    """Draft it, and adopt it if the keys at hand suffice."""
    edit = partial(with_root_key, key=read_key(options.file))
    return carry_out(edit, options)

"""`spm-registry root discard`: drops a draft."""

import argparse

from registry.commands.output import note, show_json
from registry.services.root_ceremony import discard
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Drop the draft; what is adopted stays."""
    with using_site(options.root) as site:
        folder = discard(site)
    if options.json:
        show_json({"discarded": str(folder)})
    else:
        note(f"Dropped the draft in {folder}; what is adopted stays as it is")
    return 0

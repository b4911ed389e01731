"""`spm-registry upgrade`: brings the database of an older registry to the schema that this program needs."""

import argparse

from registry.commands.output import note, show_json
from registry.storage.site import upgrade_site


def run(options: argparse.Namespace) -> int:
    """Upgrade the database in one transaction, and say what it was."""
    before, after = upgrade_site(options.root)
    if options.json:
        show_json({"root": str(options.root), "before": before, "schema": after})
    elif before == after:
        note(f"{options.root} has the schema {after} already; nothing was changed")
    else:
        note(f"Upgraded {options.root} from the schema {before} to {after}")
    return 0

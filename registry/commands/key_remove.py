"""`spm-registry key remove`: takes a key out of loader.conf."""

import argparse
import time

from registry.commands.output import note, show_json
from registry.services.pins import unpin_key
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Take the key out and say what that does not do yet."""
    with using_site(options.root) as site:
        role = unpin_key(site, options.keyid, int(time.time()))
    if options.json:
        show_json({"keyid": options.keyid, "role": role.value, "loader_conf": str(site.loader_conf)})
    else:
        note(f"Removed the {role.value} key {options.keyid} from {site.loader_conf}")
        note("Every client needs the new file: `spm-registry loader-conf --output loader.conf` writes it", options)
        note("Until a client has it, it goes on loading what this key signed.")
    return 0

"""`spm-registry key add`: pins a public key in loader.conf."""

import argparse
import time

from registry.commands.output import note, show, show_json
from registry.services.pins import pin_key, read_key
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Pin the key and show the lines that were added."""
    with using_site(options.root) as site:
        key = read_key(options.file)
        block = pin_key(site, key, tuple(options.names), int(time.time()))
    if options.json:
        show_json({"keyid": key.keyid, "role": key.role.value, "loader_conf": str(site.loader_conf), "block": block})
    else:
        show(block.rstrip())
        note(f"Added the {key.role.value} key `{key.name}` to {site.loader_conf}")
        note("Every client needs the new file: `spm-registry loader-conf --output loader.conf` writes it", options)
    return 0

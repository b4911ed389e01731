"""`spm-registry key add`: pins a public key in loader.conf."""

import argparse
import json
import sys
import time

from keys.key_files import load_public
from registry.services.setup import pin_key
from registry.storage.site import open_site


def run(options: argparse.Namespace) -> int:
    """Pin the key and show the lines that were added."""
    site = open_site(options.root)
    key = load_public(options.file)
    block = pin_key(site, key, tuple(options.names), int(time.time()))
    if options.json:
        value = {"keyid": key.keyid, "role": key.role.value, "loader_conf": str(site.loader_conf), "block": block}
        print(json.dumps(value, ensure_ascii=False))
    else:
        print(block, end="")
        print(f"Added the {key.role.value} key `{key.name}` to {site.loader_conf}", file=sys.stderr)
        print("Clients need the new file: `spm-registry loader-conf` prints it.", file=sys.stderr)
    return 0

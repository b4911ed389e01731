"""`spm-registry loader-conf`: prints the file that clients need."""

import argparse
import json

from keys.keyring import LoaderConf
from registry.storage.site import open_site


def run(options: argparse.Namespace) -> int:
    """Print loader.conf, once it is known to be a good one."""
    path = open_site(options.root).loader_conf
    LoaderConf.read(path)
    text = path.read_text(encoding="utf-8")
    print(json.dumps({"loader_conf": text}, ensure_ascii=False) if options.json else text, end="")
    if options.json:
        print()
    return 0

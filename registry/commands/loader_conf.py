"""`spm-registry loader-conf`: hands out the file that clients need."""

import argparse
import sys

from keys.keyring import LoaderConf
from registry.commands.output import note, show_json
from registry.services.index_signing import require_root
from registry.services.pins import pin_root
from registry.storage.site import using_site, write_public_file


def run(options: argparse.Namespace) -> int:
    """Print or write loader.conf, once it is known to be a good one."""
    with using_site(options.root) as site:
        with site.database.reading() as records:
            require_root(site, records)
        pin_root(site)
        path = site.loader_conf
    LoaderConf.read(path)
    text = path.read_text(encoding="utf-8")
    if options.output is not None:
        # Not left to the shell's umask: a file that its group may write is refused by every client.
        write_public_file(options.output, text)
    if options.json:
        show_json({"loader_conf": text} | ({"path": str(options.output)} if options.output else {}))
    elif options.output is not None:
        note(f"Wrote {options.output}")
    else:
        sys.stdout.write(text)
    return 0

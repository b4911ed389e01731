"""`spm-registry backup`: makes a second copy of a registry, also while it serves."""

import argparse

from registry.commands.output import note, show_json
from registry.services.trust import trust
from registry.storage.backup import Backup, back_up
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Make the copy and say what it holds."""
    with using_site(options.root) as site:
        with site.database.reading() as records:
            trust(site, records)
        made = back_up(site, options.directory)
    if options.json:
        show_json(_value(options, made))
    else:
        note(f"Backed up {options.root} to {options.directory}: {_counted(made)}")
        if made.linked:
            note(f"{made.linked} of the blobs are hard links: copy {options.directory} to another disk as well.")
        note(f"`spm-registry serve --root {options.directory}` serves it as it is.")
    return 0


def _value(options: argparse.Namespace, made: Backup) -> dict[str, object]:
    return {
        "root": str(options.root),
        "path": str(options.directory),
        "serial": made.serial,
        "releases": made.releases,
        "blobs": made.blobs,
        "blob_bytes": made.blob_bytes,
        "linked": made.linked,
    }


def _counted(made: Backup) -> str:
    releases = "1 release" if made.releases == 1 else f"{made.releases} releases"
    blobs = "1 blob" if made.blobs == 1 else f"{made.blobs} blobs"
    return f"{releases}, {blobs} with {made.blob_bytes} bytes"

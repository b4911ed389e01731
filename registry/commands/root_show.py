"""`spm-registry root show`: shows the adopted root, and what a draft still lacks."""

import argparse
import hashlib
import time

from manifests.errors import NotFound
from registry.commands.ceremony import as_dict, tell_status, tell_to_be_signed, tell_whole, warn
from registry.commands.output import note, show, show_json
from registry.services.endings import endings
from registry.services.root_draft import Adopted
from registry.services.root_state import Ceremony, look_at_copy, look_within
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Print the root, then the draft."""
    found, ends = _found(options)
    if options.json:
        show_json(_value(found, ends))
        return 0
    if found.adopted is not None:
        _show_adopted(found.adopted, options)
    for text in ends:
        note(f"warning: {text}")
    if found.draft is not None:
        tell_to_be_signed(f"Draft in {found.folder}, to be signed", found)
        if options.root is None:
            tell_whole(found)
        tell_status(found.needs)
    return 0


def _found(options: argparse.Namespace) -> tuple[Ceremony, tuple[str, ...]]:
    if options.root is None:
        return look_at_copy(options.draft), ()
    with using_site(options.root) as site, site.database.reading() as records:
        found, ends = look_within(site, records), endings(records, options.root, int(time.time()))
    if found.adopted is None and found.draft is None:
        raise NotFound(
            f"the registry in {options.root} has no root yet",
            hint="make a key with `spm keys new --role root`, then `spm-registry root init FILE.pub`",
        )
    return found, ends


def _value(found: Ceremony, ends: tuple[str, ...]) -> dict[str, object]:
    adopted = None if found.adopted is None else as_dict(found.adopted, found.adopted)
    if adopted is not None:
        adopted["warnings"] += ends
    draft = None if found.draft is None else as_dict(found.draft, found.adopted) | {"folder": str(found.folder)}
    return {"adopted": adopted, "draft": draft}


def _show_adopted(adopted: Adopted, options: argparse.Namespace) -> None:
    value = as_dict(adopted, adopted)
    show(f"root {value['root_version']}, until {value['root_expires']}, threshold {value['threshold']}")
    show(f"  sha256 {hashlib.sha256(adopted.root).hexdigest()}")
    for key in value["keys"]:
        show(f"  {key['keyid']}  {key['name']}".rstrip())
    show(f"targets {value['targets_version']}, until {value['targets_expires']}, keyring {value['keyring_serial']}")
    show(f"online key {value['online_keyid']} signs {value['bins']} bins, snapshot and timestamp")
    warn(value, options)

"""`spm-registry key list`: shows whose signatures are accepted."""

import argparse

from keys.keyring import LoaderConf
from registry.commands.output import show, show_json
from registry.services.pins import Pin, pins
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Print all pinned keys, core keys first."""
    with using_site(options.root) as site:
        found = pins(LoaderConf.read(site.loader_conf))
    if options.json:
        show_json({"keys": [_value(pin) for pin in found]})
        return 0
    for pin in found:
        names = " ".join(pin.names) or "every core plugin"
        show(f"{pin.keyid}  {pin.role.value:<4}  {pin.publisher or '-':<16}  {names}")
    return 0


def _value(pin: Pin) -> dict[str, object]:
    return {"keyid": pin.keyid, "role": pin.role.value, "publisher": pin.publisher, "names": list(pin.names)}

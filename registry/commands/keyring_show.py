"""`spm-registry keyring show`: shows whose plugins clients may load, and what was revoked."""

import argparse

from keys.keyring import LoaderConf
from keys.pinned_keys import Keyring
from keys.root_keyring import RootKeyring
from manifests.errors import NotFound
from registry.commands.output import note, show, show_json
from registry.services.root_changes import shown_revocation
from registry.services.root_state import look
from registry.services.root_terms import keyids_of
from registry.storage.site import using_site


def run(options: argparse.Namespace) -> int:
    """Print the adopted keyring."""
    with using_site(options.root) as site:
        found, pinned = look(site), len(keyids_of(LoaderConf.read(site.loader_conf).keyring))
    if found.adopted is None:
        raise NotFound(
            f"the registry in {options.root} has no root yet, and so no keyring",
            hint="make a key with `spm keys new --role root`, then `spm-registry root init FILE.pub`",
        )
    keyring = RootKeyring.from_bytes(found.adopted.keyring)
    if options.json:
        show_json({"keyring": keyring.to_dict(), "draft": None if found.draft is None else str(found.folder)})
        return 0
    show(f"keyring {keyring.serial} of `{keyring.registry}`, core threshold {keyring.keyring.core_threshold}")
    _show_keys(keyring.keyring)
    if not keyids_of(keyring.keyring):
        note(f"no keys of its own; loader.conf pins {pinned} more (`spm-registry key list`)", options)
    if found.draft is not None:
        note(f"A draft waits in {found.folder}: `spm-registry root show` says what it changes", options)
    return 0


def _show_keys(keyring: Keyring) -> None:
    for core in keyring.core_keys:
        show(f"{core.keyid}  core  {'-':<16}  every core plugin{_until(core.expires)}")
    for ext in keyring.ext_keys:
        show(f"{ext.keyid}  ext   {ext.publisher:<16}  {' '.join(ext.names)}{_until(ext.expires)}")
    for key in keyring.revoked_keys:
        show(f"revoked {shown_revocation(key)}")
    for sha256 in sorted(keyring.revoked_manifests):
        show(f"revoked manifest {sha256}")


def _until(expires: str | None) -> str:
    return "" if expires is None else f"  until {expires}"

"""`spm-registry root sign`: signs a draft, here or on a machine without the registry, and adopts a complete one."""

import argparse
import time
from typing import TYPE_CHECKING

from manifests.errors import UsageError
from registry.commands.ceremony import open_signers, tell, tell_signed_before, tell_to_be_signed, tell_whole
from registry.services.adopted_chain import require_root_digest
from registry.services.root_ceremony import sign, sign_copy
from registry.services.root_state import Ceremony, look, look_at_copy
from registry.storage.site import using_site

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner


def run(options: argparse.Namespace) -> int:
    """Show what is to be signed, then open the keys and sign just that."""
    if options.root is None and options.draft is None:
        raise UsageError(
            "neither a registry nor a copy of its draft is given",
            hint="`--root DIR`, or `--draft DIR` where there is none",
        )
    if options.root is None:
        found = look_at_copy(options.draft)
        signers = _opened(found, options)
        return tell(sign_copy(options.draft, signers, found.draft_there(), int(time.time())), options, signing=found)
    with using_site(options.root) as site:
        found = look(site)
        signers = _opened(found, options)
        outcome = sign(site, signers, int(time.time()), copy=options.draft, shown=found.draft_there())
    return tell(outcome, options, signing=found)


def _opened(found: Ceremony, options: argparse.Namespace) -> "tuple[CryptoSigner, ...]":
    found.draft_there()
    if options.root_sha256 is not None:
        require_root_digest(found.adopted, options.root_sha256)
    if not options.json:
        tell_to_be_signed("To be signed" if options.keys else "The draft", found)
    if options.root is None:
        # With `--json` too, on standard error: the passphrase is asked for after it.
        tell_whole(found)
    signers = open_signers(options.keys, options.passphrase_fd)
    if not options.json:
        tell_signed_before(found, [signer.public_key.keyid for signer in signers])
    return signers

"""What the commands of a ceremony share: opened keys, and what came of a draft in words. Decides nothing."""

import argparse
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keys.key_files import is_encrypted, load_private, load_public
from keys.keyring import LoaderConf
from keys.passphrase import Passphrases
from keys.pinned_keys import Keyring
from manifests.errors import SpmError, UsageError
from registry.commands.draft_text import listed, namer, status, to_be_signed
from registry.commands.output import note, show_json
from registry.services.pins import read_key
from registry.services.root_changes import changes, whole_state
from registry.services.root_draft import Adopted, Draft, Need, expiries, needs, signers_of, terms_of, versions
from registry.services.root_state import Ceremony, Outcome, key_file_to_sign
from registry.services.root_terms import SigningKey, Terms
from registry.storage.site import using_site

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner

ONE_PERSON = "one person alone can change whom every client trusts: the root threshold is 1"
NO_CORE_KEY = (
    "no core key is left in force: hosts refuse every core plugin that is published from now on. "
    "Add one: `spm-registry keyring add FILE.pub`"
)


def open_signers(files: Sequence[Path], passphrase_fd: int | None) -> "tuple[CryptoSigner, ...]":
    """Open private keys, asking for the passphrase of each that has one.

    Raises:
        ConfigPermissions: others than its owner may use one.
        UsageError: one is not there or is a public key, or its passphrase is wrong.
    """
    # Here, so that what only shows needs neither the ceremony nor the client's code that rehearses it.
    from registry.services.root_ceremony import signer_of

    passphrases = Passphrases(passphrase_fd)
    signers = []
    for file in files:
        _require_private(file)
        secret = passphrases.read(f"Passphrase for the key {file}: ") if is_encrypted(file) else None
        signers.append(signer_of(load_private(file, secret)))
    return tuple(signers)


def carry_out(edit: Callable[[Terms], Terms], options: argparse.Namespace) -> int:
    """Draft a change of the terms, adopt it if the keys at hand suffice, and say what came of it."""
    from registry.services.root_ceremony import change

    signers = open_signers(options.sign, options.passphrase_fd)
    with using_site(options.root) as site:
        outcome = change(site, edit, signers, int(time.time()))
    return tell(outcome, options)


def written_keyid(text: str) -> str:
    """Return the key id that is written, whole or its beginning, or that a `.pub` file holds."""
    return read_key(Path(text)).keyid if text.endswith(".pub") else text


def tell(outcome: Outcome, options: argparse.Namespace, *, signing: Ceremony | None = None) -> int:
    """Say what came of a draft, and what is to be done next; `signing` is how it was when `root sign` showed it."""
    value = as_dict(outcome.draft, outcome.before) | {
        "adopted": outcome.is_adopted,
        "draft": None if outcome.is_adopted else str(outcome.folder),
        "dropped_signatures": [key.keyid for key in outcome.dropped],
    }
    value["warnings"] += _core_warnings(outcome, options)
    if options.json:
        show_json(value)
        return 0
    if outcome.dropped:
        note(f"The draft has changed, so that these signatures on it were dropped: {listed(outcome.dropped)}")
    if signing is None:
        for line in changes_in(outcome.draft, outcome.before):
            note(f"  {line}")
    else:
        _tell_signed(signing, outcome)
    if outcome.is_adopted:
        _tell_adopted(outcome, options)
    else:
        _tell_waiting(outcome, options, is_new=signing is None)
    warn(value, options)
    return 0


def _tell_signed(signing: Ceremony, outcome: Outcome) -> None:
    held = {key.keyid for need in signing.needs for key in need.signed}
    signers = signers_of(outcome.draft, outcome.before)
    name = namer(outcome.needs)
    fresh = [name(key) for key in signers if key.keyid not in held]
    if fresh and not outcome.is_adopted:
        need = max(outcome.needs, key=lambda need: need.missing)
        note(f"Signed by {', '.join(fresh)}; {len(need.signed)} of {need.threshold}")


def tell_signed_before(signing: Ceremony, keyids: Sequence[str]) -> None:
    """Say whose key changes nothing, since it had signed all that it can."""
    name = namer(signing.needs)
    for key in signers_of(signing.draft_there(), signing.adopted):
        if key.keyid in keyids:
            note(f"{name(key)} had signed already")


def _tell_adopted(outcome: Outcome, options: argparse.Namespace) -> None:
    what = titled(outcome.draft, outcome.before)
    note(f"Adopted {what}; signed by {listed(signers_of(outcome.draft, outcome.before))}")
    if outcome.is_online_key_dropped:
        note("The old online key was removed from online.key")
    if outcome.before is None:
        note("Every client needs the new file: `spm-registry loader-conf --output loader.conf` writes it", options)
    else:
        note(
            "Clients follow at their next install or `spm trust update`; "
            "hosts that only run plugins do not ask by themselves"
        )


def _tell_waiting(outcome: Outcome, options: argparse.Namespace, *, is_new: bool) -> None:
    if is_new:
        note(f"Drafted {titled(outcome.draft, outcome.before)} in {outcome.folder}")
    tell_status(outcome.needs)
    if any(need.missing for need in outcome.needs):
        file = key_file_to_sign(outcome.needs)
        note(f"Next: `spm-registry root sign {file}`", options)
        if options.root is not None:
            note(f"Or elsewhere, on a copy of {outcome.folder}: `spm-registry root sign {file} --draft COPY`")
    else:
        folder = shlex.quote(str(outcome.folder))
        note(f"It is complete; to adopt it: `spm-registry root sign --draft {folder} --root DIR`")


def tell_status(asked: Sequence[Need]) -> None:
    """Say who has signed and who must."""
    for line in status(asked):
        note(line)


def tell_to_be_signed(head: str, found: Ceremony) -> None:
    """Say what a signature on a draft stands for."""
    draft = found.draft_there()
    note(f"{head} for the registry `{terms_of(draft, found.adopted).keyring.registry}`:")
    for line in to_be_signed(draft, found.adopted):
        note(line)


def tell_whole(found: Ceremony) -> None:
    """Say all that a carried draft would make true: whoever has the registry's host can forge what it changes."""
    draft = found.draft_there()
    note("Once it is adopted, this is all that holds; key ids tell who it is, names are the draft's own words:")
    for line in whole_state(terms_of(draft, found.adopted), *expiries(draft, found.adopted)):
        note(f"  {line}")


def warn(value: dict[str, Any], options: argparse.Namespace) -> None:
    """Say what is unwise."""
    for text in value["warnings"]:
        note(f"warning: {text}", options)


def changes_in(draft: Draft, before: Adopted | None) -> tuple[str, ...]:
    """Return what a draft changes, as lines."""
    return changes(None if before is None else terms_of(before, before), terms_of(draft, before))


def titled(draft: Draft, before: Adopted | None) -> str:
    """Return the documents of a draft with their versions."""
    root, targets, keyring = versions(draft, before)
    return ("" if draft.root is None else f"root {root}, ") + f"targets {targets} and keyring {keyring}"


def as_dict(draft: Draft | Adopted, before: Adopted | None) -> dict[str, Any]:
    """Return documents as programs are told of them."""
    terms, (root, targets, keyring) = terms_of(draft, before), versions(draft, before)
    root_ends, targets_ends = expiries(draft, before)
    value: dict[str, Any] = {
        "root_version": root,
        "root_expires": f"{root_ends:%Y-%m-%dT%H:%M:%SZ}",
        "targets_version": targets,
        "targets_expires": f"{targets_ends:%Y-%m-%dT%H:%M:%SZ}",
        "keyring_serial": keyring,
        "threshold": terms.threshold,
        "keys": [_key(key) for key in terms.root_keys],
        "online_keyid": terms.online.keyid,
        "bins": terms.bins,
        "warnings": list(_root_warnings(terms)),
    }
    if isinstance(draft, Draft):
        value["signed_by"] = [key.keyid for key in signers_of(draft, before)]
        value["needs"] = [_need(need) for need in needs(draft, before)]
        value["changes"] = list(changes_in(draft, before))
    return value


def _key(key: SigningKey) -> dict[str, str]:
    return {"keyid": key.keyid, "name": key.name}


def _need(need: Need) -> dict[str, Any]:
    return {
        "document": need.document,
        "version": need.version,
        "by_root": need.root_version,
        "threshold": need.threshold,
        "signed": [key.keyid for key in need.signed],
        "unsigned": [_key(key) for key in need.unsigned],
        "missing": need.missing,
    }


def _root_warnings(terms: Terms) -> Iterator[str]:
    count = len(terms.root_keys)
    if terms.is_one_persons:
        yield ONE_PERSON
    if terms.needs_every_key:
        more = "a third" if count == 2 else "another"
        yield f"with {count} of {count}, one lost key is the end of this registry's trust: add {more}"


def _core_warnings(outcome: Outcome, options: argparse.Namespace) -> Iterator[str]:
    """Warn of the change that takes the last core key; loader.conf, where it is at hand, may pin others."""
    if outcome.before is None or options.root is None:
        return
    pinned = LoaderConf.read(options.root / "loader.conf").keyring
    before, after = (
        pinned.merged(terms_of(each, outcome.before).keyring.keyring) for each in (outcome.before, outcome.draft)
    )
    if _core_in_force(before) and not _core_in_force(after):
        yield NO_CORE_KEY


def _core_in_force(keyring: Keyring) -> bool:
    return any(keyring.revocation_of(key.keyid) is None for key in keyring.core_keys)


def _require_private(file: Path) -> None:
    try:
        load_public(file)
    except SpmError:
        return
    raise UsageError(
        f"{file}: that is the public half of the key", hint=f"give the private one: {file.with_suffix('.key')}"
    )

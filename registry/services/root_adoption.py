"""A draft becomes what clients follow: held to this registry, then published in one transaction. Signs no draft."""

import hashlib
from dataclasses import replace

from keys.keyring import LoaderConf, RootPin
from manifests.errors import ConfigError
from registry.services import root_draft, root_terms, signed_index
from registry.services.draft_folder import remove_draft
from registry.services.online_key import drop_earlier_online_keys, signer_with
from registry.services.pins import pin_root, text_with_root
from registry.services.root_draft import Adopted, Draft
from registry.services.root_rehearsal import require_followed
from registry.services.root_state import Outcome, look_within
from registry.services.root_terms import Terms
from registry.services.setup import OPERATOR
from registry.services.signed_index import OfflineFiles
from registry.storage.records import Records
from registry.storage.rows import AuditRow
from registry.storage.site import Site


def require_fit(site: Site, records: Records, terms: Terms) -> None:
    """Hold terms to this registry and its loader.conf, which clients read together with the keyring."""
    if terms.keyring.registry != records.registry_id():
        raise ConfigError(f"the draft is for the registry `{terms.keyring.registry}`, not `{records.registry_id()}`")
    pinned = LoaderConf.read(site.loader_conf).keyring
    pinned.merged(terms.keyring.keyring)
    root_terms.require_unpinned(terms, pinned)


def adopt(site: Site, records: Records, draft: Draft, adopted: Adopted | None, now: int) -> None:
    """Publish a draft that enough keys have signed.

    Raises:
        SpmError: a client would not accept it, or it does not fit this registry.
    """
    done, terms = root_draft.finished(draft, adopted, now), root_draft.terms_of(draft, adopted)
    require_fit(site, records, terms)
    if done.root is not None:
        text_with_root(site, _pin(done.root, root_draft.versions(done, adopted)[0]))
    is_same_keyring = adopted is not None and adopted.keyring == done.keyring
    files = OfflineFiles(root=done.root, targets=done.targets, keyring=None if is_same_keyring else done.keyring)
    publish = signed_index.found if adopted is None else signed_index.replace
    publish(records, files, signer_with(site, terms.online.keyid), now)
    require_followed(records, _trusted_root(done, adopted), done.keyring, now)
    records.add_audit(_row(draft, adopted, now, records.serial()))


def ended(site: Site, outcome: Outcome) -> Outcome:
    """Tidy up after the commit: a draft that is adopted goes, and loader.conf pins the new root.

    Whoever is cut short before leaves no harm: such a draft is known by what it says, and `serve` pins the root
    and drops the old online key too.
    """
    if not outcome.is_adopted:
        return outcome
    with site.database.writing() as records:
        records.await_turn()
        # Somebody else may have begun the next one already.
        if look_within(site, records).draft is None:
            remove_draft(outcome.folder)
        is_dropped = drop_earlier_online_keys(site, signed_index.online_keyid(records))
    pin_root(site)
    return replace(outcome, is_online_key_dropped=is_dropped)


def _trusted_root(done: Draft, adopted: Adopted | None) -> bytes:
    root = done.root if adopted is None else adopted.root
    if root is None:
        raise LookupError("a first root is in its draft")
    return root


def _pin(root: bytes, version: int) -> RootPin:
    return RootPin(version=version, sha256=hashlib.sha256(root).hexdigest())


def _row(draft: Draft, adopted: Adopted | None, now: int, serial: int) -> AuditRow:
    root, targets, keyring = root_draft.versions(draft, adopted)
    signed_by = " ".join(key.keyid for key in root_draft.signers_of(draft, adopted))
    is_root = draft.root is not None
    return AuditRow(
        at=now,
        actor=OPERATOR,
        action="root-adopt" if is_root else "keyring-adopt",
        subject=f"root {root}" if is_root else f"keyring {keyring}",
        detail=f"targets {targets}, keyring {keyring}, signed by {signed_by}",
        serial=serial,
    )

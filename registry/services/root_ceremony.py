"""The ceremony: drafts of root, targets and keyring are begun, changed, signed and adopted. Holds no rules of its own.

A draft lies in `<registry>/ceremony/` until enough root keys have signed it. Then it is held to what clients will ask
of it, and takes the place of the adopted documents in one transaction. Whatever is refused changes nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from securesystemslib.signer import CryptoSigner, Signer, SSlibKey

from keys.key_files import PublicKeyFile
from keys.public_key import KeyId, keyid_of
from keys.root_keyring import RootKeyring
from manifests.errors import Mix, UsageError
from registry.services import root_draft, root_terms, signed_index
from registry.services.draft_folder import holds_draft, no_draft, read_draft, remove_draft, write_draft
from registry.services.index_signing import require_root
from registry.services.online_key import add_online_key, newest_online_key
from registry.services.root_adoption import adopt, ended, require_fit
from registry.services.root_draft import Draft
from registry.services.root_state import (
    Ceremony,
    Outcome,
    folder_of,
    key_file_to_sign,
    look_at_copy,
    look_within,
    require_complete,
)
from registry.services.root_terms import DEFAULT_BINS, SigningKey, Terms
from registry.storage.records import Records
from registry.storage.site import Site

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


def begin(
    site: Site, keys: Sequence[PublicKeyFile], threshold: int, bins: int, signers: Sequence[Signer], now: int
) -> Outcome:
    """Draft the first root of a registry.

    Raises:
        UsageError: there is one, or a draft of one; or the keys do not do.
    """
    with _acting(site, signers, now) as act:
        _require_none(act.found)
        keyring = RootKeyring.empty(act.records.registry_id())
        online = _signing_key(newest_online_key(site))
        outcome = act.settle(act.drafted(root_terms.first_terms(keys, threshold, bins, online, keyring)))
    return ended(site, outcome)


def change(site: Site, edit: Callable[[Terms], Terms], signers: Sequence[Signer], now: int) -> Outcome:
    """Change the terms in the draft, which is begun where there is none; signatures on it are dropped.

    Raises:
        ConfigError: there is no root yet.
        UsageError: nothing would change.
    """
    with _acting(site, signers, now) as act:
        terms = act.terms()
        edited = edit(terms)
        if edited == terms:
            raise UsageError("nothing would change: it is so already")
        outcome = act.settle(act.drafted(edited))
    return ended(site, outcome)


def rotate(site: Site, threshold: int | None, signers: Sequence[Signer], now: int, *, is_online_new: bool) -> Outcome:
    """Draft a root that ends later, with another threshold or another online key if that is asked for.

    Raises:
        ConfigError: there is no root yet.
        UsageError: the threshold cannot be met.
    """
    with _acting(site, signers, now) as act:
        draft = act.drafted(root_terms.with_root_threshold(act.terms(), threshold))
        if is_online_new:
            # Whoever may not sign is refused before there is another key on disk.
            act.signed(draft)
            terms = root_draft.terms_of(draft, act.found.adopted)
            draft = act.drafted(root_terms.with_online_key(terms, _new_online_key(act, terms)))
        outcome = act.settle(draft)
    return ended(site, outcome)


def sign(
    site: Site, signers: Sequence[Signer], now: int, *, copy: Path | None = None, shown: Draft | None = None
) -> Outcome:
    """Add signatures to the draft, also those of a carried copy; adopt it once they suffice.

    Raises:
        NotFound: there is no draft.
        Mix: the copy is of another draft, or the draft is no longer the one that was shown.
        ThresholdNotMet: nobody signed, and what there is does not suffice.
    """
    with _acting(site, signers, now) as act:
        draft = act.found.draft_there()
        _require_shown(act.found, shown)
        root_draft.require_whole(draft, act.found.adopted)
        root_draft.require_in_force(draft, act.found.adopted, now)
        joined = draft if copy is None else _joined(act.found, copy)
        if joined == draft and not signers:
            require_complete(act.found)
        outcome = act.settle(joined)
    return ended(site, outcome)


def sign_copy(folder: Path, signers: Sequence[Signer], shown: Draft, now: int) -> Outcome:
    """Add signatures to a carried draft, on a machine without the registry.

    Raises:
        Mix: the draft is no longer the one that was shown.
        ThresholdNotMet: nobody signed, and what there is does not suffice.
        RootExpired: it has ended.
        ConfigSyntax: it would outlive what is signed today.
    """
    found = look_at_copy(folder)
    _require_shown(found, shown)
    if not signers:
        require_complete(found)
    draft = found.draft_there()
    root_draft.require_in_force(draft, found.adopted, now)
    for signer in signers:
        draft = root_draft.sign(draft, found.adopted, signer)
    write_draft(folder, draft, found.adopted)
    return Outcome(folder=folder, before=found.adopted, draft=draft, is_adopted=False)


def discard(site: Site) -> Path:
    """Drop the draft, whatever it says.

    Raises:
        NotFound: there is none.
    """
    with site.database.writing() as records:
        records.await_turn()
        if not holds_draft(folder_of(site)):
            raise no_draft(folder_of(site))
        remove_draft(folder_of(site))
    return folder_of(site)


def found_root(
    site: Site, keys: "Sequence[tuple[PublicKeyFile, EllipticCurvePrivateKey]]", threshold: int, now: int
) -> Outcome:
    """Give a registry its first root in one step, where all the keys are at hand."""
    signers = [signer_of(private) for _, private in keys]
    return begin(site, [public for public, _ in keys], threshold, DEFAULT_BINS, signers, now)


def signer_of(private_key: "EllipticCurvePrivateKey") -> CryptoSigner:
    """Return what signs metadata with a private key, under the key id that spm knows it by."""
    public_key = private_key.public_key()
    return CryptoSigner(private_key, SSlibKey.from_crypto(public_key, keyid=keyid_of(public_key)))


def _require_none(found: Ceremony) -> None:
    if found.adopted is not None:
        raise UsageError(
            f"this registry has a root already, version {root_draft.versions(found.adopted, None)[0]}",
            hint="`spm-registry root rotate` renews it; `root add-key` and `root remove-key` change its keys",
        )
    if found.draft is not None:
        raise UsageError(
            f"a draft of the first root waits in {found.folder}",
            hint=f"`spm-registry root sign {key_file_to_sign(found.needs)}` signs it, "
            "`spm-registry root discard` drops it",
        )


def _require_shown(found: Ceremony, shown: Draft | None) -> None:
    if shown is not None and not found.draft_there().says_the_same_as(shown):
        raise Mix(f"the draft in {found.folder} was changed meanwhile", hint="look at it again, then sign")


def _joined(found: Ceremony, copy: Path) -> Draft:
    draft, other = found.draft_there(), read_draft(copy)
    if not draft.says_the_same_as(other):
        raise Mix(
            f"the draft in {copy} is not a copy of the one in {found.folder}",
            hint="copy that one, and have it signed again",
        )
    return root_draft.with_signatures_of(draft, other, found.adopted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Act:
    """One command on the draft, inside the transaction for which all others wait."""

    site: Site
    records: Records
    found: Ceremony
    signers: Sequence[Signer]
    now: int

    def terms(self) -> Terms:
        """Return what the draft says, or else what is adopted."""
        if self.found.draft is not None:
            root_draft.require_whole(self.found.draft, self.found.adopted)
            return root_draft.terms_of(self.found.draft, self.found.adopted)
        require_root(self.site, self.records)
        if self.found.adopted is None:
            raise LookupError("a registry with a root has adopted it")
        return root_draft.terms_of(self.found.adopted, self.found.adopted)

    def drafted(self, terms: Terms) -> Draft:
        require_fit(self.site, self.records, terms)
        return root_draft.build(terms, self.found.adopted, self.now)

    def signed(self, draft: Draft) -> Draft:
        for signer in self.signers:
            draft = root_draft.sign(draft, self.found.adopted, signer)
        return draft

    def settle(self, draft: Draft) -> Outcome:
        """Sign, then adopt what is complete, else keep it."""
        dropped = self._dropped(draft)
        draft, folder = self.signed(draft), self.found.folder
        is_complete = root_draft.is_complete(draft, self.found.adopted)
        if is_complete:
            adopt(self.site, self.records, draft, self.found.adopted, self.now)
        # Also where it is adopted, which holds only once all is committed: it may be cut short before.
        write_draft(folder, draft, self.found.adopted)
        return Outcome(folder=folder, before=self.found.adopted, draft=draft, is_adopted=is_complete, dropped=dropped)

    def _dropped(self, draft: Draft) -> tuple[SigningKey, ...]:
        before = self.found.draft
        if before is None or before.says_the_same_as(draft):
            return ()
        return root_draft.signers_of(before, self.found.adopted)


@contextmanager
def _acting(site: Site, signers: Sequence[Signer], now: int) -> Iterator[_Act]:
    with site.database.writing() as records:
        records.await_turn()
        yield _Act(site=site, records=records, found=look_within(site, records), signers=signers, now=now)


def _new_online_key(act: _Act, terms: Terms) -> SigningKey:
    is_adopted = act.found.adopted is not None
    in_use = signed_index.online_keyid(act.records) if is_adopted else terms.online.keyid
    return _signing_key(add_online_key(act.site, in_use))


def _signing_key(key: SSlibKey) -> SigningKey:
    return SigningKey(keyid=KeyId(key.keyid), public_key_pem=str(key.keyval["public"]).encode())

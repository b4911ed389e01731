"""The documents of a ceremony: built from terms, signed, and held to what clients will ask of them. Touches no file.

A new root counts once the threshold of the root before it and its own have signed; the targets, once its own has.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from securesystemslib.signer import Key, Signer, SSlibKey
from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Delegations, Metadata, Role, Root, SuccinctRoles, T, TargetFile, Targets
from tuf.api.serialization.json import CanonicalJSONSerializer

from keys.public_key import KeyId, keyid_of_pem, load_public_key
from keys.root_keyring import KEYRING_TARGET, RootKeyring
from keys.shown import shown as quoted
from keys.trust_policy import REGISTRY_MEMBER
from keys.trust_state import MOMENT
from manifests.errors import ConfigSyntax, KeyUnknown, RootExpired, ThresholdNotMet
from registry.services.root_terms import SigningKey, Terms
from registry.services.signed_index import BIN_PREFIX, ROOT_SECONDS, TARGETS_SECONDS, moment

LEEWAY_SECONDS = 2 * 86_400
"""By how much the clocks of the registry and of a signer's machine may differ."""
_KEY_NAME = "x-spm-name"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """The documents that clients follow now, as they are served."""

    root: bytes
    targets: bytes
    keyring: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """The documents that are being signed. Without a root, the adopted one stays."""

    root: bytes | None
    targets: bytes
    keyring: bytes

    def says_the_same_as(self, other: "Draft") -> bool:
        """Tell whether both are the same but for signatures."""
        return _payloads(self) == _payloads(other)


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """How many keys of one root must sign a document, and which have."""

    document: str
    version: int
    root_version: int
    threshold: int
    signed: tuple[SigningKey, ...]
    unsigned: tuple[SigningKey, ...]

    @property
    def missing(self) -> int:
        """Return how many more keys must sign."""
        return max(0, self.threshold - len(self.signed))


def build(terms: Terms, adopted: Adopted | None, now: int) -> Draft:
    """Return the unsigned documents that follow the adopted ones."""
    return _build(terms, adopted, moment(now + ROOT_SECONDS), moment(now + TARGETS_SECONDS))


def terms_of(draft: Draft | Adopted, adopted: Adopted | None) -> Terms:
    """Return what documents decide.

    Raises:
        ConfigSyntax: they decide it in another way than a ceremony does.
    """
    root, targets = root_of(draft, adopted).signed, _parsed(draft.targets, Targets).signed
    roles = targets.delegations.succinct_roles if targets.delegations else None
    if roles is None:
        raise ConfigSyntax("the targets hand nothing to bins")
    if type(root.roles[Root.type].threshold) is not int:
        raise ConfigSyntax("the root's threshold is no whole number")
    keyring = RootKeyring.from_bytes(draft.keyring)
    for signed in (root, targets):
        _require_bound(signed, keyring.registry)
    return Terms(
        root_keys=tuple(_key_of(root, keyid) for keyid in root.roles[Root.type].keyids),
        threshold=root.roles[Root.type].threshold,
        online=_key_of(root, next(iter(root.roles["timestamp"].keyids), "")),
        bins=roles.number_of_bins,
        keyring=keyring,
        renews_root=isinstance(draft, Draft) and draft.root is not None,
    )


def sign(draft: Draft, adopted: Adopted | None, signer: Signer) -> Draft:
    """Add one key's signature to each document that it may sign.

    Raises:
        KeyUnknown: it may sign none.
    """
    keyid = signer.public_key.keyid
    asked = {need.document for need in needs(draft, adopted) if keyid in _keyids(need)}
    if not asked:
        raise KeyUnknown(
            f"the key {keyid} signs nothing here: it is a root key neither before nor after this change",
            hint="`spm-registry root show` lists the keys that sign",
            keyid=keyid,
        )
    root, targets = draft.root, _parsed(draft.targets, Targets)
    if root is not None and Root.type in asked:
        signed = _parsed(root, Root)
        signed.sign(signer, append=True)
        root = signed.to_bytes()
    if Targets.type in asked:
        targets.sign(signer, append=True)
    return replace(draft, root=root, targets=targets.to_bytes())


def needs(draft: Draft, adopted: Adopted | None) -> tuple[Need, ...]:
    """Return who must sign what, and who has."""
    asked: list[tuple[str, Root, Metadata[Root] | Metadata[Targets]]] = []
    new = root_of(draft, adopted)
    if draft.root is not None:
        asked += [(Root.type, root.signed, new) for root in (*_root_before(adopted), new)]
    asked.append((Targets.type, new.signed, _parsed(draft.targets, Targets)))
    return tuple(_need(document, root, metadata) for document, root, metadata in asked)


def is_complete(draft: Draft, adopted: Adopted | None) -> bool:
    """Tell whether enough keys have signed everything."""
    return not any(need.missing for need in needs(draft, adopted))


def signers_of(draft: Draft, adopted: Adopted | None) -> tuple[SigningKey, ...]:
    """Return every key that has signed, each once."""
    signed = {key.keyid: key for need in needs(draft, adopted) for key in need.signed}
    return tuple(signed.values())


def with_signatures_of(draft: Draft, other: Draft, adopted: Adopted | None) -> Draft:
    """Take over the good signatures of a copy that says the same."""
    root = draft.root
    if root is not None and other.root is not None:
        root = _joined(_parsed(root, Root), _parsed(other.root, Root), _signed(Root.type, other, adopted))
    mine, theirs = _parsed(draft.targets, Targets), _parsed(other.targets, Targets)
    return replace(draft, root=root, targets=_joined(mine, theirs, _signed(Targets.type, other, adopted)))


def finished(draft: Draft, adopted: Adopted | None, now: int) -> Draft:
    """Return a draft as clients will get it, once they will accept it.

    Raises:
        ThresholdNotMet: too few keys have signed.
        RootExpired: it was signed too long ago.
        ConfigSyntax: it says more or less than a ceremony decides, or does not follow what is adopted.
    """
    require_whole(draft, adopted)
    for need in needs(draft, adopted):
        if need.missing:
            raise _short(need)
    require_in_force(draft, adopted, now)
    root = None if draft.root is None else _kept(_parsed(draft.root, Root), _signed(Root.type, draft, adopted))
    targets = _kept(_parsed(draft.targets, Targets), _signed(Targets.type, draft, adopted))
    return replace(draft, root=root, targets=targets)


def require_whole(draft: Draft, adopted: Adopted | None) -> None:
    """Accept documents that are, word for word, what their terms come to after the adopted ones.

    Raises:
        ConfigSyntax: they are not.
    """
    terms, (root_ends, targets_ends) = terms_of(draft, adopted), expiries(draft, adopted)
    before = None if adopted is None else terms_of(adopted, adopted)
    is_other = before is not None and (before.bins, before.keyring.registry) != (terms.bins, terms.keyring.registry)
    if is_other or not draft.says_the_same_as(_build(terms, adopted, root_ends, targets_ends)):
        raise ConfigSyntax(
            "the draft does not fit together, or does not follow what is adopted now",
            hint="drop it with `spm-registry root discard` and begin again",
        )


def require_in_force(draft: Draft, adopted: Adopted | None, now: int) -> None:
    """Accept a draft that ends neither before now nor after the life that a ceremony gives.

    Raises:
        RootExpired: it has ended.
        ConfigSyntax: it would outlive what is signed today.
    """
    root_ends, targets_ends = expiries(draft, adopted)
    for document, expires, seconds in (("root", root_ends, ROOT_SECONDS), ("targets", targets_ends, TARGETS_SECONDS)):
        times = f"end at {expires:{MOMENT}}, and it is {moment(now):{MOMENT}}"
        if expires <= moment(now):
            raise RootExpired(
                f"the draft would {times}", hint="drop it with `spm-registry root discard` and begin again"
            )
        # A root that stays was held to its end when it was adopted.
        is_new = document != Root.type or draft.root is not None
        if is_new and expires - moment(now) > timedelta(seconds=seconds + LEEWAY_SECONDS):
            raise ConfigSyntax(
                f"the {document} of the draft would {times}: more than the {seconds // 86_400} days that it may live",
                hint="look at this machine's clock (`date -u`); if it is right, the draft was not made by "
                "`spm-registry`: sign nothing",
            )


def expiries(draft: Draft | Adopted, adopted: Adopted | None) -> tuple[datetime, datetime]:
    """Return when root and targets end."""
    return root_of(draft, adopted).signed.expires, _parsed(draft.targets, Targets).signed.expires


def root_of(draft: Draft | Adopted, adopted: Adopted | None) -> Metadata[Root]:
    """Return the root that clients will follow once a draft is adopted."""
    data = draft.root if draft.root is not None or adopted is None else adopted.root
    if data is None:
        raise ConfigSyntax("a first draft needs a root")
    return _parsed(data, Root)


def versions(draft: Draft | Adopted, adopted: Adopted | None) -> tuple[int, int, int]:
    """Return the versions of root, targets and keyring."""
    targets, keyring = _parsed(draft.targets, Targets), RootKeyring.from_bytes(draft.keyring)
    return root_of(draft, adopted).signed.version, targets.signed.version, keyring.serial


def _build(terms: Terms, adopted: Adopted | None, root_ends: datetime, targets_ends: datetime) -> Draft:
    root_version = 1 if adopted is None else _parsed(adopted.root, Root).signed.version + 1
    targets_version = 1 if adopted is None else _parsed(adopted.targets, Targets).signed.version + 1
    keyring = _following(terms.keyring, adopted).to_bytes()
    root = Metadata(_root(terms, root_version, root_ends)).to_bytes() if terms.renews_root else None
    targets = Metadata(_targets(terms, keyring, targets_version, targets_ends)).to_bytes()
    return Draft(root=root, targets=targets, keyring=keyring)


def _following(keyring: RootKeyring, adopted: Adopted | None) -> RootKeyring:
    """Return the keyring with the serial that is its turn, however often the draft was changed."""
    if adopted is None:
        return keyring
    before = RootKeyring.from_bytes(adopted.keyring)
    same = replace(keyring, serial=before.serial)
    return before if same == before else same.following()


def _root(terms: Terms, version: int, expires: datetime) -> Root:
    keys: dict[str, Key] = {key.keyid: _tuf_key(key) for key in (*terms.root_keys, terms.online)}
    offline = [str(key.keyid) for key in terms.root_keys]
    roles = {name: Role(list(offline), terms.threshold) for name in (Root.type, Targets.type)}
    roles |= {name: Role([terms.online.keyid], 1) for name in ("snapshot", "timestamp")}
    return Root(
        version=version,
        expires=expires,
        keys=keys,
        roles=roles,
        consistent_snapshot=True,
        unrecognized_fields={REGISTRY_MEMBER: terms.keyring.registry},
    )


def _targets(terms: Terms, keyring: bytes, version: int, expires: datetime) -> Targets:
    bins = SuccinctRoles([terms.online.keyid], 1, terms.bins.bit_length() - 1, BIN_PREFIX)
    listed = TargetFile(len(keyring), {"sha256": hashlib.sha256(keyring).hexdigest()}, KEYRING_TARGET)
    return Targets(
        version=version,
        expires=expires,
        targets={KEYRING_TARGET: listed},
        delegations=Delegations({terms.online.keyid: _tuf_key(terms.online)}, succinct_roles=bins),
        unrecognized_fields={REGISTRY_MEMBER: terms.keyring.registry},
    )


def _tuf_key(key: SigningKey) -> Key:
    made = SSlibKey.from_crypto(load_public_key(key.public_key_pem), keyid=key.keyid)
    if key.name:
        made.unrecognized_fields[_KEY_NAME] = key.name
    return made


def _require_bound(signed: Root | Targets, registry: str) -> None:
    """Refuse what is not bound to one registry: with one root key for two, one's root would do for the other."""
    bound = signed.unrecognized_fields.get(REGISTRY_MEMBER)
    if bound != registry:
        whose = "no registry" if bound is None else f"the registry {quoted(bound)}"
        raise ConfigSyntax(
            f"`{signed.type}` is bound to {whose}, and its keyring to `{registry}`",
            hint="drop the draft with `spm-registry root discard` and begin again",
        )


def _key_of(root: Root, keyid: str) -> SigningKey:
    key = root.keys.get(keyid)
    pem = b"" if key is None else str(key.keyval.get("public")).encode()
    if key is None or keyid_of_pem(pem) != keyid:
        raise ConfigSyntax(f"the root has no key whose id is {keyid!r:.80}")
    name = key.unrecognized_fields.get(_KEY_NAME, "")
    # It is printed beside the key id, in the hour when people decide by what they read.
    if not isinstance(name, str) or (name and not _NAME.fullmatch(name)):
        raise ConfigSyntax(f"the root gives the key {keyid} a name that is none")
    return SigningKey(keyid=KeyId(keyid), public_key_pem=pem, name=name)


def _root_before(adopted: Adopted | None) -> tuple[Metadata[Root], ...]:
    return () if adopted is None else (_parsed(adopted.root, Root),)


def _need(document: str, root: Root, metadata: Metadata[Root] | Metadata[Targets]) -> Need:
    result = root.get_verification_result(document, metadata.signed_bytes, metadata.signatures)
    order = root.roles[document].keyids
    return Need(
        document=document,
        version=metadata.signed.version,
        root_version=root.version,
        threshold=result.threshold,
        signed=tuple(_key_of(root, keyid) for keyid in order if keyid in result.signed),
        unsigned=tuple(_key_of(root, keyid) for keyid in order if keyid in result.unsigned),
    )


def _keyids(need: Need) -> frozenset[str]:
    return frozenset(key.keyid for key in (*need.signed, *need.unsigned))


def _signed(document: str, draft: Draft, adopted: Adopted | None) -> frozenset[str]:
    found = (need for need in needs(draft, adopted) if need.document == document)
    return frozenset(key.keyid for need in found for key in need.signed)


def _joined(mine: Metadata[T], theirs: Metadata[T], good: frozenset[str]) -> bytes:
    mine.signatures |= {keyid: theirs.signatures[keyid] for keyid in sorted(good)}
    return mine.to_bytes()


def _kept(metadata: Metadata[T], good: frozenset[str]) -> bytes:
    metadata.signatures = {keyid: metadata.signatures[keyid] for keyid in sorted(good)}
    return metadata.to_bytes()


def _payloads(draft: Draft) -> tuple[bytes, ...]:
    root = b"" if draft.root is None else _parsed(draft.root, Root).signed_bytes
    return root, _parsed(draft.targets, Targets).signed_bytes, draft.keyring


def _parsed(data: bytes, kind: type[T]) -> Metadata[T]:
    try:
        metadata = Metadata[T].from_bytes(data)
        # JSON that is read is not always JSON that can be signed: a fraction, or half of a surrogate pair.
        CanonicalJSONSerializer().serialize(metadata.signed)
    except (RepositoryError, RecursionError) as error:
        # The library's words quote the draft's, and are read on a terminal in the hour of signing.
        why = f": {ascii(str(error)[:200])[1:-1]}" if str(error) else ""
        raise ConfigSyntax(f"the {kind.type} of the draft cannot be read{why}") from error
    if not isinstance(metadata.signed, kind):
        raise ConfigSyntax(f"the {kind.type} of the draft is a {quoted(metadata.signed.type)}")
    return metadata


def _short(need: Need) -> ThresholdNotMet:
    return ThresholdNotMet(
        f"{need.document} {need.version} has {len(need.signed)} of the {need.threshold} signatures that "
        f"root {need.root_version} asks for",
        threshold=need.threshold,
        signed=[key.keyid for key in need.signed],
    )

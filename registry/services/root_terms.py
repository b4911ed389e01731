"""What a ceremony decides, and the rules for changing it. Builds no metadata and touches no file.

The same keys and threshold stand over root and targets; one online key stands over all else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from keys.key_files import PublicKeyFile
from keys.pinned_keys import Keyring, RevocationReason, RevokedKey
from keys.public_key import KeyId, KeyRole
from keys.root_keyring import RootKeyring
from manifests.errors import KeyRoleMismatch, NotFound, UsageError

MAX_ROOT_KEYS = 64
MAX_BINS = 1 << 14
DEFAULT_BINS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A public key that signs the index; a root key has the name that its owner gave it."""

    keyid: KeyId
    public_key_pem: bytes
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Who signs what from now on, and whose plugins clients may load."""

    root_keys: tuple[SigningKey, ...]
    threshold: int
    online: SigningKey
    bins: int
    keyring: RootKeyring
    renews_root: bool

    def __post_init__(self) -> None:
        """Refuse terms that nobody could meet, or by which one key would do for two."""
        _require_threshold(self.threshold, len(self.root_keys))
        _require_bins(self.bins)
        _require_apart(self)

    @property
    def needs_every_key(self) -> bool:
        """Tell whether the first key that is lost is one too many, although there are several."""
        return self.threshold == len(self.root_keys) > 1

    @property
    def is_one_persons(self) -> bool:
        """Tell whether one root key alone changes everything."""
        return self.threshold == 1


def first_terms(
    keys: Sequence[PublicKeyFile], threshold: int, bins: int, online: SigningKey, keyring: RootKeyring
) -> Terms:
    """Return the terms of a first root."""
    return Terms(
        root_keys=tuple(_root_key(key) for key in keys),
        threshold=threshold,
        online=online,
        bins=bins,
        keyring=keyring,
        renews_root=True,
    )


def with_root_key(terms: Terms, key: PublicKeyFile) -> Terms:
    """Let one more key sign as root; the threshold stays.

    Raises:
        KeyRoleMismatch: it is not a key of the role root, or it is used for something else.
        UsageError: it is a root key already.
    """
    return replace(terms, root_keys=(*terms.root_keys, _root_key(key)), renews_root=True)


def without_root_key(terms: Terms, keyid: str) -> Terms:
    """Take a key out of the root.

    Raises:
        NotFound: it is no root key.
        UsageError: too few would be left for the threshold.
    """
    kept = tuple(key for key in terms.root_keys if key.keyid != keyid)
    if len(kept) == len(terms.root_keys):
        raise NotFound(f"there is no root key {keyid!r:.80}", hint="`spm-registry root show` lists them")
    if len(kept) < terms.threshold:
        raise _too_few_left(keyid, len(kept), terms.threshold)
    return replace(terms, root_keys=kept, renews_root=True)


def with_root_threshold(terms: Terms, threshold: int | None) -> Terms:
    """Sign the root anew, with another threshold if one is given.

    Raises:
        UsageError: it is below 1, or above the number of keys.
    """
    return replace(terms, threshold=terms.threshold if threshold is None else threshold, renews_root=True)


def with_online_key(terms: Terms, online: SigningKey) -> Terms:
    """Let another key sign timestamp, snapshot and bins."""
    return replace(terms, online=online, renews_root=True)


def with_keyring_key(terms: Terms, key: PublicKeyFile, names: tuple[str, ...], expires: str | None) -> Terms:
    """Let clients load what a publisher's key signs.

    Raises:
        UsageError: it is there already, or a root key, or the names do not fit its role.
    """
    return replace(terms, keyring=terms.keyring.with_key(key, names, expires))


def without_keyring_key(terms: Terms, keyid: str) -> Terms:
    """Take a key out of the keyring; what it signed loads no longer, unless loader.conf pins it.

    Raises:
        SpmError: it is not there, or too few core keys would be left.
    """
    return replace(terms, keyring=terms.keyring.without_key(KeyId(keyid)))


def with_revoked_key(terms: Terms, keyid: str, reason: RevocationReason, since: str | None, now: int) -> Terms:
    """Revoke a key wherever it is pinned; a retired one keeps what it signed before `since`, which is now if not given.

    Raises:
        UsageError: it is a root key, or a moment is given for a compromised key.
    """
    if keyid in {key.keyid for key in terms.root_keys}:
        raise UsageError(
            f"the key {keyid} is a root key, and the keyring revokes keys that sign plugins",
            hint=f"`spm-registry root remove-key {keyid}`",
        )
    if reason is RevocationReason.COMPROMISED and since is not None:
        raise UsageError(
            "a compromised key is revoked for all that it ever signed: its thief can write any date",
            hint="leave out `--since`, or give the reason `retired`",
        )
    if reason is RevocationReason.RETIRED and since is None:
        since = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%SZ}"
    revoked = RevokedKey(keyid=KeyId(keyid), reason=reason, since=since)
    return replace(terms, keyring=terms.keyring.with_revoked(revoked))


def with_revoked_manifest(terms: Terms, sha256: str) -> Terms:
    """Revoke one signed variant."""
    return replace(terms, keyring=terms.keyring.with_revoked_manifest(sha256))


def with_core_threshold(terms: Terms, threshold: int) -> Terms:
    """Say how many core keys must have signed a core plugin."""
    return replace(terms, keyring=terms.keyring.with_threshold(threshold))


def require_unpinned(terms: Terms, pinned: Keyring) -> None:
    """Refuse a key of the index that loader.conf lets sign plugins.

    Raises:
        KeyRoleMismatch: there is one.
    """
    index = [key.keyid for key in (*terms.root_keys, terms.online)]
    _refuse_shared(index, keyids_of(pinned), "a key of loader.conf, which signs plugins")


def keyids_of(keyring: Keyring) -> tuple[KeyId, ...]:
    """Return the ids of all keys by which a keyring lets plugins be signed."""
    return (*(key.keyid for key in keyring.core_keys), *(key.keyid for key in keyring.ext_keys))


def _root_key(key: PublicKeyFile) -> SigningKey:
    if key.role is not KeyRole.ROOT:
        raise KeyRoleMismatch(
            f"the key `{key.name}` is of the role {key.role.value}, and only a key of the role root signs the root",
            hint="make one with `spm keys new --role root`",
            keyid=key.keyid,
            role=key.role.value,
            expected=KeyRole.ROOT.value,
        )
    return SigningKey(keyid=key.keyid, public_key_pem=key.public_key_pem, name=key.name)


def _require_threshold(threshold: int, keys: int) -> None:
    if not 1 <= threshold <= keys:
        raise UsageError(
            f"a threshold of {threshold} cannot be met by {_counted(keys)}",
            hint=f"choose a threshold from 1 to {keys}, or add keys first" if keys else "give at least one root key",
        )
    if keys > MAX_ROOT_KEYS:
        raise UsageError(f"{keys} root keys are more than the {MAX_ROOT_KEYS} allowed")


def _require_bins(bins: int) -> None:
    if not 2 <= bins <= MAX_BINS or bins & (bins - 1):
        raise UsageError(
            f"{bins} is not a number of bins: a power of two from 2 to {MAX_BINS}",
            hint=f"leave it out for {DEFAULT_BINS}, enough for some 10,000 plugins",
        )


def _require_apart(terms: Terms) -> None:
    """Hold every key against all others: one that does for two would let one theft do for two."""
    root_keyids = [key.keyid for key in terms.root_keys]
    for key in terms.root_keys:
        if root_keyids.count(key.keyid) > 1:
            raise UsageError(f"the key {key.keyid} (`{key.name}`) is a root key already")
    _refuse_shared(root_keyids, (terms.online.keyid,), "the online key, which the registry's host can use")
    index = (*root_keyids, terms.online.keyid)
    _refuse_shared(index, keyids_of(terms.keyring.keyring), "a key of the keyring, which signs plugins")


def _refuse_shared(index: Iterable[KeyId], others: Iterable[KeyId], what: str) -> None:
    shared = sorted({*index} & {*others})
    if shared:
        raise KeyRoleMismatch(
            f"the key {shared[0]} cannot sign the index: it is {what}",
            hint="make a key for each purpose with `spm keys new`",
            keyid=shared[0],
        )


def _too_few_left(keyid: str, left: int, threshold: int) -> UsageError:
    hint = f"`spm-registry root rotate --threshold {left}` first, or add another key first" if left else ""
    return UsageError(
        f"without the key {keyid} there would be {_counted(left)}, too few for the threshold of {threshold}",
        hint=hint or "add another key first: a registry has at least one",
    )


def _counted(keys: int) -> str:
    return "1 root key" if keys == 1 else f"{keys} root keys"

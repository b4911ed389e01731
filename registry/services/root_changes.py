"""What a draft changes, in words: what a signer is asked to vouch for. Reads no file."""

import json
from collections.abc import Iterator
from datetime import datetime

from keys.pinned_keys import CoreKey, ExtKey, Keyring, RevokedKey
from keys.trust_state import MOMENT
from registry.services.root_terms import SigningKey, Terms


def changes(before: Terms | None, after: Terms) -> tuple[str, ...]:
    """Return each change as a sentence without its end; everything, where there was nothing before."""
    return (*_of_root(before, after), *_of_keyring(None if before is None else before.keyring.keyring, after))


def whole_state(terms: Terms, root_ends: datetime, targets_ends: datetime) -> tuple[str, ...]:
    """Return all that a draft would make true, as lines: the registry, each key by its whole id, and when all ends.

    Changes say little to who cannot check what they are changes of. Names are the draft's own words: ids come first.
    """
    return tuple(_of_whole(terms, root_ends, targets_ends))


def _of_whole(terms: Terms, root_ends: datetime, targets_ends: datetime) -> Iterator[str]:
    keyring = terms.keyring.keyring
    yield f"registry: {terms.keyring.registry}"
    yield f"root until: {root_ends:{MOMENT}}"
    yield f"targets and keyring until: {targets_ends:{MOMENT}}"
    yield f"root threshold: {_threshold(terms)}"
    yield from (f"root key: {shown(key)}" for key in terms.root_keys)
    yield f"online key: {terms.online.keyid}"
    yield f"bins: {terms.bins}"
    yield f"keyring core threshold: {keyring.core_threshold}"
    keys: tuple[CoreKey | ExtKey, ...] = (*keyring.core_keys, *keyring.ext_keys)
    yield from (f"keyring key: {_shown_key(key)}" for key in keys)
    yield from (f"key revoked: {shown_revocation(key)}" for key in keyring.revoked_keys)
    yield from (f"manifest revoked: {sha256}" for sha256 in sorted(keyring.revoked_manifests))


def _of_root(before: Terms | None, after: Terms) -> Iterator[str]:
    if before is None or before.keyring.registry != after.keyring.registry:
        yield f"registry: {after.keyring.registry}{_was(None if before is None else before.keyring.registry)}"
    held = () if before is None else before.root_keys
    for key in after.root_keys:
        if key not in held:
            yield f"root key added: {shown(key)}"
    for key in held:
        if key not in after.root_keys:
            yield f"root key removed: {shown(key)}"
    if before is None or _threshold(before) != _threshold(after):
        yield f"root threshold: {_threshold(after)}{_was(None if before is None else _threshold(before))}"
    if before is None or before.online != after.online:
        yield f"online key: {after.online.keyid}{_was(None if before is None else before.online.keyid)}"
    if before is None or before.bins != after.bins:
        yield f"bins: {after.bins}{_was(None if before is None else str(before.bins))}"


def _of_keyring(before: Keyring | None, terms: Terms) -> Iterator[str]:
    after = terms.keyring.keyring
    held: tuple[CoreKey | ExtKey, ...] = () if before is None else (*before.core_keys, *before.ext_keys)
    kept: tuple[CoreKey | ExtKey, ...] = (*after.core_keys, *after.ext_keys)
    for key in kept:
        if key not in held:
            yield f"keyring key added: {_shown_key(key)}"
    for key in held:
        if key not in kept:
            yield f"keyring key removed: {_shown_key(key)}"
    if before is not None and before.core_threshold != after.core_threshold:
        yield f"keyring core threshold: {after.core_threshold}{_was(str(before.core_threshold))}"
    yield from _of_revocations(before, after)


def _of_revocations(before: Keyring | None, after: Keyring) -> Iterator[str]:
    revoked = () if before is None else before.revoked_keys
    manifests = frozenset() if before is None else before.revoked_manifests
    yield from (f"key revoked: {shown_revocation(key)}" for key in after.revoked_keys if key not in revoked)
    yield from (f"key no longer revoked: {key.keyid}" for key in revoked if key not in after.revoked_keys)
    yield from (f"manifest revoked: {sha256}" for sha256 in sorted(after.revoked_manifests - manifests))
    yield from (f"manifest no longer revoked: {sha256}" for sha256 in sorted(manifests - after.revoked_manifests))


def shown(key: SigningKey) -> str:
    """Return a key of the index as people are shown it."""
    return f"{key.keyid} `{key.name}`" if key.name else key.keyid


def shown_revocation(key: RevokedKey) -> str:
    """Return a revoked key as people are shown it."""
    since = "" if key.since is None else f" since {key.since}"
    return f"{key.keyid} {key.reason.value}{since}"


def _shown_key(key: CoreKey | ExtKey) -> str:
    who = f"core {key.keyid}"
    if isinstance(key, ExtKey):
        may = "" if key.ceiling is None else f", capabilities {json.dumps(key.ceiling.to_dict())}"
        who = f"ext {key.keyid} of `{key.publisher}` for {' '.join(key.names)}{may}"
    return who + ("" if key.expires is None else f", until {key.expires}")


def _threshold(terms: Terms) -> str:
    return f"{terms.threshold} of {len(terms.root_keys)}"


def _was(earlier: str | None) -> str:
    return "" if earlier is None else f" (was {earlier})"

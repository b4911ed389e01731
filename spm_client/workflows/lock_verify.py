"""The variants of a lock, held against today's trust: what is new is verified, what is kept is judged again.

What a lock says of a release is believed in nothing: tags, sizes and key ids are those of the index and of signatures.
A kept variant is fetched again only where the keyring says anything against it, or against what the lock says.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from keys.pinned_keys import Keyring
from keys.public_key import KeyId, KeyRole
from manifests.errors import KeyRefused, Revoked, SignatureRefused, SpmError
from manifests.index import ReleaseEntry, VariantEntry
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.project_lock import LockedVariant
from spm_client.adapters.at_once import at_once
from spm_client.progress import Progress, phase
from spm_client.resolve.fit import tag_of
from spm_client.workflows.fetch_manifests import fetch_verified
from spm_client.workflows.registries import RegistryIndexes


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A variant that is to be locked; `recorded` are the key ids that the former lock has for it, None if it is new."""

    name: PluginName
    release: ReleaseEntry
    variant: VariantEntry
    recorded: tuple[str, ...] | None

    def locked(self, keyids: Iterable[str]) -> LockedVariant:
        return LockedVariant(
            tag=tag_of(self.variant),
            manifest_sha256=self.variant.manifest_sha256,
            manifest_size=self.variant.manifest_size,
            blobs_size=self.variant.blobs_size,
            keyids=tuple(sorted(keyids)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A variant as it is locked, and why it is kept although it is no longer trusted."""

    candidate: Candidate
    locked: LockedVariant
    refusal: SpmError | None = None


def judge_variants(
    candidates: Iterable[Candidate], indexes: RegistryIndexes, *, now: datetime, progress: Progress
) -> dict[str, Judged]:
    """Return variants by manifest digest, each judged by its registry's trust as it is now.

    Raises: the first refusal of a variant that is new; what stands in the way of asking; LimitReached.
    """
    found: dict[str, Judged] = {}
    asked: list[Candidate] = []
    moment = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    for one in candidates:
        if one.recorded is None or _is_doubtful(one, indexes.of(one.name).conf.keyring, moment):
            asked.append(one)
        else:
            found[one.variant.manifest_sha256] = Judged(candidate=one, locked=one.locked(one.recorded))
    return found | _all_verified(asked, lambda one: _verified(one, indexes), progress)


def _is_doubtful(one: Candidate, keyring: Keyring, now: str) -> bool:
    """Tell whether today's keyring has anything to say of a kept variant, or the lock names other keys than vouch."""
    role, needed = KeyRole.EXT, 1
    if one.release.type is PluginType.CORE:
        role, needed = KeyRole.CORE, keyring.core_threshold
    vouching = sorted(key for key in map(KeyId, one.variant.signatures) if keyring.role_of(key) is role)
    return (
        list(one.recorded or ()) != vouching
        or len(vouching) < needed
        or one.variant.manifest_sha256 in keyring.revoked_manifests
        or any(_is_key_doubtful(key, role, keyring, one.name, now) for key in vouching)
    )


def _is_key_doubtful(keyid: KeyId, role: KeyRole, keyring: Keyring, name: PluginName, now: str) -> bool:
    if keyring.revocation_of(keyid) is not None:
        return True
    key = keyring.core_key(keyid) if role is KeyRole.CORE else keyring.ext_key(keyid)
    if role is KeyRole.EXT and not any(fnmatchcase(name, pattern) for pattern in keyring.ext_key(keyid).names):
        return True
    return key.expires is not None and key.expires < now


def _all_verified(
    asked: list[Candidate], verify: Callable[[Candidate], Judged], progress: Progress
) -> dict[str, Judged]:
    """Return what is asked, several at once; none is asked for after the first refusal."""
    found: dict[str, Judged] = {}
    with (
        phase(progress, "Verifying", len(asked), noun="manifest") as advance,
        at_once(verify, asked) as answers,
    ):
        for answer in answers:
            judged = answer.result()
            found[judged.candidate.variant.manifest_sha256] = judged
            advance(1)
    return found


def _verified(one: Candidate, indexes: RegistryIndexes) -> Judged:
    opened = indexes.of(one.name)
    try:
        with indexes.told_of(indexes.registry_of(one.name)):
            verified = fetch_verified(opened.index, opened.conf, one.name, one.release, one.variant)
    except (SignatureRefused, KeyRefused, Revoked) as refusal:
        if one.recorded is None:
            raise
        listed = [key for key in one.recorded if key in one.variant.signatures] or one.variant.signatures
        return Judged(candidate=one, locked=one.locked(listed), refusal=refusal)
    return Judged(candidate=one, locked=one.locked(verified.keyids))

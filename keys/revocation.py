"""Whether a manifest's keys are still in force, and the manifest itself. Verifies no signature, looks at no clock.

A retired or expired key keeps what it signed before: the manifest says itself when it was made, which a key in its
owner's hands says truly. A key in other hands is compromised, and keeps nothing.
"""

from collections.abc import Sequence

from keys.pinned_keys import CoreKey, ExtKey, Keyring, RevocationReason
from keys.public_key import KeyId, KeyRole
from manifests.errors import ArtifactRevoked, KeyExpired, KeyRevoked, SpmError
from manifests.manifest import Manifest
from manifests.parts import PluginType


def require_not_revoked(manifest: Manifest, sha256: str, keyring: Keyring) -> None:
    """Accept a manifest that is not itself revoked.

    Raises: ArtifactRevoked.
    """
    if sha256 in keyring.revoked_manifests:
        raise ArtifactRevoked(
            f"the manifest sha256:{sha256} was revoked by the registry's root holders or in loader.conf",
            hint=f"take another release: `spm info {manifest.name}` lists them",
            name=manifest.name,
            version=str(manifest.version),
            sha256=sha256,
        )


def require_in_force(manifest: Manifest, vouching: Sequence[KeyId], keyring: Keyring) -> tuple[KeyId, ...]:
    """Return those of the vouching keys that still count for this manifest, if they are enough.

    Raises: KeyRevoked or KeyExpired naming the first key whose word is missing.
    """
    refused = {keyid: why for keyid in vouching if (why := _not_in_force(manifest, keyid, keyring)) is not None}
    left = tuple(keyid for keyid in vouching if keyid not in refused)
    needed = keyring.core_threshold if manifest.type is PluginType.CORE else 1
    if refused and len(left) < needed:
        raise min(refused.values(), key=lambda why: not isinstance(why, KeyRevoked))
    return left


def _not_in_force(manifest: Manifest, keyid: KeyId, keyring: Keyring) -> SpmError | None:
    revoked = keyring.revocation_of(keyid)
    if revoked is not None and revoked.covers(manifest.created):
        return KeyRevoked(
            f"the manifest, made at {manifest.created}, is signed by the key {keyid}, "
            + (
                f"which was retired at {revoked.since}"
                if revoked.reason is RevocationReason.RETIRED
                else "which is revoked as compromised: nothing that it ever signed counts"
            ),
            hint="ask its publisher for a release that is signed by a key in force",
            keyid=keyid,
            revocation=revoked.reason.value,
            since=revoked.since,
        )
    expires = _pinned(keyid, keyring).expires
    if expires is None or manifest.created <= expires:
        return None
    return KeyExpired(
        f"the manifest, made at {manifest.created}, is signed by the key {keyid}, which expired at {expires}",
        hint="ask its publisher for a release that is signed by a key in force",
        keyid=keyid,
        expires=expires,
    )


def _pinned(keyid: KeyId, keyring: Keyring) -> CoreKey | ExtKey:
    return keyring.core_key(keyid) if keyring.role_of(keyid) is KeyRole.CORE else keyring.ext_key(keyid)

"""What python-tuf refuses, in spm's own reasons. Decides by what was fetched last; verifies and fetches nothing.

ExpiredMetadataError          root-expired, index-expired
BadVersionNumberError         rollback where the version goes down, mix where it is not the one that was listed
LengthOrHashMismatchError     mix
UnsignedMetadataError         sig-invalid, threshold-short, key-unknown or unsigned, by who has signed
any other RepositoryError     bad-response
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from tuf.api.exceptions import (
    BadVersionNumberError,
    DownloadError,
    DownloadHTTPError,
    ExpiredMetadataError,
    LengthOrHashMismatchError,
    RepositoryError,
    UnsignedMetadataError,
)
from tuf.api.metadata import Metadata, Role, Root, Targets, Timestamp
from tuf.api.serialization import DeserializationError

from keys.trust_folder import Fetched, TrustFolder
from keys.trust_state import MOMENT
from manifests.errors import (
    BadResponse,
    IndexExpired,
    KeyRefused,
    KeyUnknown,
    Mix,
    Rollback,
    RootExpired,
    SignatureInvalid,
    SignatureRefused,
    SpmError,
    ThresholdNotMet,
    Unsigned,
)

# What deserialising or verifying hostile metadata may raise beside the library's own errors.
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)
ALTERED = "it was changed on its way or in the registry; nothing of it was used"
_ASK = "tell the registry's administrator; nothing was changed"


@contextmanager
def reasons(fetched: Fetched, folder: TrustFolder, now: datetime, online_now: datetime) -> Iterator[None]:
    """Turn the library's errors within the block into refusals.

    `online_now` is the time by which it has judged, `now` the one to tell.
    """
    try:
        yield
    except SpmError:
        raise
    except (RepositoryError, DownloadError, *UNREADABLE) as error:
        raise _refusal(error, fetched, folder, now, online_now) from error


def require_offline_roles_in_force(folder: TrustFolder, now: datetime) -> None:
    """Hold root and targets against the clock itself, whatever time the online roles were judged by.

    Raises: RootExpired, IndexExpired.
    """
    if folder.root().signed.is_expired(now):
        raise _root_expired(folder, now)
    if (targets := folder.targets().signed).is_expired(now):
        raise _index_expired(targets.type, targets.expires, now)


def _refusal(error: Exception, fetched: Fetched, folder: TrustFolder, now: datetime, online_now: datetime) -> SpmError:
    if isinstance(error, ExpiredMetadataError):
        return _expired(fetched, folder, now, online_now)
    if isinstance(error, UnsignedMetadataError):
        return _unsigned(fetched, folder)
    if isinstance(error, BadVersionNumberError):
        return _bad_version(fetched, folder)
    if isinstance(error, LengthOrHashMismatchError):
        return Mix(
            f"`{fetched.path}` is not the file that the registry's signed index lists: {error}",
            hint=f"another moment's file was served, or it was changed on its way; {_ASK}",
            path=fetched.path,
        )
    if isinstance(error, DownloadHTTPError):
        return BadResponse(
            f"the registry has no `{fetched.path}`, which its own index needs",
            hint="check `registry.url` in loader.conf; if it is right, the registry has lost something",
            path=fetched.path,
        )
    if (
        isinstance(error, RepositoryError)
        and not isinstance(error, DeserializationError)
        and "missing info" in str(error)
    ):
        return Rollback(
            f"the registry's new snapshot no longer lists what an earlier one did: {error}",
            hint=_ASK,
            path=fetched.path,
        )
    return BadResponse(
        f"`{fetched.path}` is not the metadata of a registry: {_first_line(error)}",
        hint="check `registry.url` in loader.conf and the way there",
        path=fetched.path,
    )


def _expired(fetched: Fetched, folder: TrustFolder, now: datetime, online_now: datetime) -> SpmError:
    if folder.root().signed.is_expired(now):
        return _root_expired(folder, now)
    role = fetched.role
    expires = Metadata.from_bytes(fetched.data).signed.expires
    held = folder.read("timestamp")
    if role == "snapshot" and held:
        timestamp = Metadata[Timestamp].from_bytes(held).signed
        if timestamp.is_expired(online_now):
            role, expires = "timestamp", timestamp.expires  # python-tuf tells of it only when the snapshot comes
    return _index_expired(role, expires, now)


def _root_expired(folder: TrustFolder, now: datetime) -> RootExpired:
    root = folder.root().signed
    return RootExpired(
        f"root {root.version} of the registry expired at {root.expires:{MOMENT}}, and this host's clock says "
        f"{now:{MOMENT}}: either its holders have not renewed it, or the clock is wrong",
        hint="look at the clock (`date -u`); if it is right, the root holders must run `spm-registry root rotate`",
        expires=f"{root.expires:{MOMENT}}",
        now=f"{now:{MOMENT}}",
    )


def _index_expired(role: str, expires: datetime, now: datetime) -> IndexExpired:
    return IndexExpired(
        f"the registry's `{role}` expired at {expires:{MOMENT}}, and this host's clock says {now:{MOMENT}}: "
        "either the registry no longer renews it, or somebody serves an old one, or the clock is wrong",
        hint="look at the clock (`date -u`); if it is right, tell the registry's administrator",
        role=role,
        expires=f"{expires:{MOMENT}}",
        now=f"{now:{MOMENT}}",
    )


def _unsigned(fetched: Fetched, folder: TrustFolder) -> SpmError:
    metadata = Metadata.from_bytes(fetched.data)
    vouching = _vouching(fetched.role, metadata, folder)
    try:
        role = vouching.get_delegated_role(fetched.role)
    except ValueError:  # handed on by a role below the targets, which no registry of spm has
        message = f"`{fetched.path}` is not signed by those who may sign it"
        return SignatureInvalid(message, hint=_ASK, path=fetched.path)
    result = vouching.get_verification_result(fetched.role, metadata.signed_bytes, metadata.signatures)
    return too_few(f"`{fetched.path}` of the registry", role, result.signed, metadata.signatures, path=fetched.path)


def too_few(
    what: str, role: Role, signed: Collection[str], signatures: Collection[str], **context: Any
) -> SignatureRefused | KeyRefused:
    """Return why these signatures are not those that a role needs; `signed` are its keys whose signatures verify."""
    if not signatures:
        return Unsigned(f"{what} has no signature", hint=_ASK, **context)
    if signed:
        return ThresholdNotMet(
            f"{what} has {len(signed)} of the {role.threshold} signatures that it needs",
            hint=_ASK,
            keyids=sorted(signed),
            threshold=role.threshold,
            **context,
        )
    if set(role.keyids) & set(signatures):
        message = f"{what} was changed after signing: its signature does not fit"
        return SignatureInvalid(message, hint=ALTERED, **context)
    keyids = sorted(str(keyid)[:64] for keyid in signatures)[:16]
    return KeyUnknown(f"{what} is signed by no key that may sign it", hint=_ASK, keyids=keyids, **context)


def _vouching(role: str, metadata: Metadata, folder: TrustFolder) -> Root | Targets:  # type: ignore[type-arg]
    """Return the delegator whose threshold is not met; for a root, that is the old one or the new one itself."""
    if role not in {"root", "timestamp", "snapshot", "targets"}:
        return folder.targets().signed
    root = folder.root().signed
    if role != "root" or not root.get_verification_result(role, metadata.signed_bytes, metadata.signatures):
        return root
    assert isinstance(metadata.signed, Root)
    return metadata.signed


def _bad_version(fetched: Fetched, folder: TrustFolder) -> SpmError:
    version, asked = Metadata.from_bytes(fetched.data).signed.version, fetched.asked_version
    if fetched.role == "timestamp":
        served = Metadata[Timestamp].from_bytes(fetched.data).signed
        return _rollback(fetched, _timestamp_goes_back(served, folder.timestamp().signed))
    if fetched.role == "root" and version < (asked or 0):
        return _rollback(fetched, f"root {version} was served, and this host has seen root {(asked or 0) - 1}")
    if fetched.role == "snapshot" and version == asked:
        return _rollback(fetched, f"snapshot {version} lists an older version of a part than this host has seen")
    return Mix(
        f"`{fetched.path}` was asked for, but what was served is version {version} of `{fetched.role}`",
        hint=f"files of different moments are mixed; {_ASK}",
        path=fetched.path,
        found=version,
        expected=asked,
    )


def _timestamp_goes_back(served: Timestamp, held: Timestamp) -> str:
    if served.version < held.version:
        return f"timestamp {served.version} was served, and this host has seen timestamp {held.version}"
    return (
        f"timestamp {served.version} lists snapshot {served.snapshot_meta.version}, "
        f"and this host has seen snapshot {held.snapshot_meta.version}"
    )


def _rollback(fetched: Fetched, why: str) -> Rollback:
    return Rollback(
        f"the registry's index goes back: {why}",
        hint=f"somebody serves an old state of the registry, or it was restored from an old backup; {_ASK}",
        path=fetched.path,
    )


def _first_line(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, DeserializationError) and error.__cause__ else error
    return (str(cause).splitlines() or [type(cause).__name__])[0][:200]

"""What a carried draft calls adopted, held to its own signatures. Proves no origin: who has a host can forge it whole.

So that a signer is never shown changes to something that no root has vouched for.
"""

import hashlib

from tuf.api.exceptions import LengthOrHashMismatchError
from tuf.api.metadata import Metadata, Root, T, Targets

from keys.root_keyring import KEYRING_TARGET
from keys.trust_metadata import check_metadata
from keys.trust_policy import STRICT
from keys.trust_reasons import UNREADABLE, too_few
from manifests.errors import ConfigSyntax, Mix, SpmError
from registry.services import root_draft
from registry.services.root_draft import Adopted

_NOT_ADOPTED = "the copy is not what the registry adopted"
_HINT = "sign nothing; copy the draft's folder from the registry again, and look at the registry's host"


def require_chain(adopted: Adopted) -> None:
    """Accept a root that its own keys have signed, the targets that this root's keys have, and the keyring they list.

    Raises:
        SignatureRefused: a signature does not fit, or there is none.
        KeyRefused: too few keys have signed, or others.
        Mix: the keyring is another, or they are of different registries.
    """
    registry = root_draft.terms_of(adopted, None).keyring.registry
    policy = STRICT.of(registry)
    root, targets = _read(adopted.root, Root), _read(adopted.targets, Targets)
    try:
        policy.check_root(root.signed)
        policy.check_targets(targets.signed)
        _require_signed("adopted-root.json", root.signed, root)
        _require_signed("adopted-targets.json", root.signed, targets)
        targets.signed.targets[KEYRING_TARGET].verify_length_and_hashes(adopted.keyring)
    except LengthOrHashMismatchError as error:
        raise Mix(f"{_NOT_ADOPTED}: its adopted targets do not list its `adopted-keyring.json`", hint=_HINT) from error
    except UNREADABLE as error:
        raise ConfigSyntax(f"{_NOT_ADOPTED}: it cannot be read", hint=_HINT) from error


def require_root_digest(adopted: Adopted | None, sha256: str) -> None:
    """Accept a draft that follows the root that the signer knows.

    Raises:
        Mix: it follows another, or none.
    """
    found = None if adopted is None else hashlib.sha256(adopted.root).hexdigest()
    if found != sha256:
        follows = "no root" if found is None else f"the root with the digest sha256:{found}"
        raise Mix(f"{_NOT_ADOPTED}: it follows {follows}, not sha256:{sha256}", hint=_HINT)


def _read(data: bytes, kind: type[T]) -> Metadata[T]:
    try:
        check_metadata(data, f"adopted-{kind.type}.json")
    except SpmError as error:
        raise ConfigSyntax(f"{_NOT_ADOPTED}: {error.message}", hint=_HINT) from error
    return Metadata[T].from_bytes(data)


def _require_signed(file: str, root: Root, metadata: Metadata[Root] | Metadata[Targets]) -> None:
    role = metadata.signed.type
    result = root.get_verification_result(role, metadata.signed_bytes, metadata.signatures)
    if not result:
        error: SpmError = too_few(f"{_NOT_ADOPTED}: its `{file}`", root.roles[role], result.signed, metadata.signatures)
        error.hint = _HINT
        raise error

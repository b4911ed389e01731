"""A trust file: roots, targets and keyring, which offline keys alone have signed. The way to revoke without a network.

It carries no timestamp, so that it proves no freshness: it can only bring newer root-signed metadata, never older.
"""

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import Any

from tuf.api.exceptions import LengthOrHashMismatchError
from tuf.api.metadata import Metadata, Root, Targets

from keys.keyring import LoaderConf
from keys.root_keyring import KEYRING_TARGET, RootKeyring
from keys.trust_metadata import check_json, check_metadata
from keys.trust_policy import STRICT, KeyPolicy
from keys.trust_reasons import too_few
from keys.trust_state import MAX_ROOTS, MOMENT, TrustState, require_clock, require_own
from manifests.canonical import canonical_bytes, parse_strict
from manifests.errors import (
    BadResponse,
    Fork,
    IndexExpired,
    Mix,
    NotCanonical,
    Rollback,
    RootExpired,
    SpmError,
    TooBig,
    Undecided,
)
from manifests.fields import Fields, document, many, matching, one_of
from manifests.names import REGISTRY_ID

TRUST_FILE_TYPE = "spm.trust-file/1"
MAX_TRUST_FILE_BYTES = 32 << 20
_WHAT = "the trust file"


def trust_file(state: TrustState) -> bytes:
    """Return the trust file of a state: the newest that root keys have signed.

    Raises: Undecided where the state has no keyring.
    """
    newest = state.root_keyring()
    is_imported = state.imported_keyring is not None and newest.to_bytes() == state.imported_keyring.encode()
    targets = state.imported_targets if is_imported else state.targets
    if targets is None:
        raise Undecided("the trust state has no targets", reason="unknown:revocations", hint="`spm trust update`")
    return canonical_bytes(
        {
            "_type": TRUST_FILE_TYPE,
            "registry": state.registry,
            "roots": list(state.roots),
            "targets": targets,
            "keyring": newest.to_bytes().decode(),
        }
    )


def import_trust(conf: LoaderConf, state: TrustState | None, data: bytes, now: datetime) -> TrustState:
    """Return what a host remembers once it has taken a trust file in.

    Raises: ContentError for a file that is none; Mix for another registry's; SignatureRefused and KeyRefused;
    RootExpired and IndexExpired; Rollback where it is older than what is held.
    """
    texts = _read(data)
    if texts["registry"] != conf.registry_id:
        raise Mix(
            f"the trust file is of the registry `{texts['registry']}`, loader.conf names `{conf.registry_id}`",
            hint=f"ask the root holders of `{conf.registry_id}` for theirs, or check `registry.id` in loader.conf",
            found=texts["registry"],
            expected=conf.registry_id,
        )
    if state is not None:
        require_own(state, conf)
        require_clock(state.issued, now)
    policy = STRICT.of(conf.registry_id)
    held = state or _from_pin(conf, texts["roots"])
    roots = _walked(held.roots, texts["roots"], policy)
    _require_targets(_root(roots[-1]), texts["targets"], texts["keyring"], now, policy)
    keyring = RootKeyring.from_bytes(texts["keyring"].encode())
    _require_newer_targets(texts["targets"], held)
    for text in (held.keyring, held.imported_keyring):
        require_keyring(keyring, conf, text)
    return replace(held, roots=roots, imported_targets=texts["targets"], imported_keyring=texts["keyring"])


def require_keyring(keyring: RootKeyring, conf: LoaderConf, held: str | None) -> None:
    """Accept a keyring of the registry that loader.conf names, and no older edition than the one held.

    Raises: Mix; Rollback.
    """
    if keyring.registry != conf.registry_id:
        raise Mix(
            f"the keyring is of the registry `{keyring.registry}`, loader.conf names `{conf.registry_id}`",
            hint="check `registry.url` and `registry.id` in loader.conf",
            found=keyring.registry,
            expected=conf.registry_id,
        )
    before = RootKeyring.from_bytes(held.encode()).serial if held else 0
    if keyring.serial == before and keyring.to_bytes() != (held or "").encode():
        raise Fork(
            f"there are two different keyrings as edition {before}, both signed by root keys",
            hint="keep both for evidence and ask the root holders which is theirs; nothing was changed",
            serial=before,
        )
    if keyring.serial < before:
        raise Rollback(
            f"the keyring is edition {keyring.serial}, and this host has seen edition {before}",
            hint="the root holders must publish a newer edition; nothing was changed",
            found=keyring.serial,
            seen=before,
        )


def _read(data: bytes) -> dict[str, Any]:
    try:
        value = parse_strict(data, what=_WHAT, max_bytes=MAX_TRUST_FILE_BYTES)
    except (NotCanonical, TooBig) as error:
        raise type(error)(error.message, hint="take the file as `spm trust export` wrote it") from error
    with document(_WHAT) as problems:
        fields = Fields(value, "", problems)
        fields.required("_type", one_of(TRUST_FILE_TYPE))
        fields.required("registry", matching(REGISTRY_ID, "a registry id"))
        roots = fields.required("roots", many(_json_text, MAX_ROOTS))
        for name in ("targets", "keyring"):
            fields.required(name, _json_text)
        fields.close()
        if not problems and not roots:
            problems.append("`roots` is empty")
    return value


def _json_text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadResponse("it is not text")
    check_json(value.encode("utf-8", "replace"), "this metadata")
    return value


def _from_pin(conf: LoaderConf, roots: list[str]) -> TrustState:
    pin = conf.require_root()
    for place, text in enumerate(roots):
        if hashlib.sha256(text.encode()).hexdigest() == pin.sha256:
            return TrustState(registry=conf.registry_id, root_sha256=pin.sha256, roots=(roots[place],))
    raise Mix(
        f"the trust file has no root with the digest sha256:{pin.sha256}, which loader.conf pins",
        hint="ask the registry's root holders for a file that begins at this root",
        expected=pin.sha256,
    )


def _walked(held: tuple[str, ...], offered: list[str], policy: KeyPolicy) -> tuple[str, ...]:
    """Return the chain of roots lengthened by what the file has beyond it, each signed by the one before and itself."""
    chain, newest = list(held), _root(held[-1])
    later = {_root(text).signed.version: text for text in offered}
    while (text := later.get(newest.signed.version + 1)) is not None:
        following = _root(text)
        policy.check_root(following.signed)
        _require_signed("root", following, newest)
        _require_signed("root", following, following)
        chain.append(text)
        newest = following
    if beyond := [version for version in sorted(later) if version > newest.signed.version]:
        missing = newest.signed.version + 1
        raise BadResponse(
            f"the trust file holds root {beyond[0]}, and no root {missing} that leads to it",
            hint=f"ask the root holders for a file that has root {missing}; nothing was changed",
        )
    return tuple(chain)


def _root(text: str) -> Metadata[Root]:
    return _parsed(text, Root)


def _parsed(text: str, kind: type[Any]) -> Metadata[Any]:
    check_metadata(text.encode(), f"{kind.type} of the trust file")
    metadata = Metadata[Any].from_bytes(text.encode())
    if metadata.signed.type != kind.type:
        raise Mix(f"the trust file holds `{metadata.signed.type}` where `{kind.type}` belongs")
    # `true` is 1 to the library: such a root would pass for the first one, and be left aside instead of refused.
    if isinstance(metadata.signed.version, bool):
        raise BadResponse(f"the trust file holds a `{kind.type}` whose version is no number")
    return metadata


def _require_signed(role: str, metadata: Metadata[Any], root: Metadata[Root]) -> None:
    result = root.signed.get_verification_result(role, metadata.signed_bytes, metadata.signatures)
    if not result:
        what = f"`{role}` {metadata.signed.version} of the trust file"
        raise too_few(what, root.signed.roles[role], result.signed, metadata.signatures, root=root.signed.version)


def _require_targets(root: Metadata[Root], targets_text: str, keyring: str, now: datetime, policy: KeyPolicy) -> None:
    if root.signed.is_expired(now):
        raise _expired(RootExpired, "root", root, now)
    targets: Metadata[Targets] = _parsed(targets_text, Targets)
    _require_signed("targets", targets, root)
    if targets.signed.is_expired(now):
        raise _expired(IndexExpired, "targets", targets, now)
    policy.check_targets(targets.signed)
    try:
        targets.signed.targets[KEYRING_TARGET].verify_length_and_hashes(keyring.encode())
    except LengthOrHashMismatchError as error:
        raise Mix(
            f"the keyring in the trust file is not the one that its targets {targets.signed.version} list: {error}"
        ) from error


def _expired(kind: type[SpmError], role: str, metadata: Metadata[Any], now: datetime) -> SpmError:
    return kind(
        f"`{role}` {metadata.signed.version} of the trust file expired at {metadata.signed.expires:{MOMENT}}, "
        f"and this host's clock says {now:{MOMENT}}",
        hint="look at the clock (`date -u`); if it is right, ask the root holders for a newer file",
        expires=f"{metadata.signed.expires:{MOMENT}}",
        now=f"{now:{MOMENT}}",
    )


def _require_newer_targets(text: str, held: TrustState) -> None:
    offered = _parsed(text, Targets).signed.version
    seen = max(
        (_parsed(one, Targets).signed.version for one in (held.targets, held.imported_targets) if one), default=0
    )
    if offered < seen:
        raise Rollback(
            f"the trust file has targets {offered}, and this host has seen targets {seen}",
            hint="ask the root holders for their newest file; nothing was changed",
            found=offered,
            seen=seen,
        )

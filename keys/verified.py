"""The states of a release on its way to being loaded: fetched, verified, installed. Fetches and installs nothing.

`VerifiedManifest` and `InstalledPlugin` are made only by the functions here, so whoever takes one takes verified bytes.
Steps of `verify_manifest`, in order; nothing of the manifest is read before step 4:
1. the bytes have the digest that was asked for                          digest
2. which class of signature is there                                     unsigned, wrong-class
3. signatures by pinned keys of that class's role, enough of them        20, 21
4. the bytes are a manifest                                              25
5. its class is that of the signature; its registry the pinned one       wrong-class, mix
6. neither it nor too many of its keys are revoked or past their expiry  22, key-expired
7. the key may sign this name, and it asks for no more than allowed      key-namespace, policy-denied
8. it is the release that was asked for                                  mix
A publish offers what is not asked for, so that steps 1 and 8 fall away; there each signature must be of low S.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from keys import core_signature, ext_signature
from keys.pinned_keys import ExtKey, Keyring
from keys.public_key import KeyId
from keys.revocation import require_in_force, require_not_revoked
from keys.shown import shown
from keys.tree import FileStamp, IsSettled, check_tree
from manifests.errors import (
    AlgorithmRefused,
    ContentError,
    DigestMismatch,
    HeaderRefused,
    KeyRefused,
    KeyRoleMismatch,
    Mix,
    NotCanonical,
    Revoked,
    SignatureInvalid,
    SignatureMalformed,
    SignatureRefused,
    SpmError,
    ThresholdNotMet,
    TooBig,
    TypeMismatch,
    Undecided,
    Unsigned,
    WrongClass,
)
from manifests.manifest import MAX_MANIFEST_BYTES, Manifest
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.versions import Version

__all__ = [
    "JWS_FILE",
    "MAX_MANIFEST_BYTES",
    "SIGNATURE_FILE_PREFIX",
    "Expected",
    "FetchedManifest",
    "InstalledPlugin",
    "VerifiedManifest",
    "verify_manifest",
    "verify_offered",
    "verify_tree",
]

JWS_FILE = "manifest.jws"
SIGNATURE_FILE_PREFIX = "manifest.sig."
MAX_SIGNATURES = 64

_CORE_FILE = re.compile(r"manifest\.sig\.([0-9a-f]{64})")
_SEAL: Final = object()
_NO_FIT = "the registry's index and its manifests do not fit; tell the one who runs it"
_UNUSED = "nothing of it was used; if it stays so, ask its publisher for a release signed by `spm sign`"
_NO_MANIFEST = "its author signed what is no manifest: ask its publisher for another release"
# The refusals' own hints speak to a publisher, who can sign again.
_READERS_HINTS = {
    SignatureMalformed.default_reason: _UNUSED,
    SignatureInvalid.default_reason: _UNUSED,
    AlgorithmRefused.default_reason: _UNUSED,
    HeaderRefused.default_reason: _UNUSED,
    WrongClass.default_reason: _UNUSED,
    KeyRoleMismatch.default_reason: "ask its publisher to sign it with a key of the role {role}, "
    "or mend loader.conf if it pins this key for the wrong class",
    ThresholdNotMet.default_reason: "ask its publisher for a release with enough signatures "
    "(the holders of core keys run `spm sign`)",
    TooBig.default_reason: _UNUSED,  # found before any signature is looked at
    NotCanonical.default_reason: _NO_MANIFEST,
    TypeMismatch.default_reason: _NO_MANIFEST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedManifest:
    """A manifest and its signature files by name, as somebody sent them. Nothing in it is believed.

    For an ext release `data` are the bytes that the token carries.
    """

    data: bytes
    signatures: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The release that was asked for. `type` is None where the one who asks does not know the class."""

    registry: str
    name: PluginName
    version: Version
    manifest_sha256: str
    variant_tag: str | None
    type: PluginType | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedManifest:
    """A manifest that pinned keys vouch for. `signatures` holds the files that were verified, and no other."""

    manifest: Manifest
    data: bytes
    sha256: str
    keyids: tuple[KeyId, ...]
    signatures: Mapping[str, bytes]
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        _require_seal(seal, "VerifiedManifest", "verify_manifest")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPlugin:
    """A folder that was found to hold exactly the files of a verified manifest.

    `stamps` are those of the big files that were hashed, where the verifier could tell that they will not lie.
    """

    verified: VerifiedManifest
    directory: Path
    stamps: Mapping[str, FileStamp]
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        _require_seal(seal, "InstalledPlugin", "verify_tree")

    @property
    def manifest(self) -> Manifest:
        return self.verified.manifest


def verify_manifest(fetched: FetchedManifest, keyring: Keyring, expected: Expected) -> VerifiedManifest:
    """Return the manifest if pinned keys vouch for it and it is the release that was asked for.

    Raises: the refusals of the steps in the module's docstring.
    """
    found = hashlib.sha256(fetched.data).hexdigest()
    if found != expected.manifest_sha256:
        raise DigestMismatch(
            f"the manifest of {expected.name} {expected.version} has the digest sha256:{found}, "
            f"the index says sha256:{expected.manifest_sha256}",
            hint="it was changed on its way or in the registry; nothing of it was used",
            found=found,
            expected=expected.manifest_sha256,
        )
    try:
        verified = _verify(fetched, keyring, expected.registry)
    except (SignatureRefused, KeyRefused, Revoked, ContentError) as refusal:
        raise _about(expected, refusal) from refusal
    _require_identity(verified.manifest, expected)
    return verified


def verify_offered(fetched: FetchedManifest, keyring: Keyring, registry: str) -> VerifiedManifest:
    """Return a manifest that pinned keys vouch for where no particular release was asked for, as at a publish.

    Raises: the refusals of steps 2 to 7 in the module's docstring; SignatureMalformed for a signature of high S, so
    that nobody publishes a second spelling of one signature.
    """
    verified = _verify(fetched, keyring, registry)
    if JWS_FILE in verified.signatures:
        ext_signature.require_low_s(verified.signatures[JWS_FILE])
    else:
        for signature in verified.signatures.values():
            core_signature.require_low_s(signature)
    return verified


def _verify(fetched: FetchedManifest, keyring: Keyring, registry: str) -> VerifiedManifest:
    if len(fetched.data) > MAX_MANIFEST_BYTES:
        raise TooBig(f"the manifest has {len(fetched.data)} bytes, more than the {MAX_MANIFEST_BYTES} allowed")
    signed_as = _signature_class(fetched.signatures)
    ext_key = _verify_ext(fetched, keyring) if signed_as is PluginType.EXT else None
    vouching = [ext_key.keyid] if ext_key else _verify_core(fetched, keyring)
    manifest, sha256 = Manifest.from_bytes(fetched.data), hashlib.sha256(fetched.data).hexdigest()
    _require_class(manifest, signed_as)
    _require_registry(manifest, registry)
    require_not_revoked(manifest, sha256, keyring)
    keyids = require_in_force(manifest, vouching, keyring)
    if ext_key:
        ext_key.require_namespace(manifest)
        ext_key.require_ceiling(manifest)
    names = [JWS_FILE] if ext_key else [SIGNATURE_FILE_PREFIX + keyid for keyid in keyids]
    return VerifiedManifest(
        manifest=manifest,
        data=fetched.data,
        sha256=sha256,
        keyids=keyids,
        signatures=MappingProxyType({name: fetched.signatures[name] for name in names}),
        seal=_SEAL,
    )


def verify_tree(
    verified: VerifiedManifest,
    directory: Path,
    *,
    known: Mapping[str, FileStamp] = MappingProxyType({}),
    is_settled: IsSettled | None = None,
) -> InstalledPlugin:
    """Return the plugin if the folder holds exactly the files of its manifest, unchanged.

    Files with `known` stamps are not read again; `is_settled` is asked of big files before they are: see `check_tree`.
    Raises: FileSetMismatch, LinkRefused, TypeMismatch, SizeMismatch, DigestMismatch or Undecided, each naming the
    plugin, the file and both values.
    """
    try:
        stamps = check_tree(verified.manifest.files, directory, known=known, is_settled=is_settled)
    except SpmError as error:
        name = f"{verified.manifest.name} {verified.manifest.version}"
        release = f"{verified.manifest.name}=={verified.manifest.version}"
        hint = f"do not run what is there; `spm install {release}` lays it out anew"
        if isinstance(error, Undecided):
            hint = error.hint
        raise type(error)(
            f"{name} in {directory}: {error.message}",
            reason=error.reason,
            hint=hint,
            directory=str(directory),
            **error.context,
        ) from error
    return InstalledPlugin(verified=verified, directory=directory, stamps=stamps, seal=_SEAL)


def _signature_class(signatures: Mapping[str, bytes]) -> PluginType:
    if not signatures:
        raise Unsigned(
            "the manifest has no signature",
            hint="ask its publisher to sign it (`spm sign`); there is no way to load an unsigned plugin",
        )
    if len(signatures) > MAX_SIGNATURES:
        raise SignatureMalformed(
            f"the manifest has {len(signatures)} signatures, more than the {MAX_SIGNATURES} allowed"
        )
    unknown = sorted(name for name in signatures if name != JWS_FILE and not _CORE_FILE.fullmatch(name))
    if unknown:
        raise SignatureMalformed(
            f"{shown(unknown[0])} is not the name of a signature file: they are {JWS_FILE} "
            f"and {SIGNATURE_FILE_PREFIX}<key id>"
        )
    if JWS_FILE not in signatures:
        return PluginType.CORE
    if len(signatures) > 1:
        raise WrongClass("the manifest has both core and ext signatures, a release is of one class")
    return PluginType.EXT


def _verify_ext(fetched: FetchedManifest, keyring: Keyring) -> ExtKey:
    token = fetched.signatures[JWS_FILE]
    key = keyring.ext_key(ext_signature.read_header(token))
    if ext_signature.verify_manifest_token(token, key.public_key_pem) != fetched.data:
        raise SignatureInvalid(
            f"{JWS_FILE} carries other bytes than the manifest beside it: the manifest was changed after signing",
            keyid=key.keyid,
        )
    return key


def _verify_core(fetched: FetchedManifest, keyring: Keyring) -> list[KeyId]:
    """Return the core keys that vouch: a key not pinned does not count, a wrong signature is never passed over."""
    named = sorted(KeyId(name.removeprefix(SIGNATURE_FILE_PREFIX)) for name in fetched.signatures)
    pinned = [keyid for keyid in named if keyring.role_of(keyid) is not None]
    for keyid in pinned or named[:1]:
        key = keyring.core_key(keyid)
        signature = fetched.signatures[SIGNATURE_FILE_PREFIX + keyid]
        core_signature.verify(key.public_key_pem, fetched.data, signature)
    if len(pinned) < keyring.core_threshold:
        raise ThresholdNotMet(
            f"the manifest has {len(pinned)} of the {keyring.core_threshold} signatures by pinned core keys "
            "that are asked for",
            hint="ask the other holders of core keys to sign it (`spm sign`)",
            keyids=pinned,
            threshold=keyring.core_threshold,
        )
    return pinned


def _require_class(manifest: Manifest, signed_as: PluginType) -> None:
    if manifest.type is not signed_as:
        raise WrongClass(
            f"the manifest says that it is of the class {manifest.type.value}, "
            f"but its signature is of the class {signed_as.value}",
            hint=f"sign it with a key of the role {manifest.type.value}",
            name=manifest.name,
            version=str(manifest.version),
            type=manifest.type.value,
            signed_as=signed_as.value,
        )


def _require_registry(manifest: Manifest, registry: str) -> None:
    if manifest.registry != registry:
        raise Mix(
            f"{manifest.name} {manifest.version} was made for the registry `{manifest.registry}`, "
            f"this one is `{registry}`",
            hint="pack and sign it for this registry",
            found=manifest.registry,
            expected=registry,
        )


def _require_identity(manifest: Manifest, expected: Expected) -> None:
    if expected.type is not None and manifest.type is not expected.type:
        raise WrongClass(
            f"{expected.name} {expected.version} is listed with the class {expected.type.value}, "
            f"but it is signed as {manifest.type.value}",
            hint=_NO_FIT,
            type=expected.type.value,
            signed_as=manifest.type.value,
        )
    found_tag = manifest.variant.tag if manifest.variant else None
    found = (manifest.name, manifest.version.text, found_tag)
    asked = (expected.name, expected.version.text, expected.variant_tag)
    if found != asked:
        raise Mix(
            f"{_described(*asked)} was asked for, but what was served is {_described(*found)}, signed and sound",
            hint=_NO_FIT,
            found=list(found),
            expected=list(asked),
        )


def _about(expected: Expected, refusal: SpmError) -> SpmError:
    """Say which of several plugins a refusal is about, and what can be done by one who did not sign it."""
    message = f"`{expected.name}` {expected.version} is refused: {refusal.message}"
    hint = _READERS_HINTS.get(refusal.reason)
    told = refusal.hint if hint is None else hint.format(role=refusal.context.get("expected"))
    return type(refusal)(message, reason=refusal.reason, hint=told, **refusal.context)


def _described(name: str, version: str, variant_tag: str | None) -> str:
    return f"{name} {version}" + (f" ({variant_tag})" if variant_tag else "")


def _require_seal(seal: object, what: str, maker: str) -> None:
    if seal is not _SEAL:
        raise TypeError(f"{what} is made by {maker} only")

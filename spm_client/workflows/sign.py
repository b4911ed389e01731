"""Sign: one key's word on a packed manifest, written beside it. Publishes nothing."""

from pathlib import Path
from typing import TYPE_CHECKING

from keys import core_signature, ext_signature
from keys.key_files import KeyRole, PublicKeyFile, keyid_of
from keys.verified import JWS_FILE, SIGNATURE_FILE_PREFIX
from manifests.errors import KeyNamespaceMismatch, KeyRoleMismatch, KeyUnknown
from manifests.manifest import Manifest
from spm_client.workflows.packed import PackedFolder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey


def may_sign(public: PublicKeyFile, manifest: Manifest) -> bool:
    """Tell whether a key is of the manifest's class and, for ext, of its publisher."""
    return public.role.value == manifest.type.value and (
        public.role is KeyRole.CORE or public.publisher == manifest.publisher
    )


def sign(packed: PackedFolder, public: PublicKeyFile, private: "EllipticCurvePrivateKey") -> Path:
    """Write the signature that the manifest's class calls for and return its path.

    Raises: KeyRoleMismatch when the key is for the other class; KeyNamespaceMismatch when an ext manifest names
    another publisher than the key's; KeyUnknown when the two halves of the key do not belong together.
    """
    manifest = packed.manifest
    if public.role.value != manifest.type.value:
        raise KeyRoleMismatch(
            f"`{manifest.name}` is of the class {manifest.type.value}, and the key `{public.name}` has the role "
            f"{public.role.value}",
            hint=f"sign it with a key made by `spm keys new --role {manifest.type.value}`",
        )
    if public.role is KeyRole.EXT and public.publisher != manifest.publisher:
        raise KeyNamespaceMismatch(
            f"`{manifest.name}` was packed for the publisher `{manifest.publisher}`, and the key `{public.name}` is "
            f"`{public.publisher}`'s",
            hint=f"pack it again: `spm pack DIR --publisher {public.publisher}`",
        )
    if (found := keyid_of(private.public_key())) != public.keyid:
        raise KeyUnknown(
            f"`{public.name}.key` is not the private half of `{public.name}.pub`: its key id is {found}, "
            f"not {public.keyid}",
            hint="put back the two files that `spm keys new` wrote together",
            found=found,
            expected=public.keyid,
        )
    if public.role is KeyRole.CORE:
        path = packed.folder / f"{SIGNATURE_FILE_PREFIX}{public.keyid}"
        path.write_bytes(core_signature.sign(private, packed.data))
    else:
        path = packed.folder / JWS_FILE
        path.write_bytes(ext_signature.sign(private, public.keyid, packed.data))
    return path

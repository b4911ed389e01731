"""Receipts: a store's own word that it has hashed the big files of a plugin, and by which stamps it knows them again.

Decides by values alone: reads no file, makes no key, and knows no store. A receipt vouches for nothing that an author
has not signed; it only spares reading again what nobody has written to since.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from keys import core_signature
from keys.public_key import keyid_of, keyid_of_pem
from keys.shown import shown
from keys.tree import BIG_FILE_BYTES, FileStamp
from keys.verified import InstalledPlugin
from manifests.canonical import canonical_bytes, parse_strict
from manifests.errors import KeyUnknown, Mix, SignatureMalformed, TypeMismatch
from manifests.fields import Fields, document, many, matching, nested, one_of, sha256, whole
from manifests.manifest import MAX_FILES, Manifest
from manifests.parts import MAX_FILE_BYTES
from manifests.paths import check_path

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

PAYLOAD_TYPE = "application/vnd.spm.receipt+json;v=1"
RECEIPT_TYPE = "spm.receipt/1"
MAX_RECEIPT_BYTES = 4 << 20
MAX_ENVELOPE_BYTES = 2 * MAX_RECEIPT_BYTES

_ENVELOPE = {"payload", "payloadType", "signatures"}
_SIGNATURE = {"keyid", "sig"}
# Canonical JSON holds no integer of 2**53 or more, and these may be: they are written as text.
_read_number = matching(r"0|-?[1-9][0-9]{0,19}", "a whole number of at most 20 digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The stamps of a plugin's big files as they were when their content was that of the signed manifest."""

    manifest_sha256: str
    files: Mapping[str, FileStamp]

    @classmethod
    def of(cls, plugin: InstalledPlugin) -> "Receipt":
        """Return what the verification of a plugin allows to say: nothing of files that it did not hash."""
        return cls(manifest_sha256=plugin.verified.sha256, files=plugin.stamps)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Receipt":
        """Read a receipt.

        Raises: TooBig, NotCanonical; TypeMismatch listing every problem.
        """
        with document("the receipt") as problems:
            fields = Fields(parse_strict(data, what="the receipt", max_bytes=MAX_RECEIPT_BYTES), "", problems)
            fields.required("_type", one_of(RECEIPT_TYPE))
            manifest_sha256 = fields.required("manifest", sha256)
            files = fields.required("files", many(nested(_read_file), MAX_FILES)) or ()
            fields.close()
        paths = [path for path, _ in files]
        if paths != sorted(set(paths)):
            raise TypeMismatch("the receipt names its files twice or out of order")
        return cls(manifest_sha256=manifest_sha256, files=MappingProxyType(dict(files)))

    def to_bytes(self) -> bytes:
        files = [_file_dict(path, stamp) for path, stamp in sorted(self.files.items())]
        return canonical_bytes({"_type": RECEIPT_TYPE, "manifest": self.manifest_sha256, "files": files})


def may_use_receipt(manifest: Manifest, full_hash_bytes: int) -> bool:
    """Tell whether a plugin is beyond the budget within which everything is hashed, and has a file worth a receipt."""
    return manifest.size > full_hash_bytes and any(entry.size > BIG_FILE_BYTES for entry in manifest.files)


def sign(private_key: "EllipticCurvePrivateKey", receipt: Receipt) -> bytes:
    """Return the receipt in a DSSE envelope, signed with the store's host key."""
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    payload = receipt.to_bytes()
    signature = encode_dss_signature(*core_signature.sign_low_s(private_key, _pae(payload)))
    envelope = {
        "payload": _text(payload),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": keyid_of(private_key.public_key()), "sig": _text(signature)}],
    }
    return canonical_bytes(envelope)


def verify(public_key_pem: bytes, data: bytes, manifest_sha256: str) -> Receipt:
    """Return the receipt in an envelope if this key signed it, for this manifest. Only then is the payload parsed.

    Raises: TooBig, NotCanonical, SignatureMalformed, KeyUnknown, SignatureInvalid; TypeMismatch; Mix for a receipt of
    another manifest.
    """
    keyid, payload, signature = _opened(data)
    if keyid != keyid_of_pem(public_key_pem):
        raise KeyUnknown(f"the receipt says it is signed by the key {shown(keyid)}, which is not this store's host key")
    core_signature.verify_raw(public_key_pem, _pae(payload), signature)
    receipt = Receipt.from_bytes(payload)
    if receipt.manifest_sha256 != manifest_sha256:
        raise Mix(
            f"the receipt is for the manifest sha256:{receipt.manifest_sha256}, not for sha256:{manifest_sha256}",
            found=receipt.manifest_sha256,
            expected=manifest_sha256,
        )
    return receipt


def _pae(payload: bytes) -> bytes:
    return b"DSSEv1 %d %b %d %b" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def _opened(data: bytes) -> tuple[str, bytes, bytes]:
    envelope = parse_strict(data, what="the receipt's envelope", max_bytes=MAX_ENVELOPE_BYTES)
    signatures = envelope.get("signatures")
    is_whole = (
        set(envelope) == _ENVELOPE
        and envelope["payloadType"] == PAYLOAD_TYPE
        and isinstance(signatures, list)
        and len(signatures) == 1
        and isinstance(signatures[0], dict)
        and set(signatures[0]) == _SIGNATURE
    )
    if not is_whole:
        raise SignatureMalformed(f"the receipt is not a DSSE envelope of the type {PAYLOAD_TYPE} with one signature")
    return (
        str(envelope["signatures"][0]["keyid"]),
        _bytes(envelope["payload"]),
        _bytes(envelope["signatures"][0]["sig"]),
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: Any) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise SignatureMalformed(f"the receipt's envelope is not in base64: {error}") from error
    if _text(data) != text:
        raise SignatureMalformed("the receipt's envelope is not in canonical base64")
    return data


def _read_file(fields: Fields) -> tuple[str, FileStamp]:
    number = {name: fields.required(name, _read_number) for name in ("dev", "inode", "mtime_ns", "ctime_ns")}
    path = fields.required("path", check_path)
    size = fields.required("size", whole(BIG_FILE_BYTES + 1, MAX_FILE_BYTES))
    return path, FileStamp(size=size, **{name: int(text or 0) for name, text in number.items()})


def _file_dict(path: str, stamp: FileStamp) -> dict[str, Any]:
    return {
        "path": path,
        "dev": str(stamp.dev),
        "inode": str(stamp.inode),
        "size": stamp.size,
        "mtime_ns": str(stamp.mtime_ns),
        "ctime_ns": str(stamp.ctime_ns),
    }

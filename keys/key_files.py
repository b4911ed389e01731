"""Key pairs on disk: `NAME.key` for its owner alone, `NAME.pub` to hand out. Decides no trust."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from keys.one_read import read_once
from keys.public_key import (
    KEYID_PATTERN,
    KeyId,
    KeyRole,
    keyid_of,
    keyid_of_pem,
    load_public_key,
    pem_of,
    pem_of_spki,
    spki_of_pem,
    to_jwk,
)
from manifests.canonical import canonical_bytes, parse_strict
from manifests.errors import AlgorithmRefused, ConfigPermissions, ConfigSyntax, SpmError, UsageError
from manifests.fields import Fields, document, matching, one_of
from manifests.names import parse_name

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

__all__ = [
    "KeyId",
    "KeyRole",
    "PublicKeyFile",
    "is_encrypted",
    "keyid_of",
    "list_keys",
    "load_private",
    "load_public",
    "new_key",
    "read_public_pem",
    "to_jwk",
    "write_public",
]

PUBLIC_KEY_TYPE = "spm.public-key/1"
MAX_KEY_FILE_BYTES = 16 << 10
_ENCRYPTED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"

_read_name = matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "a key name (A-Z a-z 0-9 . _ - and 64 at most)")
_read_keyid = matching(KEYID_PATTERN.pattern, "a key id of 64 lower-case hex digits")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKeyFile:
    """What a `.pub` file says: a key, its role, and the publisher whose key it is."""

    name: str
    role: KeyRole
    publisher: str
    keyid: KeyId
    public_key_pem: bytes

    @classmethod
    def from_bytes(cls, data: bytes, *, what: str = "the public key file") -> "PublicKeyFile":
        """Read the bytes of a `.pub` file.

        Raises: ConfigSyntax listing every problem, among them a key id that is not the digest of the key.
        """
        try:
            value = parse_strict(data.removesuffix(b"\n"), what=what, max_bytes=MAX_KEY_FILE_BYTES)
            with document(what) as problems:
                public = cls._read(Fields(value, "", problems))
            load_public_key(public.public_key_pem)
        except SpmError as error:
            raise ConfigSyntax(error.message, hint=error.hint, **error.context) from error
        if public.keyid != keyid_of_pem(public.public_key_pem):
            raise ConfigSyntax(
                f"{what} says `keyid` is {public.keyid}, but its key has the id {keyid_of_pem(public.public_key_pem)}",
                hint="ask the owner of the key for the file that `spm keys new` wrote",
            )
        return public

    @classmethod
    def _read(cls, fields: Fields) -> "PublicKeyFile":
        fields.required("_type", one_of(PUBLIC_KEY_TYPE))
        public = cls(
            name=fields.required("name", _read_name),
            role=fields.required("role", lambda value: KeyRole(one_of("core", "ext", "root")(value))),
            publisher=fields.required("publisher", parse_name),
            keyid=KeyId(fields.required("keyid", _read_keyid)),
            public_key_pem=fields.required("public_key", _read_pem),
        )
        fields.close()
        return public

    def to_bytes(self) -> bytes:
        value = {
            "_type": PUBLIC_KEY_TYPE,
            "name": self.name,
            "role": self.role.value,
            "publisher": self.publisher,
            "keyid": self.keyid,
            "public_key": self.public_key_pem.decode("ascii"),
        }
        return canonical_bytes(value) + b"\n"


def new_key(directory: Path, name: str, role: KeyRole, publisher: str, passphrase: bytes | None) -> PublicKeyFile:
    """Make a P-256 key and write both files. The private one is encrypted unless `passphrase` is None.

    Raises: UsageError when a file of that name exists (no key is ever overwritten), the folder cannot be written, or
    the passphrase is empty.
    """
    from cryptography.hazmat.primitives.asymmetric import ec

    if passphrase == b"":
        raise UsageError("the passphrase is empty", hint="give one, or ask for an unencrypted key by name")
    private_key = ec.generate_private_key(ec.SECP256R1())
    public = PublicKeyFile(
        name=_read_name(name),
        role=role,
        publisher=parse_name(publisher),
        keyid=keyid_of(private_key.public_key()),
        public_key_pem=pem_of(private_key.public_key()),
    )
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(directory, error) from error
    private_path, public_path = directory / f"{name}.key", directory / f"{name}.pub"
    _write_new(private_path, _private_pem(private_key, passphrase), 0o600)
    try:
        _write_new(public_path, public.to_bytes(), 0o644)
    except SpmError:
        private_path.unlink()
        raise
    return public


def load_private(path: Path, passphrase: bytes | None) -> "EllipticCurvePrivateKey":
    """Read a private key.

    Raises: ConfigPermissions when anyone but its owner may read or write the file; UsageError when it is not there or
    the passphrase does not open it; AlgorithmRefused unless it is a P-256 key.
    """
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey

    data = _read_bounded(path, is_private=True)
    private_key = _decrypted(path, data, passphrase)
    if not isinstance(private_key, EllipticCurvePrivateKey) or not isinstance(private_key.curve, SECP256R1):
        raise AlgorithmRefused(f"{path} is not a P-256 key, the only kind that spm signs with", path=str(path))
    return private_key


def is_encrypted(path: Path) -> bool:
    """Tell whether a private key needs a passphrase.

    Raises: as `load_private` for a file that is not there or open to others.
    """
    return _ENCRYPTED in _read_bounded(path, is_private=True)


def load_public(path: Path) -> PublicKeyFile:
    """Read a `.pub` file.

    Raises: UsageError when it is not there; ConfigSyntax listing its problems.
    """
    return PublicKeyFile.from_bytes(_read_bounded(path, is_private=False), what=str(path))


def list_keys(directory: Path) -> tuple[PublicKeyFile, ...]:
    """Return the public keys in a folder by name; a folder that is not there holds none."""
    return tuple(load_public(path) for path in sorted(directory.glob("*.pub")))


def read_public_pem(path: Path) -> bytes:
    """Read the key in a `.pub` file, or in a PEM file as other tools write public keys.

    Raises: UsageError when it is not there or is a private key; ConfigSyntax or AlgorithmRefused naming the file.
    """
    data = _read_bounded(path, is_private=False)
    if data.startswith(b"{"):
        return PublicKeyFile.from_bytes(data, what=str(path)).public_key_pem
    if b"PRIVATE KEY-----" in data:
        raise UsageError(
            f"{path} is a private key, and only the public half is asked for",
            hint="give the `.pub` file that `spm keys new` wrote beside it",
            path=str(path),
        )
    try:
        return pem_of_spki(spki_of_pem(data))
    except AlgorithmRefused as error:
        raise AlgorithmRefused(f"{path}: {error.message}", hint=error.hint, path=str(path)) from error


def write_public(path: Path, data: bytes) -> None:
    """Write a public key to a new file that everyone may read.

    Raises: UsageError when a file is there already, or cannot be written.
    """
    _write_new(path, data, 0o644)


def _read_pem(value: object) -> bytes:
    if not isinstance(value, str):
        raise UsageError("it is not text")
    keyid_of_pem(value.encode())
    return value.encode()


def _private_pem(private_key: "EllipticCurvePrivateKey", passphrase: bytes | None) -> bytes:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        KeySerializationEncryption,
        NoEncryption,
        PrivateFormat,
    )

    encryption: KeySerializationEncryption = NoEncryption()
    if passphrase is not None:
        encryption = BestAvailableEncryption(passphrase)
    return private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def _decrypted(path: Path, data: bytes, passphrase: bytes | None) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    needs_passphrase = _ENCRYPTED in data
    if needs_passphrase and passphrase is None:
        raise UsageError(f"{path} is encrypted and no passphrase was given", path=str(path))
    try:
        return load_pem_private_key(data, passphrase if needs_passphrase else None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        why = "the passphrase does not open it" if needs_passphrase else "it is not a private key in PKCS #8 PEM"
        raise UsageError(f"{path} cannot be used: {why}", path=str(path)) from error


def _write_new(path: Path, data: bytes, mode: int) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError as error:
        raise UsageError(
            f"{path} exists, and spm overwrites no key", hint="choose another name", path=str(path)
        ) from error
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        with open(descriptor, "wb") as file:
            # The mode of `open` is cut down by the umask; what is handed out should be readable all the same.
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        path.unlink()
        raise _not_written(path, error) from error


def _not_written(path: Path, error: OSError) -> UsageError:
    return UsageError(f"the key file {path} cannot be written: {error.strerror}", path=str(path))


def _read_bounded(path: Path, *, is_private: bool) -> bytes:
    try:
        data, status = read_once(path, MAX_KEY_FILE_BYTES)
    except OSError as error:
        raise UsageError(f"the key file {path} cannot be read: {error.strerror}", path=str(path)) from error
    if not stat.S_ISREG(status.st_mode):
        raise UsageError(f"the key file {path} is not a regular file", path=str(path))
    if is_private:
        _require_private(path, stat.S_IMODE(status.st_mode))
    if len(data) > MAX_KEY_FILE_BYTES:
        raise UsageError(f"the key file {path} has more than the {MAX_KEY_FILE_BYTES} bytes allowed", path=str(path))
    return data


def _require_private(path: Path, mode: int) -> None:
    if mode & 0o077:
        raise ConfigPermissions(
            f"{path} has the mode {mode:04o}: others than its owner may use this private key",
            hint=f"`chmod 600 {path}`; if others had access, make a new key",
            path=str(path),
            mode=f"{mode:04o}",
        )

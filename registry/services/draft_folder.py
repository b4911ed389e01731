"""A draft as a folder of files, in a registry or carried to a machine without one. Signs nothing and judges nothing.

Beside the three documents lie the adopted ones that they follow, so that a signer elsewhere sees what changes. A
registry never reads those back: it has its own.
"""

from contextlib import suppress
from pathlib import Path

from keys.one_read import read_once
from manifests.errors import ConfigSyntax, NotFound, TooBig
from registry.services.root_draft import Adopted, Draft
from registry.storage.blobs import sync_folder
from registry.storage.site import write_public_file

MAX_FILE_BYTES = 4 << 20
_ROOT, _TARGETS, _KEYRING = "root.json", "targets.json", "keyring.json"
_BEFORE = "adopted-"


def holds_draft(folder: Path) -> bool:
    """Tell whether there is a draft."""
    return (folder / _TARGETS).exists()


def read_draft(folder: Path) -> Draft:
    """Read the documents that are being signed.

    Raises:
        NotFound: there is no draft.
        ConfigSyntax: a file of it is missing or cannot be read.
    """
    if not holds_draft(folder):
        raise no_draft(folder)
    return Draft(
        root=_read_optional(folder / _ROOT), targets=_read(folder / _TARGETS), keyring=_read(folder / _KEYRING)
    )


def read_adopted(folder: Path) -> Adopted | None:
    """Read what a carried draft says that it follows; None for a first root.

    Raises:
        ConfigSyntax: a file of it is missing or cannot be read.
    """
    root = _read_optional(folder / f"{_BEFORE}{_ROOT}")
    if root is None:
        for name in (_TARGETS, _KEYRING):
            if (folder / f"{_BEFORE}{name}").exists():
                raise ConfigSyntax(
                    f"the draft's {folder} holds `{_BEFORE}{name}` and no `{_BEFORE}{_ROOT}`",
                    hint="sign nothing; copy the draft's folder from the registry again",
                )
        return None
    return Adopted(
        root=root, targets=_read(folder / f"{_BEFORE}{_TARGETS}"), keyring=_read(folder / f"{_BEFORE}{_KEYRING}")
    )


def write_draft(folder: Path, draft: Draft, adopted: Adopted | None) -> None:
    """Replace the draft in a folder, file by file: what is cut short does not fit together and is refused."""
    folder.mkdir(mode=0o755, exist_ok=True)
    before = None if adopted is None else adopted.root
    _write(folder / f"{_BEFORE}{_ROOT}", before)
    _write(folder / f"{_BEFORE}{_TARGETS}", None if adopted is None else adopted.targets)
    _write(folder / f"{_BEFORE}{_KEYRING}", None if adopted is None else adopted.keyring)
    _write(folder / _KEYRING, draft.keyring)
    _write(folder / _ROOT, draft.root)
    _write(folder / _TARGETS, draft.targets)


def remove_draft(folder: Path) -> None:
    """Remove a registry's draft, and the folder unless somebody keeps something else there."""
    # The targets first: without them there is no draft.
    for name in (_TARGETS, _ROOT, _KEYRING, *(f"{_BEFORE}{name}" for name in (_ROOT, _TARGETS, _KEYRING))):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
    sync_folder(folder.parent)


def no_draft(folder: Path) -> NotFound:
    """Say that there is no draft."""
    return NotFound(
        f"there is no draft in {folder}",
        hint="`spm-registry root rotate` begins one; where there is no root yet, `spm-registry root init FILE.pub`",
    )


def _write(path: Path, data: bytes | None) -> None:
    if data is None:
        path.unlink(missing_ok=True)
    elif _read_optional(path) != data:
        write_public_file(path, data.decode("utf-8"))


def _read_optional(path: Path) -> bytes | None:
    return _read(path) if path.exists() else None


def _read(path: Path) -> bytes:
    try:
        data, _ = read_once(path, MAX_FILE_BYTES)
    except OSError as error:
        raise ConfigSyntax(f"the draft's {path} cannot be read: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise TooBig(f"the draft's {path} has more than the {MAX_FILE_BYTES} bytes allowed")
    return data

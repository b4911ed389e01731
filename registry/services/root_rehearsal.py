"""A client's own code, let loose on what is about to be committed: what it would refuse is not. Commits nothing."""

import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from keys.root_keyring import KEYRING_TARGET
from keys.trust import STRICT, TrustedIndex
from manifests.errors import ConfigError, NotFound
from registry.services.signed_index import moment
from registry.storage.records import Records

_NUMBERED = re.compile(r"([1-9][0-9]*)\.([a-z0-9-]+)\.json")
_KEYRING = re.compile(rf"targets/([0-9a-f]{{64}})\.{re.escape(KEYRING_TARGET)}")


@dataclass(frozen=True, slots=True)
class _Within:
    """The signed files as one transaction sees them, by the paths under which they will be served."""

    records: Records

    def __call__(self, path: str, max_bytes: int) -> bytes:
        row = None
        if path == "timestamp.json":
            row = self.records.signed.current("timestamp")
        elif numbered := _NUMBERED.fullmatch(path):
            row = self.records.signed.at(numbered[2], int(numbered[1]))
        elif keyring := _KEYRING.fullmatch(path):
            row = self.records.signed.with_digest("keyring", keyring[1])
        if row is None:
            raise NotFound(f"there is no {path}")
        return row.data


def require_followed(records: Records, trusted_root: bytes, keyring: bytes, now: int) -> None:
    """Go the way of a client that trusts a root, to the keyring that this transaction lets it find.

    Raises:
        SpmError: it gets another, or none.
    """
    with TemporaryDirectory(prefix="spm-ceremony-") as folder:
        index = TrustedIndex(
            Path(folder), trusted_root, _Within(records), moment(now), STRICT.of(records.registry_id())
        )
        index.refresh()
        if index.keyring() != keyring:
            raise ConfigError("a client would not find the keyring of the draft; nothing was adopted")

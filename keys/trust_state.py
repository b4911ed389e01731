"""What a host remembers of its registry's signed metadata, and what follows from it at a load. Verifies no signature.

The file was written after everything in it had been verified, and lies under the guard of the store; so a load reads
it as it reads loader.conf, without the library that verified it.
"""

import hashlib
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from keys.keyring import LoaderConf
from keys.one_read import read_once
from keys.pinned_keys import Keyring
from keys.root_keyring import RootKeyring
from manifests.canonical import canonical_bytes, parse_strict
from manifests.errors import (
    ClockSuspect,
    ConfigError,
    FileSetMismatch,
    IndexExpired,
    LinkRefused,
    SpmError,
    TypeMismatch,
    Undecided,
    UsageError,
)
from manifests.fields import Fields, document, many, matching, one_of, sha256
from manifests.names import REGISTRY_ID

STATE_TYPE = "spm.trust/1"
MAX_STATE_BYTES = 32 << 20
MAX_ROOTS = 1024
CLOCK_TOLERANCE = timedelta(hours=1)
MOMENT = "%Y-%m-%dT%H:%M:%SZ"

_FILE = re.compile(r"[0-9]{6}\.json")
_ROUNDS = 16
_DAMAGED = "the store was changed by other hands than spm's; remove its folder `trust`, then `spm trust init`"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustState:
    """Metadata as it was served, from the pinned root to the keyring; `root_sha256` is the pin that it grew from.

    What came by `spm trust import` stands beside it until the registry itself serves a keyring as new.
    """

    registry: str
    root_sha256: str
    roots: tuple[str, ...]
    timestamp: str | None = None
    snapshot: str | None = None
    targets: str | None = None
    keyring: str | None = None
    imported_targets: str | None = None
    imported_keyring: str | None = None

    @classmethod
    def from_bytes(cls, data: bytes, *, what: str = "the trust state") -> "TrustState":
        """Read the bytes of a state.

        Raises: TooBig; NotCanonical; TypeMismatch listing every problem.
        """
        value = parse_strict(data, what=what, max_bytes=MAX_STATE_BYTES)
        with document(what) as problems:
            fields = Fields(value, "", problems)
            fields.required("_type", one_of(STATE_TYPE))
            state = cls(
                registry=fields.required("registry", matching(REGISTRY_ID, "a registry id")),
                root_sha256=fields.required("root_sha256", sha256),
                roots=fields.required("roots", many(_text, MAX_ROOTS)),
                timestamp=fields.optional("timestamp", _text),
                snapshot=fields.optional("snapshot", _text),
                targets=fields.optional("targets", _text),
                keyring=fields.optional("keyring", _text),
                imported_targets=fields.optional("imported_targets", _text),
                imported_keyring=fields.optional("imported_keyring", _text),
            )
            fields.close()
            if not problems and not state.roots:
                problems.append("`roots` is empty")
        return state

    def to_bytes(self) -> bytes:
        members = ("timestamp", "snapshot", "targets", "keyring", "imported_targets", "imported_keyring")
        value: dict[str, Any] = {
            "_type": STATE_TYPE,
            "registry": self.registry,
            "root_sha256": self.root_sha256,
            "roots": list(self.roots),
        }
        value |= {name: text for name in members if (text := getattr(self, name)) is not None}
        return canonical_bytes(value)

    def root_keyring(self) -> RootKeyring:
        """Return the newest keyring that root keys have signed, served or imported.

        Raises: Undecided where there is none.
        """
        held = [RootKeyring.from_bytes(text.encode()) for text in (self.keyring, self.imported_keyring) if text]
        if not held:
            raise _unknown("the trust state has no keyring, so that nothing says which keys were revoked")
        return max(held, key=lambda keyring: keyring.serial)

    @property
    def root_version(self) -> int:
        version = _signed(self.roots[-1]).get("version")
        if type(version) is not int:
            raise TypeMismatch(f"the trust state has {ascii(version)[:40]} as the version of a root", hint=_DAMAGED)
        return version

    @property
    def issued(self) -> datetime | None:
        """Return when the registry signed the newest timestamp, by its own clock."""
        return _moment(_signed(self.timestamp).get("issued")) if self.timestamp else None

    @property
    def expires(self) -> datetime | None:
        """Return when the index is no longer fresh."""
        return _moment(_signed(self.timestamp).get("expires")) if self.timestamp else None


def read_trust_state(store_root: Path) -> TrustState | None:
    """Return the newest state of a store, or None where there never was one.

    Raises: ContentError when it is damaged; Undecided when it cannot be read.
    """
    folder = store_root / "trust"
    for _ in range(_ROUNDS):
        newest = max((name for name in _names(folder) if _FILE.fullmatch(name)), default=None)
        if newest is None:
            return None
        try:
            data, _ = read_once(folder / newest, MAX_STATE_BYTES)
        except FileNotFoundError:
            continue  # another command has just put a newer one in its place
        except OSError as error:
            unknown = _unknown(f"{folder / newest} cannot be read: {error.strerror}")
            unknown.hint = _way_out(folder / newest)
            raise unknown from error
        try:
            return TrustState.from_bytes(data, what=str(folder / newest))
        except SpmError as error:
            error.hint = _way_out(folder / newest)
            raise
    raise FileSetMismatch(f"the trust states in {folder} vanish faster than they can be read", paths=[str(folder)])


def _way_out(path: Path) -> str:
    return (
        f"`spm trust init` begins anew from the root that loader.conf pins; or remove `{path}`, "
        "and what was learnt before it counts again"
    )


def require_own(state: TrustState, conf: LoaderConf) -> None:
    """Accept a state that grew from the root that loader.conf pins.

    Raises: ConfigError.
    """
    pin = conf.require_root()
    # A newer pin is of the same chain when its root is one that the old pin has led to.
    known = {state.root_sha256, *(hashlib.sha256(root.encode()).hexdigest() for root in state.roots)}
    if state.registry != conf.registry_id or pin.sha256 not in known:
        raise ConfigError(
            f"the store trusts the registry `{state.registry}` by the root sha256:{state.root_sha256}, "
            f"but loader.conf pins `{conf.registry_id}` by sha256:{pin.sha256}",
            reason="conf-syntax",
            hint="put the old loader.conf back; or, if the change is meant, `spm trust init` begins anew from the new "
            "pin, and forgets what was seen of the old root",
            found=state.root_sha256,
            expected=pin.sha256,
        )


def trusted_keyring(store_root: Path, conf: LoaderConf, now: datetime) -> Keyring:
    """Return the keys and revocations that hold at a load, offline: loader.conf's and the registry's last known.

    Raises: ConfigError where loader.conf pins no root or another; Undecided where nothing was ever learnt;
    IndexExpired beyond `load.max_age_days`; ClockSuspect when the clock stands before what has been seen.
    """
    conf.require_root()
    state = read_trust_state(store_root)
    if state is None:
        raise _unknown(f"{store_root / 'trust'} is empty, so that nothing says which keys were revoked")
    require_own(state, conf)
    require_clock(state.issued, now)
    _require_young(state, conf.load_max_age_days, now)
    return conf.keyring.merged(state.root_keyring().keyring)


def require_clock(issued: datetime | None, now: datetime) -> None:
    """Accept a clock that does not stand before what has been signed already.

    Raises: ClockSuspect.
    """
    if issued is not None and now + CLOCK_TOLERANCE < issued:
        raise ClockSuspect(
            f"this host's clock says {now:{MOMENT}}, but the registry's index was signed at {issued:{MOMENT}}: "
            "one of the two clocks is wrong, and with such a clock nothing can be told to have expired",
            hint="set this host's clock (`date -u` shows it); if it is right, tell the registry's administrator",
            now=f"{now:{MOMENT}}",
            issued=f"{issued:{MOMENT}}",
        )


def _require_young(state: TrustState, max_age_days: int | None, now: datetime) -> None:
    if max_age_days is None:
        return
    if state.issued is None:
        raise _unknown("the trust state does not say when it was signed, and loader.conf sets `load.max_age_days`")
    if now > state.issued + timedelta(days=max_age_days):
        raise IndexExpired(
            f"the last known index was signed at {state.issued:{MOMENT}}, and it is {now:{MOMENT}}: "
            f"older than the {max_age_days} days that loader.conf allows at a load",
            hint="`spm trust update`, or bring in a newer state with `spm trust import FILE`",
            issued=f"{state.issued:{MOMENT}}",
            max_age_days=max_age_days,
        )


def _names(folder: Path) -> list[str]:
    try:
        if folder.is_symlink():  # also one that leads nowhere: that is not a store that never learnt anything
            raise LinkRefused(f"{folder} is a symbolic link, the store has none", hint=_DAMAGED, path=str(folder))
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unknown(f"{folder} cannot be read: {error.strerror}") from error


def _unknown(message: str) -> Undecided:
    return Undecided(message, reason="unknown:revocations", hint="`spm trust init` learns it from the registry")


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError("it is not text")
    return value


def _signed(metadata: str) -> dict[str, Any]:
    try:
        value = json.loads(metadata)["signed"]
    except (ValueError, TypeError, LookupError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise TypeMismatch("the trust state holds metadata without a signed part", hint=_DAMAGED)
    return value


def _moment(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.strptime(str(value), MOMENT).replace(tzinfo=UTC)
    except ValueError as error:
        raise TypeMismatch(f"the trust state has {ascii(value)[:40]} as a time", hint=_DAMAGED) from error

"""Keyrings of every shape that a document may have, for the properties of this folder. Makes no signature."""

from functools import cache

from hypothesis import strategies as st

from keys.pinned_keys import CoreKey, ExtKey, Keyring, RevocationReason, RevokedKey
from keys.public_key import KeyId
from keys.root_keyring import RootKeyring
from manifests.parts import Capabilities
from tests.keys.builders import keyid, pem

CORE_POOL, EXT_POOL = range(11, 15), range(21, 25)
"""No number is in both, so that no two of these keyrings give one key two roles."""

_CEILINGS = (None, Capabilities(), Capabilities(network=True, processes=2, read=("/data",)))
_NAMES = (("*",), ("audio-*", "log-mel"), ("image-?",))


@cache
def material(number: int) -> tuple[KeyId, bytes]:
    return keyid(number), pem(number)


def moments() -> st.SearchStrategy[str]:
    return st.datetimes().map(lambda moment: f"{moment.replace(microsecond=0).isoformat()}Z")


@st.composite
def core_keys(draw: st.DrawFn) -> CoreKey:
    found, text = material(draw(st.sampled_from(CORE_POOL)))
    return CoreKey(keyid=found, public_key_pem=text, expires=draw(st.none() | moments()))


@st.composite
def ext_keys(draw: st.DrawFn) -> ExtKey:
    found, text = material(draw(st.sampled_from(EXT_POOL)))
    return ExtKey(
        keyid=found,
        public_key_pem=text,
        publisher=draw(st.sampled_from(["audio-team", "ben"])),
        names=draw(st.sampled_from(_NAMES)),
        ceiling=draw(st.sampled_from(_CEILINGS)),
        expires=draw(st.none() | moments()),
    )


@st.composite
def revoked_keys(draw: st.DrawFn) -> RevokedKey:
    found, _ = material(draw(st.sampled_from([*CORE_POOL, *EXT_POOL])))
    since = draw(st.none() | moments())
    reason = RevocationReason.COMPROMISED if since is None else RevocationReason.RETIRED
    return RevokedKey(keyid=found, reason=reason, since=since)


@st.composite
def keyrings(draw: st.DrawFn) -> Keyring:
    core = draw(st.lists(core_keys(), max_size=3, unique_by=lambda key: key.keyid))
    return Keyring(
        core_threshold=draw(st.integers(1, len(core) or 9)),
        core_keys=tuple(core),
        ext_keys=tuple(draw(st.lists(ext_keys(), max_size=3, unique_by=lambda key: key.keyid))),
        revoked_keys=tuple(draw(st.lists(revoked_keys(), max_size=4, unique_by=lambda key: key.keyid))),
        revoked_manifests=draw(st.frozensets(st.sampled_from([f"{number:064x}" for number in range(4)]))),
    )


def root_keyrings() -> st.SearchStrategy[RootKeyring]:
    return st.builds(
        RootKeyring,
        registry=st.sampled_from(["team.example", "plugins-2"]),
        serial=st.integers(1, (1 << 53) - 1),
        keyring=keyrings(),
    )

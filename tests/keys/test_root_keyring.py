"""The registry's keyring document: round trips, every fault, and the ways to edit it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.key_files import KeyRole, PublicKeyFile
from keys.pinned_keys import CoreKey, ExtKey, RevocationReason, RevokedKey
from keys.public_key import KeyId
from keys.root_keyring import MAX_KEYRING_BYTES, RootKeyring
from manifests.canonical import canonical_bytes
from manifests.errors import NotCanonical, NotFound, SpmError, TooBig, TypeMismatch, UsageError
from manifests.parts import Capabilities
from tests.keys.builders import CORE, CORE_TWO, EXT, STRANGER, UNHURRIED, keyid, pem, refusal_of
from tests.keys.keyring_strategies import root_keyrings
from tests.keys.refused_keys import REFUSED_KEYS, digest, problem

MOMENT = "2027-01-31T12:00:00Z"
REFUSED = "the registry's keyring is refused: "
THRESHOLD_HINT = "see `spm-registry keyring threshold` and `keyring remove`"
Edit = Callable[[dict[str, Any]], object]


def public_file(number: int, role: KeyRole) -> PublicKeyFile:
    return PublicKeyFile(
        name="release", role=role, publisher="audio-team", keyid=keyid(number), public_key_pem=pem(number)
    )


def full() -> dict[str, Any]:
    """Return a document with every member, two core keys, an ext key, and both kinds of revocation."""
    return {
        "_type": "spm.keyring/1",
        "registry": "team.example",
        "serial": 7,
        "core": {
            "threshold": 2,
            "keys": [
                {"keyid": keyid(CORE), "public_key": pem(CORE).decode(), "expires": MOMENT},
                {"keyid": keyid(CORE_TWO), "public_key": pem(CORE_TWO).decode()},
            ],
        },
        "ext": [
            {
                "keyid": keyid(EXT),
                "public_key": pem(EXT).decode(),
                "publisher": "audio-team",
                "names": ["audio-*", "log-mel"],
                "capabilities": Capabilities(processes=2, read=("/data",)).to_dict(),
                "expires": MOMENT,
            }
        ],
        "revoked_keys": [
            {"keyid": keyid(STRANGER), "reason": "retired", "since": MOMENT},
            {"keyid": keyid(EXT), "reason": "compromised"},
        ],
        "revoked_manifests": ["ab" * 32, "cd" * 32],
    }


def small() -> RootKeyring:
    """Return a keyring of one core key and one ext key."""
    listed = RootKeyring.empty("team.example").with_key(public_file(CORE, KeyRole.CORE), (), None)
    return listed.with_key(public_file(EXT, KeyRole.EXT), ("audio-*",), None)


def test_every_member_is_read() -> None:
    document = RootKeyring.from_bytes(canonical_bytes(full()))

    assert (document.registry, document.serial, document.keyring.core_threshold) == ("team.example", 7, 2)
    assert document.keyring.core_keys == (
        CoreKey(keyid=keyid(CORE), public_key_pem=pem(CORE), expires=MOMENT),
        CoreKey(keyid=keyid(CORE_TWO), public_key_pem=pem(CORE_TWO)),
    )
    assert document.keyring.ext_keys == (
        ExtKey(
            keyid=keyid(EXT),
            public_key_pem=pem(EXT),
            publisher="audio-team",
            names=("audio-*", "log-mel"),
            ceiling=Capabilities(processes=2, read=("/data",)),
            expires=MOMENT,
        ),
    )
    assert document.keyring.revoked_keys == (
        RevokedKey(keyid=keyid(STRANGER), reason=RevocationReason.RETIRED, since=MOMENT),
        RevokedKey(keyid=keyid(EXT), reason=RevocationReason.COMPROMISED),
    )
    assert document.keyring.revoked_manifests == {"ab" * 32, "cd" * 32}
    assert document.to_dict() == full()


def test_first_keyring_of_a_registry_is_this_line() -> None:
    assert RootKeyring.empty("team.example").to_bytes() == (
        b'{"_type":"spm.keyring/1","core":{"keys":[],"threshold":1},"ext":[],"registry":"team.example",'
        b'"revoked_keys":[],"revoked_manifests":[],"serial":1}'
    )


@pytest.mark.property
@UNHURRIED
@given(document=root_keyrings())
def test_keyring_makes_the_round_trip(document: RootKeyring) -> None:
    data = document.to_bytes()

    assert RootKeyring.from_bytes(data) == document
    assert RootKeyring.from_bytes(data).to_bytes() == data


def _set(*path: Any) -> Edit:
    """Return an edit that puts the last word at the path of the others."""

    def edit(value: Any) -> None:
        for step in path[:-2]:
            value = value[step]
        value[path[-2]] = path[-1]

    return edit


def _drop(*path: Any) -> Edit:
    def edit(value: Any) -> None:
        for step in path[:-1]:
            value = value[step]
        del value[path[-1]]

    return edit


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        *((_drop(name), f"`{name}` is missing") for name in ("_type", "registry", "serial", "revoked_manifests")),
        *((_drop(name), f"`{name}` is missing") for name in ("ext", "revoked_keys")),
        (_drop("core"), "`core.threshold` is missing; `core.keys` is missing"),
        (_drop("core", "keys"), "`core.keys` is missing"),
        (_set("_type", "spm.keyring/2"), "`_type`: 'spm.keyring/2' is not one of `spm.keyring/1`"),
        (_set("registry", "Team"), "`registry`: 'Team' is not a registry id"),
        (_set("serial", 0), "`serial`: '0' is not a whole number from 1 to 9007199254740991"),
        (_set("serial", True), "`serial`: 'True' is not a whole number from 1 to 9007199254740991"),
        (_set("expires", MOMENT), "`expires` is not a known member"),
        (_set("core", "role", "ext"), "`core.role` is not a known member"),
        (_set("core", "keys", 0, "names", []), "`core.keys[0].names` is not a known member"),
        (_set("ext", 0, "any", True), "`ext[0].any` is not a known member"),
        (_set("revoked_keys", 0, "by", "me"), "`revoked_keys[0].by` is not a known member"),
        (_set("core", "threshold", 0), "`core.threshold`: '0' is not a whole number from 1 to 1024"),
        (_set("core", "threshold", -1), "`core.threshold`: '-1' is not a whole number from 1 to 1024"),
        (_set("core", "threshold", 3), "`core.threshold` is 3, but there are only 2 core keys"),
        (
            _set("core", "keys", 1, {"keyid": keyid(CORE), "public_key": pem(CORE).decode()}),
            f"`core.keys[1]` and `core.keys[0]` are the same key {keyid(CORE)}",
        ),
        (
            _set("core", "keys", 1, {"keyid": keyid(EXT), "public_key": pem(EXT).decode()}),
            f"`ext[0]` and `core.keys[1]` are the same key {keyid(EXT)}",
        ),
        (
            _set("core", "keys", 1, "public_key", pem(CORE).decode()),
            f"`core.keys[1].public_key`: its key id is {keyid(CORE)}, not the {keyid(CORE_TWO)} written beside it",
        ),
        (_set("core", "keys", 1, "public_key", 5), "`core.keys[1].public_key`: it is not text"),
        (
            _set("ext", 0, "names", []),
            "`ext[0].names`: it is empty, so this key could sign nothing; "
            'write `["*"]` to let it sign every ext plugin',
        ),
        (
            _set("ext", 0, "expires", "soon"),
            "`ext[0].expires`: 'soon' is not a UTC time such as 2026-01-31T12:00:00Z",
        ),
        (
            _set("revoked_keys", 1, "keyid", keyid(STRANGER)),
            f"`revoked_keys[1]` and `revoked_keys[0]` are the same key {keyid(STRANGER)}",
        ),
        (_drop("revoked_keys", 0, "since"), "`revoked_keys[0].since` is missing"),
        (
            _set("revoked_keys", 1, "since", MOMENT),
            "`revoked_keys[1].since`: a compromised key is revoked for all that it ever signed: "
            "its thief can write any date",
        ),
        (
            _set("revoked_manifests", ["AB" * 32]),
            f"`revoked_manifests`: {'AB' * 32!r} is not a SHA-256 digest of 64 lower-case hex digits",
        ),
    ],
)
def test_fault_is_refused_with_its_path(edit: Edit, fault: str) -> None:
    value = full()
    edit(value)

    with pytest.raises(TypeMismatch) as caught:
        RootKeyring.from_bytes(canonical_bytes(value))

    assert caught.value.message == REFUSED + fault
    assert (caught.value.exit_code, caught.value.reason) == (25, "type")


@pytest.mark.parametrize("name", REFUSED_KEYS)
@pytest.mark.parametrize(("place", "path"), [(("core", "keys", 0), "core.keys[0]"), (("ext", 0), "ext[0]")])
def test_key_of_another_kind_is_refused_when_read(place: tuple[Any, ...], path: str, name: str) -> None:
    value = full()
    _set(*place, "keyid", digest(name))(value)
    _set(*place, "public_key", REFUSED_KEYS[name][0].decode())(value)

    with pytest.raises(TypeMismatch) as caught:
        RootKeyring.from_bytes(canonical_bytes(value))

    assert caught.value.message == f"{REFUSED}`{path}.public_key`: {problem(name)}"


def test_another_spelling_of_the_document_is_refused() -> None:
    with pytest.raises(NotCanonical) as caught:
        RootKeyring.from_bytes(json.dumps(full()).encode())

    assert caught.value.message == "the registry's keyring is not in RFC 8785 canonical form"


def test_document_beyond_the_bound_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(TooBig) as caught:
        RootKeyring.from_bytes(b"x" * (MAX_KEYRING_BYTES + 1))

    assert caught.value.message == "the registry's keyring has 1048577 bytes, more than the 1048576 allowed"


@pytest.mark.property
@UNHURRIED
@given(place=st.integers(0, len(canonical_bytes(full()))), length=st.integers(0, 9), inserted=st.binary(max_size=5))
def test_any_edit_is_read_or_refused_and_no_other_error(place: int, length: int, inserted: bytes) -> None:
    data = canonical_bytes(full())
    changed = data[:place] + inserted + data[place + length :]

    refusal = refusal_of(lambda: RootKeyring.from_bytes(changed))

    if refusal is None:
        document = RootKeyring.from_bytes(changed)
        assert RootKeyring.from_bytes(document.to_bytes()) == document
        assert {key.keyid for key in document.keyring.core_keys} <= {keyid(CORE), keyid(CORE_TWO)}
    else:
        assert refusal.exit_code == 25


def test_keys_are_added_with_the_terms_given() -> None:
    document = small().with_key(public_file(STRANGER, KeyRole.EXT), ("image-*", "b"), MOMENT)

    assert document.keyring.core_keys == (CoreKey(keyid=keyid(CORE), public_key_pem=pem(CORE)),)
    assert document.keyring.ext_keys[1] == ExtKey(
        keyid=keyid(STRANGER),
        public_key_pem=pem(STRANGER),
        publisher="audio-team",
        names=("image-*", "b"),
        ceiling=None,
        expires=MOMENT,
    )


@pytest.mark.parametrize(
    ("number", "role", "names", "message", "hint"),
    [
        (
            CORE,
            KeyRole.CORE,
            (),
            f"the keyring has the key {keyid(CORE)} already",
            "to change its terms, remove it first",
        ),
        (
            CORE,
            KeyRole.EXT,
            ("*",),
            f"the keyring has the key {keyid(CORE)} already",
            "to change its terms, remove it first",
        ),
        (
            STRANGER,
            KeyRole.ROOT,
            (),
            "the root key `release` signs no plugins",
            "`spm-registry root add-key release.pub`",
        ),
        (
            STRANGER,
            KeyRole.CORE,
            ("*",),
            "the core key `release` takes no names: it signs every core plugin",
            "leave out `--names`",
        ),
        (
            STRANGER,
            KeyRole.EXT,
            (),
            "the ext key `release` needs the names of the plugins that it may sign",
            "add `--names 'audio-team-*'`, or `--names '*'` for all",
        ),
        (
            STRANGER,
            KeyRole.EXT,
            ("[a-z]",),
            "'[a-z]' is not a pattern of plugin names (a-z 0-9 - with * and ?)",
            "",
        ),
    ],
)
def test_key_that_does_not_fit_is_not_added(
    number: int, role: KeyRole, names: tuple[str, ...], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        small().with_key(public_file(number, role), names, None)

    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_key_is_taken_out_and_its_revocation_stays() -> None:
    revoked = RevokedKey(keyid=keyid(EXT), reason=RevocationReason.COMPROMISED)

    document = small().with_revoked(revoked).without_key(keyid(EXT))

    assert document.keyring.ext_keys == ()
    assert document.keyring.revoked_keys == (revoked,)


def test_key_that_is_not_there_cannot_be_taken_out() -> None:
    with pytest.raises(NotFound) as caught:
        small().without_key(keyid(STRANGER))

    assert caught.value.message == f"the keyring has no key '{keyid(STRANGER)}'"
    assert caught.value.hint == "`spm-registry keyring show` lists its keys"


def test_threshold_that_the_rest_could_not_meet_keeps_a_key_in() -> None:
    document = small().with_key(public_file(CORE_TWO, KeyRole.CORE), (), None).with_threshold(2)

    with pytest.raises(UsageError) as caught:
        document.without_key(keyid(CORE))

    assert caught.value.message == "`core.threshold` is 2, but there is only 1 core key"
    assert caught.value.hint == THRESHOLD_HINT


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        (0, "'0' is not a whole number from 1 to 1024"),
        (-1, "'-1' is not a whole number from 1 to 1024"),
        (2, "`core.threshold` is 2, but there is only 1 core key"),
    ],
)
def test_threshold_that_means_nothing_is_refused(threshold: int, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        small().with_threshold(threshold)

    assert caught.value.message == message


def test_later_revocation_of_a_key_takes_the_place_of_the_earlier() -> None:
    retired = RevokedKey(keyid=keyid(EXT), reason=RevocationReason.RETIRED, since=MOMENT)
    compromised = RevokedKey(keyid=keyid(EXT), reason=RevocationReason.COMPROMISED)

    assert small().with_revoked(retired).with_revoked(compromised).keyring.revoked_keys == (compromised,)


def test_manifest_is_revoked_once() -> None:
    document = small().with_revoked_manifest("ab" * 32).with_revoked_manifest("ab" * 32)

    assert document.keyring.revoked_manifests == {"ab" * 32}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda document: document.with_revoked_manifest("ab"),
            "'ab' is not a SHA-256 digest of 64 lower-case hex digits",
        ),
        (
            lambda document: document.with_revoked(RevokedKey(keyid=KeyId("me"), reason=RevocationReason.COMPROMISED)),
            REFUSED + "`revoked_keys[0].keyid`: 'me' is not a key id of 64 lower-case hex digits",
        ),
        (
            lambda document: document.with_revoked(RevokedKey(keyid=keyid(EXT), reason=RevocationReason.RETIRED)),
            REFUSED + "`revoked_keys[0].since` is missing",
        ),
        (
            lambda document: document.with_key(public_file(STRANGER, KeyRole.CORE), (), "soon"),
            REFUSED + "`core.keys[1].expires`: 'soon' is not a UTC time such as 2026-01-31T12:00:00Z",
        ),
    ],
)
def test_what_no_host_could_read_is_not_written(edit: Callable[[RootKeyring], RootKeyring], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        edit(small())

    assert caught.value.message == message


def test_more_revoked_manifests_than_hosts_read_are_refused() -> None:
    value = full()
    value["revoked_manifests"] = [f"{number:064x}" for number in range(4096)]
    document = RootKeyring.from_dict(value)

    with pytest.raises(SpmError) as caught:
        document.with_revoked_manifest("ab" * 32)

    assert type(caught.value) is UsageError
    assert caught.value.message.endswith("is not a list of at most 4096 items")


def test_next_edition_says_the_same_under_the_next_serial() -> None:
    document = RootKeyring.from_dict(full())

    assert document.following().to_dict() == {**full(), "serial": 8}

"""loader.conf on trust beyond its keys: the root, ages, expiries, revocations, and what becomes of keys of no use."""

import pytest

from keys.key_files import KeyRole, PublicKeyFile
from keys.keyring import FULL_HASH_BYTES, LoaderConf, RootPin, loader_block
from keys.pinned_keys import RevocationReason, RevokedKey
from manifests.errors import ConfigSyntax, UsageError
from tests.keys.builders import CORE, EXT, STRANGER, conf_text, keyid, pem, pinned
from tests.keys.refused_keys import REFUSED_KEYS, digest, problem

PIN = "ab" * 32
MOMENT = "2027-01-31T12:00:00Z"
TRUST = (
    f'[root]\nversion = 3\nsha256 = "{PIN}"\n[load]\nmax_age_days = 30\nfull_hash_bytes = 0\n'
    "[bundle]\nmax_age_days = 7\n[revoked]\n"
    f'keys = [{{ keyid = "{keyid(STRANGER)}", reason = "retired", since = "{MOMENT}" }}, '
    f'{{ keyid = "{keyid(EXT)}", reason = "compromised" }}]\n'
    f'manifests = ["{"cd" * 32}"]\n'
)
FULL = conf_text(more=f'expires = "{MOMENT}"\n') + TRUST


def refusal(text: str) -> str:
    with pytest.raises(ConfigSyntax) as caught:
        LoaderConf.parse(text)
    assert (caught.value.exit_code, caught.value.reason) == (26, "conf-syntax")
    return caught.value.message


def test_every_member_is_read() -> None:
    conf = LoaderConf.parse(FULL)

    assert conf.root == conf.require_root() == RootPin(version=3, sha256=PIN)
    assert (conf.load_max_age_days, conf.full_hash_bytes, conf.bundle_max_age_days) == (30, 0, 7)
    assert conf.keyring.ext_keys[0].expires == MOMENT
    assert conf.keyring.revoked_keys == (
        RevokedKey(keyid=keyid(STRANGER), reason=RevocationReason.RETIRED, since=MOMENT),
        RevokedKey(keyid=keyid(EXT), reason=RevocationReason.COMPROMISED, since=None),
    )
    assert conf.keyring.revoked_manifests == {"cd" * 32}


def test_core_key_may_have_an_expiry() -> None:
    text = conf_text(ext=()) + f'expires = "{MOMENT}"\n'

    assert [key.expires for key in LoaderConf.parse(text).keyring.core_keys] == [MOMENT]


def test_all_of_it_may_be_left_out() -> None:
    conf = LoaderConf.parse('[registry]\nid = "team.example"\nurl = "http://127.0.0.1:8080"\n')

    assert conf.root is None
    assert (conf.load_max_age_days, conf.full_hash_bytes, conf.bundle_max_age_days) == (None, FULL_HASH_BYTES, 0)
    assert (conf.keyring.core_threshold, conf.keyring.core_keys, conf.keyring.ext_keys) == (1, (), ())
    assert (conf.keyring.revoked_keys, conf.keyring.revoked_manifests) == ((), frozenset())


def test_without_a_root_what_needs_one_is_refused() -> None:
    with pytest.raises(ConfigSyntax) as caught:
        LoaderConf.parse(conf_text()).require_root()

    assert caught.value.message == (
        "loader.conf pins no root of the registry `team.example` (`[root]` with `version` and `sha256`), "
        "and without it nothing says that an index is the registry's own"
    )
    assert caught.value.hint == (
        "it was written before the registry had a root: its administrator runs `spm-registry root init` once, "
        "then `spm-registry loader-conf --output loader.conf`"
    )
    assert (caught.value.exit_code, caught.value.reason) == (26, "conf-syntax")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("version = 3\n", "", "`root.version` is missing"),
        ("version = 3", "version = 0", "`root.version`: '0' is not a whole number from 1 to 2147483648"),
        (f'sha256 = "{PIN}"\n', "", "`root.sha256` is missing"),
        (PIN, "AB" * 32, f"`root.sha256`: {'AB' * 32!r} is not a SHA-256 digest of 64 lower-case hex digits"),
        ("[root]\n", "[root]\nurl = 'x'\n", "`root.url` is not a known member"),
        ("= 30", "= 0", "`load.max_age_days`: '0' is not a whole number from 1 to 3650"),
        ("= 30", "= '30'", "`load.max_age_days`: '30' is not a whole number from 1 to 3650"),
        ("bytes = 0", "bytes = -1", "`load.full_hash_bytes`: '-1' is not a whole number from 0 to 9007199254740992"),
        ("[load]\n", "[load]\nmax_age = 1\n", "`load.max_age` is not a known member"),
        ("= 7", "= 3651", "`bundle.max_age_days`: '3651' is not a whole number from 0 to 3650"),
        ("[bundle]\n", "[bundle]\nany = true\n", "`bundle.any` is not a known member"),
        (
            f'expires = "{MOMENT}"',
            'expires = "2027-02-29T12:00:00Z"',
            "`ext[0].expires`: '2027-02-29T12:00:00Z' is not a UTC time such as 2026-01-31T12:00:00Z",
        ),
        (
            f'since = "{MOMENT}"',
            'since = "2027-01-31"',
            "`revoked.keys[0].since`: '2027-01-31' is not a UTC time such as 2026-01-31T12:00:00Z",
        ),
        (f', since = "{MOMENT}"', "", "`revoked.keys[0].since` is missing"),
        (
            '"compromised"',
            f'"compromised", since = "{MOMENT}"',
            "`revoked.keys[1].since`: a compromised key is revoked for all that it ever signed: "
            "its thief can write any date",
        ),
        ('"compromised"', '"lost"', "`revoked.keys[1].reason`: 'lost' is not one of `retired`, `compromised`"),
        (', reason = "compromised"', "", "`revoked.keys[1].reason` is missing"),
        (
            f'{{ keyid = "{keyid(STRANGER)}"',
            '{ keyid = "me"',
            "`revoked.keys[0].keyid`: 'me' is not a key id of 64 lower-case hex digits",
        ),
        (
            keyid(STRANGER),
            keyid(EXT),
            f"`revoked.keys[1]` and `revoked.keys[0]` are the same key {keyid(EXT)}",
        ),
        ("cd" * 32, "cd", "`revoked.manifests`: 'cd' is not a SHA-256 digest of 64 lower-case hex digits"),
        ("[revoked]\n", "[revoked]\nnames = []\n", "`revoked.names` is not a known member"),
    ],
)
def test_fault_is_refused_with_its_path(old: str, new: str, fault: str) -> None:
    assert old in FULL

    assert refusal(FULL.replace(old, new)) == f"loader.conf is refused: {fault}"


@pytest.mark.parametrize("table", ["root", "load", "bundle", "revoked"])
def test_member_that_is_no_table_is_refused(table: str) -> None:
    assert f"`{table}` is not a table" in refusal(f"{table} = 1\n{conf_text()}")


@pytest.mark.parametrize("name", REFUSED_KEYS)
@pytest.mark.parametrize(("number", "path"), [(CORE, "core.keys[0]"), (EXT, "ext[0]")])
def test_key_of_another_kind_is_refused_when_read(number: int, path: str, name: str) -> None:
    odd = f'keyid = "{digest(name)}"\npublic_key = """\n{REFUSED_KEYS[name][0].decode()}"""\n'

    assert refusal(conf_text().replace(pinned(number), odd)) == (
        f"loader.conf is refused: `{path}.public_key`: {problem(name)}"
    )


@pytest.mark.parametrize("spelling", ["\n{}\n\n", "{}", "  {}"])
def test_key_in_another_spelling_is_the_same_key(spelling: str) -> None:
    """One key cannot be counted twice by white space around it, and has one id only."""
    again = f'[[core.keys]]\nkeyid = "{keyid(CORE)}"\npublic_key = """{spelling.format(pem(CORE).decode())}"""\n'

    assert refusal(conf_text(ext=(), threshold=2) + again) == (
        f"loader.conf is refused: `core.keys[1]` and `core.keys[0]` are the same key {keyid(CORE)}"
    )


def test_key_under_another_id_is_refused() -> None:
    again = f'[[core.keys]]\nkeyid = "{"0" * 64}"\npublic_key = """{pem(CORE).decode()}"""\n'

    assert refusal(conf_text(ext=(), threshold=2) + again) == (
        f"loader.conf is refused: `core.keys[1].public_key`: its key id is {keyid(CORE)}, "
        f"not the {'0' * 64} written beside it"
    )


@pytest.mark.parametrize("names", [(), ("*",)])
def test_root_key_has_no_lines_in_loader_conf(names: tuple[str, ...]) -> None:
    key = PublicKeyFile(
        name="ana", role=KeyRole.ROOT, publisher="ana", keyid=keyid(STRANGER), public_key_pem=pem(STRANGER)
    )

    with pytest.raises(UsageError) as caught:
        loader_block(key, names)

    assert caught.value.message == "the root key `ana` signs no plugins: it vouches for a registry's index"
    assert caught.value.hint == "give it to `spm-registry root init ana.pub`; loader.conf then pins the root"

"""loader.conf: what it says, who may write it, and every way to refuse it."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.key_files import KeyRole, PublicKeyFile
from keys.keyring import MAX_CONF_BYTES, LoaderConf, loader_block
from keys.pinned_keys import CoreKey, ExtKey
from manifests.errors import ConfigMissing, ConfigPermissions, ConfigSyntax, KeyRoleMismatch, KeyUnknown, UsageError
from manifests.parts import Capabilities
from tests.keys.builders import (
    CORE,
    CORE_TWO,
    EXT,
    STRANGER,
    UNHURRIED,
    acting_as,
    conf_text,
    keyid,
    keyring,
    pem,
    pinned,
    refusal_of,
)

FULL = conf_text(more="capabilities = { processes = 2, read = ['/data'] }\n") + (
    '[sandbox]\naccept_missing = ["L6", "L10"]\n[limits]\nmemory_bytes = 2147483648\n'
)


def written(directory: Path, text: str, mode: int = 0o644) -> Path:
    path = directory / "loader.conf"
    path.write_bytes(text.encode())
    path.chmod(mode)
    return path


def refusal(text: str) -> str:
    with pytest.raises(ConfigSyntax) as caught:
        LoaderConf.parse(text)
    assert (caught.value.exit_code, caught.value.reason) == (26, "conf-syntax")
    return caught.value.message


def test_every_member_is_read() -> None:
    conf = LoaderConf.parse(FULL)

    assert (conf.registry_id, conf.registry_url) == ("team.example", "http://127.0.0.1:8080")
    assert conf.keyring.core_threshold == 1
    assert conf.keyring.core_keys == (CoreKey(keyid=keyid(CORE), public_key_pem=pem(CORE)),)
    assert conf.keyring.ext_keys == (
        ExtKey(
            keyid=keyid(EXT),
            public_key_pem=pem(EXT),
            publisher="audio-team",
            names=("audio-*", "log-mel"),
            ceiling=Capabilities(processes=2, read=("/data",)),
        ),
    )
    assert conf.accept_missing == ("L6", "L10")
    assert conf.memory_bytes == 2147483648


def test_optional_tables_may_be_left_out() -> None:
    conf = LoaderConf.parse(conf_text())

    assert conf.accept_missing == ()
    assert conf.memory_bytes is None
    assert conf.keyring.ext_keys[0].ceiling is None


def test_registry_may_claim_names() -> None:
    claiming = conf_text().replace("[registry]", '[registry]\nnames = ["px-*", "log-mel"]')

    assert LoaderConf.parse(claiming).registry_names == ("px-*", "log-mel")
    assert LoaderConf.parse(conf_text()).registry_names is None


def test_fresh_registry_has_no_keys_and_may_ask_for_any_threshold() -> None:
    assert keyring((), (), threshold=3).core_keys == ()


def test_slash_at_the_end_of_the_url_is_no_part_of_it() -> None:
    assert LoaderConf.parse(conf_text().replace(":8080", ":8080/spm/")).registry_url == "http://127.0.0.1:8080/spm"


def test_keys_are_looked_up_by_role() -> None:
    ring = keyring()

    assert ring.core_key(keyid(CORE)).public_key_pem == pem(CORE)
    assert ring.ext_key(keyid(EXT)).publisher == "audio-team"
    assert ring.role_of(keyid(STRANGER)) is None


def test_key_of_the_other_role_is_refused() -> None:
    with pytest.raises(KeyRoleMismatch) as caught:
        keyring().core_key(keyid(EXT))

    assert caught.value.message == (
        f"the core signature is by the key {keyid(EXT)}, which is trusted for ext plugins only"
    )
    assert caught.value.hint == "sign with a key of the role core"


def test_key_that_is_not_pinned_is_refused() -> None:
    with pytest.raises(KeyUnknown) as caught:
        keyring().ext_key(keyid(STRANGER))

    assert caught.value.message == (
        f"the ext signature is by the key {keyid(STRANGER)}, which neither loader.conf nor the registry's keyring names"
    )
    assert caught.value.hint == (
        "if you trust that key, ask its owner for the .pub file and add it to loader.conf, "
        "or have the registry's root holders add it to the keyring"
    )


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('id = "team.example"\n', "", "`registry.id` is missing"),
        (
            'id = "team.example"',
            'id = "Team"',
            "`registry.id`: 'Team' is not a registry id (a-z 0-9 . - and 64 at most)",
        ),
        (
            "http://",
            "ftp://",
            "`registry.url`: 'ftp://127.0.0.1:8080' is not an http or https URL without user, query or fragment",
        ),
        (
            "http://",
            "http://me:pw@",
            "`registry.url`: 'http://me:pw@127.0.0.1:8080' is not an http or https URL without user, query or fragment",
        ),
        ("threshold = 1\n", "", "`core.threshold` is missing"),
        ("threshold = 1", "threshold = 0", "`core.threshold`: '0' is not a whole number from 1 to 1024"),
        ("threshold = 1", "threshold = true", "`core.threshold`: 'True' is not a whole number from 1 to 1024"),
        ("threshold = 1", "threshold = 2", "`core.threshold` is 2, but there is only 1 core key"),
        ("threshold = 1", "threshold = 1\nthreshhold = 2", "`core.threshhold` is not a known member"),
        ("[sandbox]", "[sandbox]\nverify = false", "`sandbox.verify` is not a known member"),
        ("[limits]", "[limits]\ncpu = 1", "`limits.cpu` is not a known member"),
        ("[registry]", "insecure = true\n[registry]", "`insecure` is not a known member"),
        ("[[core.keys]]", "[[core.keys]]\nrole = 'ext'", "`core.keys[0].role` is not a known member"),
        ("[[ext]]", "[[ext]]\nany = true", "`ext[0].any` is not a known member"),
        ("processes = 2", "procs = 2", "`ext[0].capabilities`: `procs` is not a known member"),
        (
            "processes = 2",
            "processes = -1",
            "`ext[0].capabilities`: `processes`: '-1' is not a whole number from 0 to 4096",
        ),
        (
            "audio-*",
            "[a-z]*",
            "`ext[0].names`: '[a-z]*' is not a pattern of plugin names (a-z 0-9 - with * and ?)",
        ),
        (
            '["audio-*", "log-mel"]',
            "[]",
            "`ext[0].names`: it is empty, so this key could sign nothing; "
            'write `["*"]` to let it sign every ext plugin',
        ),
        (
            "[registry]",
            "[registry]\nnames = []",
            "`registry.names`: it is empty, so this registry would be asked for nothing; leave it out where it claims "
            "none",
        ),
        (
            "[registry]",
            '[registry]\nnames = ["px-*", "Px"]',
            "`registry.names`: 'Px' is not a pattern of plugin names (a-z 0-9 - with * and ?)",
        ),
        ('"L6"', '"all"', "`sandbox.accept_missing`: 'all' is not a sandbox layer such as `L6`"),
        ("2147483648", "0", "`limits.memory_bytes`: '0' is not a whole number from 1 to 9007199254740992"),
        (str(keyid(CORE)), "ab", "`core.keys[0].keyid`: 'ab' is not a key id of 64 lower-case hex digits"),
        (
            str(keyid(EXT)),
            str(keyid(CORE_TWO)),
            f"`ext[0].public_key`: its key id is {keyid(EXT)}, not the {keyid(CORE_TWO)} written beside it",
        ),
        (pinned(EXT), pinned(CORE), f"`ext[0]` and `core.keys[0]` are the same key {keyid(CORE)}"),
    ],
)
def test_fault_is_refused_with_its_path(old: str, new: str, problem: str) -> None:
    assert old in FULL

    assert refusal(FULL.replace(old, new)) == f"loader.conf is refused: {problem}"


@pytest.mark.parametrize(
    ("core", "ext", "problem"),
    [
        ((CORE, CORE), (), f"`core.keys[1]` and `core.keys[0]` are the same key {keyid(CORE)}"),
        ((CORE,), (EXT, EXT), f"`ext[1]` and `ext[0]` are the same key {keyid(EXT)}"),
    ],
)
def test_key_that_is_there_twice_is_refused(core: tuple[int, ...], ext: tuple[int, ...], problem: str) -> None:
    assert refusal(conf_text(core, ext)) == f"loader.conf is refused: {problem}"


def test_all_problems_are_told_at_once() -> None:
    text = conf_text().replace("threshold = 1", "threshold = 0").replace('id = "team.example"', "ID = 1")

    assert refusal(text) == (
        "loader.conf is refused: `registry.id` is missing; "
        "`core.threshold`: '0' is not a whole number from 1 to 1024; `registry.ID` is not a known member"
    )


@pytest.mark.parametrize("text", ["[registry", "a = 1\na = 2", "a = " + "[" * 5000, "a = " + "9" * 5000])
def test_text_that_is_no_toml_is_refused(text: str) -> None:
    assert refusal(text).startswith("loader.conf is not TOML: ")


@pytest.mark.parametrize("text", ["registry = 1", "core = []", "ext = 3", "[[registry]]", "[core]\nkeys = [1]"])
def test_member_of_another_shape_is_refused(text: str) -> None:
    refusal(text)


@pytest.mark.property
@UNHURRIED
@given(
    place=st.integers(0, len(FULL)),
    length=st.integers(0, 9),
    inserted=st.text(alphabet="[]{}=\"'#\n\\a1.-", max_size=5),
)
def test_any_edit_is_read_or_refused_and_no_other_error(place: int, length: int, inserted: str) -> None:
    changed = FULL[:place] + inserted + FULL[place + length :]

    refusal = refusal_of(lambda: LoaderConf.parse(changed))

    if refusal is None:
        ring = LoaderConf.parse(changed).keyring
        assert {key.keyid for key in ring.core_keys} <= {keyid(CORE)}
        assert {key.keyid for key in ring.ext_keys} <= {keyid(EXT)}
    else:
        assert refusal.exit_code == 26


def test_file_is_read(tmp_path: Path) -> None:
    # Only a file that root owns may waive layers, as the full one does.
    text = FULL if os.geteuid() == 0 else conf_text()

    assert LoaderConf.read(written(tmp_path, text)) == LoaderConf.parse(text)


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666, 0o622])
def test_file_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path, FULL, mode)

    with pytest.raises(ConfigPermissions) as caught:
        LoaderConf.read(path)

    assert caught.value.message == (
        f"{path} has the mode {mode:04o}: its group or everyone may write it, so it cannot say whom to trust"
    )
    assert caught.value.hint == f"`chmod go-w {path}`, after a look at what it says"
    assert (caught.value.exit_code, caught.value.reason) == (26, "conf-perms")


def test_permissions_are_judged_before_the_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigPermissions):
        LoaderConf.read(written(tmp_path, "no toml", 0o666))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, FULL)
    os.chown(path, 12345, 12345)

    with pytest.raises(ConfigPermissions) as caught:
        LoaderConf.read(path)

    assert caught.value.message == (
        f"{path} belongs to the user 12345: only root and the user who runs spm (0) may say whom to trust"
    )
    assert caught.value.hint == f"`sudo chown root {path}`, after a look at what it says"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_layer_is_waived_only_by_a_file_of_root(folder_open_to_all: Path) -> None:
    path = written(folder_open_to_all, FULL)
    os.chown(path, 12345, 12345)

    with acting_as(12345), pytest.raises(ConfigPermissions) as caught:
        LoaderConf.read(path)

    assert caught.value.message == (
        f"{path} waives the sandbox layers L6, L10, but it belongs to the user 12345: "
        "only a file that root owns may waive a layer"
    )
    assert caught.value.hint == f"`sudo chown root {path}`, or take the layers out of `sandbox.accept_missing`"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_file_of_the_user_who_runs_spm_is_read(folder_open_to_all: Path) -> None:
    path = written(folder_open_to_all, conf_text())
    os.chown(path, 12345, 12345)

    with acting_as(12345):
        assert LoaderConf.read(path) == LoaderConf.parse(conf_text())


def test_missing_file_says_where_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigMissing) as caught:
        LoaderConf.read(tmp_path / "loader.conf")

    path = tmp_path / "loader.conf"
    assert caught.value.reason == "conf-missing"
    assert caught.value.message == f"{path} is not there, and without it nothing says whom to trust"
    assert caught.value.hint == "get loader.conf from whoever runs your registry, and put it there"


def test_file_that_is_too_big_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "#" * (MAX_CONF_BYTES + 1))

    with pytest.raises(ConfigSyntax) as caught:
        LoaderConf.read(path)

    assert caught.value.message == f"{path} has more than the 1048576 bytes allowed"


def test_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "loader.conf"
    path.write_bytes(b"a = '\xff'")

    with pytest.raises(ConfigSyntax) as caught:
        LoaderConf.read(path)

    assert caught.value.message == f"{path} is not UTF-8 text: invalid start byte at byte 5"


def test_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "loader.conf", 0o600)

    with pytest.raises(ConfigPermissions) as caught:
        LoaderConf.read(tmp_path / "loader.conf")

    assert caught.value.message == f"{tmp_path / 'loader.conf'} is not a regular file"


def public_file(number: int, role: KeyRole) -> PublicKeyFile:
    return PublicKeyFile(
        name="release", role=role, publisher="audio-team", keyid=keyid(number), public_key_pem=pem(number)
    )


def test_block_for_a_publisher_pins_exactly_that_key_and_those_names() -> None:
    block = loader_block(public_file(STRANGER, KeyRole.EXT), ("audio-*", "log-mel"))

    added = LoaderConf.parse(FULL + block).keyring.ext_keys[1]

    assert added == ExtKey(
        keyid=keyid(STRANGER),
        public_key_pem=pem(STRANGER),
        publisher="audio-team",
        names=("audio-*", "log-mel"),
        ceiling=None,
    )


def test_block_for_a_core_key_may_stand_after_all_other_tables() -> None:
    block = loader_block(public_file(CORE_TWO, KeyRole.CORE), ())

    assert [key.keyid for key in LoaderConf.parse(FULL + block).keyring.core_keys] == [keyid(CORE), keyid(CORE_TWO)]


@pytest.mark.parametrize(
    ("role", "names", "message"),
    [
        (KeyRole.EXT, (), "the ext key `release` needs the names of the plugins it may sign"),
        (KeyRole.CORE, ("a",), "the core key `release` takes no names"),
        (KeyRole.EXT, ('a"]\n[[core.keys]]',), None),
    ],
)
def test_block_is_not_written_with_names_that_do_not_fit(role: KeyRole, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        loader_block(public_file(EXT, role), names)

    assert message is None or caught.value.message == message

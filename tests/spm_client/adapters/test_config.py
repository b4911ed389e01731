"""The user's own settings: which folder, which token, and files that others may read."""

import json
import pwd
from pathlib import Path

import pytest

from manifests.errors import ConfigPermissions, ConfigSyntax, UsageError
from spm_client.adapters.config import Credentials, keys_folder, store_root

URL = "http://127.0.0.1:8080"


@pytest.mark.parametrize(
    ("named", "environment", "root"),
    [
        ("/a", {"SPM_ROOT": "/b", "USER": "spm", "XDG_DATA_HOME": "/c", "HOME": "/h"}, "/a"),
        (None, {"SPM_ROOT": "/b", "USER": "spm", "XDG_DATA_HOME": "/c", "HOME": "/h"}, "/b"),
        (None, {"SPM_ROOT": "", "USER": "spm", "XDG_DATA_HOME": "/c", "HOME": "/h"}, "/opt/spm"),
        (None, {"USER": "eva", "XDG_DATA_HOME": "/c", "HOME": "/h"}, "/c/spm"),
        (None, {"USER": "eva", "XDG_DATA_HOME": "c", "HOME": "/h"}, "/h/.local/share/spm"),
        (None, {"USER": "eva", "XDG_DATA_HOME": "", "HOME": "/h"}, "/h/.local/share/spm"),
        (None, {"HOME": "/h"}, "/h/.local/share/spm"),
    ],
)
def test_the_store_is_the_first_that_is_named(named: str | None, environment: dict[str, str], root: str) -> None:
    assert store_root(named, environment) == Path(root)


def test_a_relative_store_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert store_root("store", {}) == tmp_path / "store"
    assert store_root(None, {"SPM_ROOT": "store"}) == tmp_path / "store"


def test_an_empty_name_is_no_other_folder() -> None:
    with pytest.raises(UsageError) as root:
        store_root("", {"SPM_ROOT": "/b"})
    with pytest.raises(UsageError) as keys:
        keys_folder("", {"HOME": "/h"})

    assert root.value.message == "`--root` names no folder: it is empty"
    assert keys.value.message == "`--keys` names no folder: it is empty"


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: object) -> None:
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)

    with pytest.raises(UsageError) as refused:
        store_root(None, {})

    assert (refused.value.message, refused.value.hint) == (
        "there is no home folder, and neither `XDG_DATA_HOME` nor `HOME` names one",
        "set `XDG_DATA_HOME` to a folder that may be written",
    )


@pytest.mark.parametrize(
    ("named", "environment", "folder"),
    [
        ("/a", {"XDG_CONFIG_HOME": "/c"}, "/a"),
        (None, {"XDG_CONFIG_HOME": "/c", "HOME": "/h"}, "/c/spm/keys"),
        (None, {"XDG_CONFIG_HOME": "c", "HOME": "/h"}, "/h/.config/spm/keys"),
    ],
)
def test_keys_lie_in_the_user_s_configuration(named: str | None, environment: dict[str, str], folder: str) -> None:
    assert keys_folder(named, environment) == Path(folder)


@pytest.fixture
def credentials(tmp_path: Path) -> Credentials:
    return Credentials({"XDG_CONFIG_HOME": str(tmp_path)})


def test_a_token_is_kept_for_its_owner_alone(credentials: Credentials) -> None:
    assert credentials.token(URL) is None

    credentials.keep(URL, "spm_a")
    credentials.keep("http://other", "spm_b")
    credentials.keep(URL, "spm_c")

    assert (credentials.token(URL), credentials.token("http://other")) == ("spm_c", "spm_b")
    assert credentials.path.stat().st_mode & 0o777 == 0o600
    assert credentials.path.parent.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in credentials.path.parent.iterdir()] == ["credentials.json"]


def test_a_slash_at_the_end_of_the_url_means_the_same_registry(credentials: Credentials) -> None:
    credentials.keep(f"{URL}/", "spm_a")

    assert credentials.token(URL) == credentials.token(f"{URL}/") == "spm_a"


def test_the_environment_s_token_stands_before_the_kept_one(credentials: Credentials, tmp_path: Path) -> None:
    credentials.keep(URL, "spm_a")

    assert Credentials({"XDG_CONFIG_HOME": str(tmp_path), "SPM_TOKEN": "spm_env"}).token(URL) == "spm_env"
    assert Credentials({"XDG_CONFIG_HOME": str(tmp_path), "SPM_TOKEN": ""}).token(URL) == "spm_a"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o601])
def test_a_file_that_others_may_use_is_refused(credentials: Credentials, mode: int) -> None:
    credentials.keep(URL, "spm_a")
    credentials.path.chmod(mode)

    with pytest.raises(ConfigPermissions) as refused:
        credentials.token(URL)
    with pytest.raises(ConfigPermissions):
        credentials.keep(URL, "spm_b")

    assert (refused.value.message, refused.value.hint) == (
        f"`{credentials.path}` can be read by others",
        f"chmod 600 {credentials.path}",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("{", "is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "is not a table of tokens"),
        (json.dumps({URL: ["spm_a"]}), "is not a table of tokens"),
        (json.dumps({URL: None}), "is not a table of tokens"),
    ],
)
def test_a_file_that_is_no_table_of_tokens_is_refused(credentials: Credentials, text: str, why: str) -> None:
    credentials.keep(URL, "spm_a")
    credentials.path.write_text(text)

    with pytest.raises(ConfigSyntax) as refused:
        credentials.token(URL)

    assert (refused.value.message, refused.value.hint) == (
        f"`{credentials.path}` {why}",
        "remove it and run `spm login`",
    )


@pytest.mark.parametrize("data", [b"\xff", b"[" * 100_000], ids=["bytes", "deep"])
def test_a_file_that_cannot_be_parsed_is_refused(credentials: Credentials, data: bytes) -> None:
    credentials.keep(URL, "spm_a")
    credentials.path.write_bytes(data)

    with pytest.raises(ConfigSyntax, match=r"is not JSON: "):
        credentials.token(URL)

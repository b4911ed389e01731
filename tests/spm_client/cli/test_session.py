"""What commands share: the target, the moment, the login; and the handbook's own names."""

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from manifests.errors import SpmError, TypeMismatch, UsageError
from manifests.index import Shard
from manifests.names import PluginName
from manifests.target import Target
from spm_client.cli import handbook
from spm_client.cli.session import read_target, timestamp
from tests.fakes.answering_server import AnsweringServer, send
from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry
from tests.keys.builders import conf_text
from tests.spm_client.cli.conftest import Spm


def test_the_probed_target_is_a_target(spm: Spm, tmp_path: Path) -> None:
    told = spm("target", "probe")
    spm("target", "probe", "-o", tmp_path / "target.json")

    target = Target.from_dict(told.document)
    assert target.to_dict() == told.document
    assert read_target(tmp_path / "target.json") == target
    assert target.devices[0].id == "cpu"


def test_the_probed_target_is_the_document_also_as_json(spm: Spm, tmp_path: Path) -> None:
    assert spm("target", "probe", "--json").document == spm("target", "probe").document
    told = spm("target", "probe", "-o", tmp_path / "target.json", "--json")
    assert told.document == {"output": str(tmp_path / "target.json")}


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (None, UsageError, "the target `{path}` cannot be read: No such file or directory"),
        (b"", UsageError, "the target `{path}` is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"[]", TypeMismatch, "the target is refused: `the document` is not a table; `_type` is missing; "),
    ],
)
def test_a_file_that_is_no_target_is_refused(
    tmp_path: Path, data: bytes | None, kind: type[SpmError], message: str
) -> None:
    path = tmp_path / "target.json"
    if data is not None:
        path.write_bytes(data)

    with pytest.raises(kind) as refused:
        read_target(path)

    assert refused.value.message.startswith(message.format(path=path))


def test_a_target_that_nests_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target.json").write_bytes(b"[" * 100_000)

    with pytest.raises(UsageError, match="is not JSON: maximum recursion depth exceeded"):
        read_target(tmp_path / "target.json")


def test_now_is_written_in_utc() -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", timestamp({}))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", timestamp({"SOURCE_DATE_EPOCH": ""}))


@pytest.mark.parametrize(
    ("epoch", "moment"),
    [("0", "1970-01-01T00:00:00Z"), ("1769860800", "2026-01-31T12:00:00Z"), ("253402300799", "9999-12-31T23:59:59Z")],
)
def test_a_repeatable_build_names_its_moment(epoch: str, moment: str) -> None:
    assert timestamp({"SOURCE_DATE_EPOCH": epoch}) == moment


@pytest.mark.parametrize("epoch", ["yesterday", "-1", "1.5", " 1", "253402300800", "9" * 40, "٣"])
def test_a_moment_that_is_none_is_not_passed_over(epoch: str) -> None:
    with pytest.raises(UsageError) as refused:
        timestamp({"SOURCE_DATE_EPOCH": epoch})

    assert (refused.value.message, refused.value.hint) == (
        f"`SOURCE_DATE_EPOCH` is {epoch!r}, not the seconds since 1970 of a year before 10000",
        "unset it, or set it as in `SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)`",
    )


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as running:
        yield running


@pytest.fixture
def root(server: AnsweringServer, tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    conf = tmp_path / "store" / "loader.conf"
    conf.write_text(conf_text().replace("http://127.0.0.1:8080", f"{server.url}/"))
    conf.chmod(0o644)
    return tmp_path / "store"


def test_a_login_keeps_the_token_that_the_registry_knows(
    spm: Spm, server: AnsweringServer, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = send(200, b'{"label": "laptop", "role": "publisher"}')
    monkeypatch.setattr("sys.stdin", io.StringIO("  spm_token \nmore\n"))

    told = spm("login", "--root", root)

    kept = tmp_path / "home" / ".config" / "spm" / "credentials.json"
    assert (told.code, told.err) == (0, "")
    assert told.out == f"logged in to team.example as laptop (publisher); the token is kept in {kept}\n"
    assert json.loads(kept.read_text()) == {server.url: "spm_token"}
    assert kept.stat().st_mode & 0o777 == 0o600
    assert [(path, headers["authorization"]) for _, path, headers, _ in server.seen] == [
        ("/v1/whoami", "Bearer spm_token")
    ]


@pytest.mark.parametrize(
    ("typed", "message", "hint"),
    [
        ("", "no token was given", "`spm-registry token new` makes one"),
        (" \nspm_token\n", "no token was given", "`spm-registry token new` makes one"),
    ],
)
def test_a_login_without_a_token_asks_nobody(
    spm: Spm, server: AnsweringServer, root: Path, monkeypatch: pytest.MonkeyPatch, typed: str, message: str, hint: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    told = spm("login", "--root", root)

    assert (told.code, told.err) == (2, f"error[usage]: {message}\n  hint: {hint}\n")
    assert server.seen == []


def test_a_token_that_the_registry_does_not_know_is_not_kept(
    spm: Spm, server: AnsweringServer, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = b'{"type": "auth", "detail": "the token is not known", "hint": "ask for one"}'
    server.answer = send(401, problem, Content_Type="application/problem+json")
    monkeypatch.setattr("sys.stdin", io.StringIO("spm_token\n"))

    told = spm("login", "--root", root)

    assert (told.code, told.err) == (30, "error[auth]: the token is not known\n  hint: ask for one\n")
    assert not (tmp_path / "home").exists()


def test_a_command_that_needs_a_token_says_how_to_keep_one(spm: Spm, server: AnsweringServer, root: Path) -> None:
    told = spm("yank", "x==1.0.0", "--reason", "it leaks", "--root", root)

    assert (told.code, told.err) == (
        30,
        f"error[auth]: there is no token for the registry at `{server.url}`\n  hint: `spm login` keeps one\n",
    )


def test_a_plugin_without_releases_is_told(spm: Spm, tmp_path: Path) -> None:
    registry = SimulatedRegistry()
    registry.list(Shard(registry="team.example", name=PluginName("tone")))
    root = tmp_path / "store"
    root.mkdir()

    with ServedFiles(registry.file) as served:
        (root / "loader.conf").write_text(registry.loader_conf(served.url))
        told = spm("info", "tone", "--root", root)

    assert (told.code, told.out, told.err) == (0, "tone has no release in team.example\n", "")
    assert [path.name for path in root.iterdir()] == ["loader.conf"]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (handbook.seedance, ["plugin", "list"]),
        (handbook.seedance_plugin, ["list"]),
    ],
)
def test_the_handbook_s_names_are_spm_s_commands(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    call: Callable[[], int],
    arguments: list[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["x", *arguments, "--root", str(tmp_path)])

    assert call() == 0
    assert capsys.readouterr().out == f"nothing is installed in {tmp_path}\n"


@pytest.mark.parametrize("arguments", [[], ["plugin"], ["plugin", "publish"], ["list"], ["plugin", "--json", "list"]])
def test_other_words_are_told_how_seedance_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["seedance", *arguments])

    assert handbook.seedance() == 2
    assert capsys.readouterr().err == (
        "error[usage]: write `seedance plugin VERB ...`, VERB being verify, install, uninstall, list\n"
    )


@pytest.mark.parametrize("arguments", [[], ["plugin", "list"], ["publish"]])
def test_other_words_are_told_how_seedance_plugin_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["seedance-plugin", *arguments])

    assert handbook.seedance_plugin() == 2
    assert capsys.readouterr().err == (
        "error[usage]: write `seedance-plugin VERB ...`, VERB being verify, install, uninstall, list\n"
    )

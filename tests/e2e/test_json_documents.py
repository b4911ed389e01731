"""Every command's `--json`, as real commands print it, against the schema that the documentation has of it."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spm_client.cli.main import COMMANDS, main
from spm_client.cli.shell_words import places
from tests.e2e.commands import Client
from tests.e2e.json_documents import SCHEMAS, require_documented, schema_of
from tests.e2e.sources import write_source
from tests.e2e.team import Team
from tests.manifests.json_schema import faults

pytestmark = pytest.mark.e2e

PAGE = SCHEMAS.parent / "json.md"
Documented = Callable[..., dict[str, Any]]


@pytest.fixture
def documented(client: Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Documented:
    """Give `spm ... --json` in this process: what it prints must be as documented under the command's name."""

    def call(
        *words: str | Path, schema: str = "", code: int = 0, of: Client = client, said: str = ""
    ) -> dict[str, Any]:
        for name, value in of.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.stdin", io.StringIO(said))
        assert main([*map(str, words), "--json"]) == code, capsys.readouterr()
        document = json.loads(capsys.readouterr().out)
        require_documented(schema or _name(words), document)
        assert isinstance(document, dict)
        return document

    return call


def _name(words: tuple[str | Path, ...]) -> str:
    command, action = str(words[0]), str(words[1]) if len(words) > 1 else ""
    return f"{command}-{action}" if command in ("keys", "trust", "bundle", "target") else command


def test_what_is_installed(documented: Documented, client: Client, tmp_path: Path) -> None:
    documented("install", "alpha", "--dry-run")
    documented("install", "alpha")
    documented("install", "delta", "--accept-fallback", "delta")
    documented("install", "idle", "free", "gamma")
    documented("install", "free", "--affinity", "cpu", "--batch-policy", "static")
    listed = documented("list")
    documented("verify", "beta")
    documented("uninstall", "idle")
    documented("rollback")
    documented("rollback", "--list")
    documented("gc", "--dry-run")
    documented("gc")
    documented("completion", "installed")
    documented("completion", "bash")

    bound = {entry["name"]: entry.get("bindings") for entry in listed["plugins"]}
    assert bound["free"] == {"affinity": ["cpu"], "batch_policy": "static"}
    assert {entry["name"] for entry in listed["plugins"] if entry["is_fallback"]} == {"delta"}


def test_what_the_registry_has(documented: Documented) -> None:
    documented("search")
    documented("search", "alpha", "--device", "cpu", "--batch", "adaptive", "--limit", "1")
    near = documented("search", "alpah")
    documented("info", "alpha")
    documented("info", "alpha", "--version", "1.0.0")
    fallback = documented("info", "delta")
    documented("info", "idle")

    assert near["near"] == ["alpha"]
    assert fallback["choice"]["fallback"] is True


def test_what_this_host_trusts_and_is(documented: Documented, tmp_path: Path) -> None:
    documented("trust", "init")
    documented("trust", "show")
    documented("trust", "update")
    documented("trust", "export", tmp_path / "team.trust")
    documented("trust", "import", tmp_path / "team.trust")
    documented("doctor")
    documented("target", "probe")


def test_what_is_run_and_carried(documented: Documented, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[[1.0, 2.0]]")

    documented("install", "beta")
    documented("run", "beta", "--input", tmp_path / "x.json", "--output", tmp_path / "y.json")
    documented("bundle", "export", "alpha", "--output", tmp_path / "alpha.bundle")
    documented("bundle", "verify", tmp_path / "alpha.bundle")
    documented("bundle", "import", tmp_path / "alpha.bundle")


def test_what_is_published(documented: Documented, team: Team, tmp_path: Path) -> None:
    source = write_source(tmp_path, "documented", "1.0.0")
    token = json.loads((team.publisher.home / "config/spm/credentials.json").read_text())[team.url]
    keys = ("--keys", tmp_path / "keys")

    documented("keys", "new", "--role", "ext", "--name", "mine", "--publisher", "team", "--no-passphrase", *keys)
    documented("keys", "new", "--role", "root", "--name", "root", "--no-passphrase", *keys)
    documented("keys", "list", *keys)
    documented("keys", "show", "mine", *keys)
    documented("keys", "show", "root", *keys)
    documented("keys", "export", "mine", "--format", "jwk", "--output", tmp_path / "mine.jwk", *keys)
    documented("keys", "fingerprint", "mine", *keys)
    documented("login", said=f"{token}\n")
    packed = documented("pack", source, "--out", tmp_path / "dist", "--publisher", "team", of=team.publisher)["path"]
    documented("sign", packed, "--key", "ext", of=team.publisher)
    documented("publish", packed, of=team.publisher)
    documented("yank", "documented==1.0.0", "--reason", "It was only a specimen", of=team.publisher)
    documented("search", "documented")
    documented("yank", "documented==1.0.0", "--undo", of=team.publisher)


def test_a_refusal_is_documented_beside_what_was_found_out(documented: Documented) -> None:
    documented("install", "idle")

    refused = documented("verify", "--strict", schema="refusal", code=11)
    documented("install", "nothing-of-it", schema="refusal", code=10)
    documented("keys", "nothing", schema="refusal", code=2)

    rest = {name: value for name, value in refused.items() if name != "error"}
    require_documented("verify", rest)


def test_what_a_project_locks(documented: Documented, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)

    documented("init")
    documented("add", "alpha@^1.0")
    documented("add", "delta", "--accept-fallback", "delta")
    documented("lock", "--dry-run")
    documented("lock")
    documented("sync")
    documented("outdated")
    documented("tree")
    documented("why", "beta")
    documented("upgrade")
    documented("remove", "delta")


def test_every_command_and_action_has_a_schema_and_a_line_on_the_page() -> None:
    known = {place.path: place for place in places(COMMANDS)}
    paths = [path.replace(" ", "-") for path, place in known.items() if path and not place.words]
    paths = ["target-probe" if path == "target" else path for path in paths]
    page = PAGE.read_text()

    assert sorted(path.stem for path in SCHEMAS.glob("*.json")) == sorted([*paths, "common", "refusal"])
    assert sorted(re.findall(r"\(schemas/([a-z-]+)\.json\)", page)) == sorted([*paths, "common", "refusal"])


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_a_schema_is_one_of_draft_2020_12_that_names_itself(path: Path) -> None:
    schema = json.loads(path.read_text())

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == path.name
    assert schema["title"]
    assert list(faults([], schema_of(path.stem), schema_of(path.stem))) != [] or path.stem == "common"
    for reference in re.findall(r'"\$ref": "([^"]+)"', path.read_text()):
        file, _, name = reference.partition("#/$defs/")
        assert name in json.loads((SCHEMAS / (file or path.name)).read_text())["$defs"]

"""`spm-registry`: what it makes on disk, what it prints, and how it refuses."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from keys.key_files import KeyRole, new_key
from keys.keyring import LoaderConf
from registry.cli import main
from registry.services import tokens
from registry.storage.site import open_site
from tests.registry.team import Team


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_init_makes_a_registry_and_shows_its_token_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    root = tmp_path / "r"

    code, out, err = _run(capsys, "init", "--root", root, "--json")

    told = json.loads(out)
    assert (code, err) == (0, "")
    assert set(told) == {"root", "id", "url", "token", "loader_conf"}
    assert (told["root"], told["id"], told["url"]) == (str(root), "team.local", "http://127.0.0.1:8080")
    assert tokens.is_well_formed(told["token"])
    assert told["loader_conf"] == (root / "loader.conf").read_text()
    conf = LoaderConf.read(root / "loader.conf")
    assert (conf.registry_id, conf.registry_url) == ("team.local", "http://127.0.0.1:8080")
    assert told["token"] not in (root / "loader.conf").read_text()


def test_init_lets_nobody_else_read_what_is_private(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    root = tmp_path / "r"
    _run(capsys, "init", "--root", root)

    modes = {path.name: oct(_mode(path)) for path in root.iterdir()}

    assert modes == {
        "registry.db": "0o600",
        "secret": "0o600",
        "blobs": "0o700",
        "uploads": "0o700",
        "loader.conf": "0o644",
    }


def test_init_tells_people_what_to_do_next(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    root = tmp_path / "r"

    code, out, err = _run(capsys, "init", "--root", root, "--id", "lab.example", "--url", "https://spm.lab.example")

    token = out.splitlines()[2].split()[-1]
    assert code == 0
    assert out == (
        f"Made the registry `lab.example` in {root}\n"
        f"  URL          https://spm.lab.example\n"
        f"  admin token  {token}\n"
        "\n"
        f"Give each client {root}/loader.conf:\n"
        "\n"
        "  [registry]\n"
        '  id = "lab.example"\n'
        '  url = "https://spm.lab.example"\n'
        "\n"
        "  [core]\n"
        "  # How many distinct core keys must have signed a core plugin.\n"
        "  threshold = 1\n"
        "\n"
        f"Next: `spm-registry key add FILE.pub --root {root}`, then `spm-registry serve --root {root}`\n"
    )
    assert err == "The token is not stored and cannot be shown again.\n"


def test_init_leaves_an_existing_registry_alone(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    before = team.state()

    code, out, err = _run(capsys, "init", "--root", team.root)

    assert (code, out) == (2, "")
    assert err == (
        f"error[usage]: {team.root} already holds a registry (`registry.db` is there); nothing was changed\n"
        "  hint: choose another folder with `--root`\n"
    )
    assert team.state() == before


@pytest.mark.parametrize("name", ["secret", "loader.conf", "blobs"])
def test_init_overwrites_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")

    code, _, _ = _run(capsys, "init", "--root", tmp_path)

    assert code == 2
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--id", "Team"], 2, "usage"),
        (["--id", 'a"\nthreshold'], 2, "usage"),
        (["--url", "ftp://x"], 26, "conf-syntax"),
        (["--url", 'http://x"\n[sandbox]\naccept_missing = ["L2"]\n#'], 2, "usage"),
    ],
)
def test_init_refuses_what_a_loader_conf_cannot_say(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], code: int, reason: str
) -> None:
    root = tmp_path / "r"

    got, out, _ = _run(capsys, "init", "--root", root, "--json", *arguments)

    assert got == code
    assert json.loads(out)["error"]["reason"] == reason
    assert not root.exists()


def test_init_that_fails_halfway_leaves_nothing(tmp_path: Path) -> None:
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "from registry.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    root = tmp_path / "r"

    done = subprocess.run(
        [sys.executable, "-c", script, "init", "--root", str(root)], capture_output=True, text=True, check=False
    )

    assert done.returncode != 0
    assert list(root.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    code, out, err = _run(capsys, "init", "--root", tmp_path / "file" / "r")

    assert (code, out) == (2, "")
    assert err == f"error[usage]: {tmp_path}/file/r: Not a directory\n  hint: check the path and who may use it\n"


def test_a_key_is_pinned_once(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    key = new_key(team.root.parent / "keys", "second", KeyRole.EXT, "video-team", None)
    file = team.root.parent / "keys" / "second.pub"

    first = _run(capsys, "key", "add", file, "--root", team.root, "--names", "video-*", "--json")
    before = team.state()
    second = _run(capsys, "key", "add", file, "--root", team.root, "--names", "video-*")

    told = json.loads(first[1])
    assert (told["keyid"], told["role"]) == (key.keyid, "ext")
    pinned = LoaderConf.read(team.site.loader_conf).keyring.ext_key(key.keyid)
    assert (pinned.publisher, pinned.names) == ("video-team", ("video-*",))
    assert second[0] == 2
    assert second[2].startswith(f"error[usage]: {team.site.loader_conf} pins the key {key.keyid} already\n")
    assert team.state() == before
    assert _mode(team.site.loader_conf) == 0o644


def test_an_ext_key_needs_names(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    new_key(team.root.parent / "keys", "second", KeyRole.EXT, "video-team", None)
    before = team.state()

    code, _, err = _run(capsys, "key", "add", team.root.parent / "keys" / "second.pub", "--root", team.root)

    assert code == 2
    assert err.startswith("error[usage]: ")
    assert team.state() == before


def test_loader_conf_is_printed_as_it_is(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    code, out, err = _run(capsys, "loader-conf", "--root", team.root)

    assert (code, out, err) == (0, team.site.loader_conf.read_text(), "")


def test_a_loader_conf_that_others_may_write_is_not_handed_out(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    team.site.loader_conf.chmod(0o666)

    code, out, err = _run(capsys, "loader-conf", "--root", team.root)

    assert (code, out) == (26, "")
    assert err.startswith("error[conf-perms]: ")


def test_a_new_token_works_and_is_listed_without_its_text(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    arguments = ["token", "new", "--root", team.root, "--label", "maria", "--role", "publisher", "--names", "audio-*"]

    code, out, err = _run(capsys, *arguments)
    listed = json.loads(_run(capsys, "token", "list", "--root", team.root, "--json")[1])["tokens"]

    token = out.strip()
    assert code == 0
    assert "may be publisher until" in err
    team.clock.now = 1_800_000_000
    assert team.ask("GET", "/v1/whoami", token).get_json()["label"] == "maria"
    assert sorted((each["label"], each["role"]) for each in listed) == [("admin", "admin"), ("maria", "publisher")]
    assert token not in json.dumps(listed)


def test_a_revoked_token_no_longer_works(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    arguments = ["token", "new", "--root", team.root, "--label", "maria", "--role", "reader", "--json"]
    made = json.loads(_run(capsys, *arguments)[1])

    code, _, err = _run(capsys, "token", "revoke", made["id"], "--root", team.root)

    assert (code, err) == (0, f"Revoked the token {made['id']} of `maria`\n")
    assert team.ask("GET", "/v1/whoami", made["token"]).status_code == 401


def test_an_unknown_token_cannot_be_revoked(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    code, _, err = _run(capsys, "token", "revoke", "0000", "--root", team.root)

    assert code == 10
    assert err == ("error[not-found]: there is no token with the id `0000`\n  hint: see `spm-registry token list`\n")


@pytest.mark.parametrize("command", [["serve"], ["loader-conf"], ["token", "list"]])
def test_a_folder_without_a_registry_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: list[str]
) -> None:
    code, out, err = _run(capsys, *command, "--root", tmp_path)

    assert (code, out) == (2, "")
    assert err == (
        f"error[usage]: {tmp_path} is not a registry: `registry.db` is missing\n"
        f"  hint: make one with `spm-registry init --root {tmp_path}`\n"
    )


def test_a_secret_that_others_may_read_is_refused(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    (team.root / "secret").chmod(0o640)

    code, _, err = _run(capsys, "serve", "--root", team.root)

    assert code == 26
    assert err == (
        f"error[conf-perms]: {team.root}/secret has mode 0640: "
        "others than its owner can reach the registry's secret\n"
        f"  hint: chmod 600 {team.root}/secret\n"
    )


def test_a_database_of_another_schema_is_refused(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    with team.site.database.connection() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    code, _, err = _run(capsys, "serve", "--root", team.root)

    assert code == 26
    assert err == (
        f"error[conf-syntax]: {team.root}/registry.db has schema 9999, and this program needs 0001\n"
        "  hint: use the version of spm-registry that made this registry\n"
    )


def test_a_loader_conf_of_another_registry_is_refused(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    conf = team.site.loader_conf
    conf.write_text(conf.read_text().replace('id = "team.local"', 'id = "other.team"'))

    code, _, err = _run(capsys, "serve", "--root", team.root)

    assert code == 26
    assert err == (
        f"error[conf-syntax]: {conf} is for the registry `other.team`, and the database is `team.local`\n"
        "  hint: put the old id back: it is inside every signed manifest\n"
    )


@pytest.mark.parametrize("bind", ["8080", "127.0.0.1:", "127.0.0.1:99999", ":80", "h:8o"])
def test_an_address_needs_a_host_and_a_port(capsys: pytest.CaptureFixture[str], team: Team, bind: str) -> None:
    code, _, err = _run(capsys, "serve", "--root", team.root, "--bind", bind)

    assert code == 2
    assert err == (f"error[usage]: {bind!r} is not an address: write `HOST:PORT`, such as `127.0.0.1:8080`\n")


def test_help_needs_neither_flask_nor_sqlalchemy() -> None:
    script = (
        "import sys\n"
        "from registry.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('flask', 'sqlalchemy', 'alembic', 'granian') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_opening_a_registry_twice_is_fine(team: Team) -> None:
    assert open_site(team.root).secret == team.site.secret

"""`spm-registry`: what it makes on disk, what it prints, and how it refuses."""

import json
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keys.keyring import LoaderConf
from registry.cli import main
from registry.services import tokens
from registry.services.policy import Role
from registry.services.tokens import TokenRequest
from registry.storage.site import open_site
from tests.registry.team import Team, manifest_of


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
    assert set(told) == {"root", "id", "url", "token", "token_expires", "loader_conf"}
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
        "online.key": "0o600",
        "blobs": "0o700",
        "uploads": "0o700",
        "loader.conf": "0o644",
    }


def test_init_tells_people_what_to_do_next(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    root = tmp_path / "r"

    code, out, err = _run(capsys, "init", "--root", root, "--id", "lab.example", "--url", "https://spm.lab.example")

    token, ends = out.splitlines()[2].split()[-1], out.splitlines()[3].split()[2]
    assert code == 0
    assert datetime.fromisoformat(ends) - datetime.now(UTC) > timedelta(days=89, hours=23)
    assert out == (
        f"Made the registry `lab.example` in {root}\n"
        "  URL          https://spm.lab.example (where clients look for it; another by `--url`)\n"
        f"  admin token  {token}\n"
        f"  valid until  {ends} (90 days); `spm-registry token new` makes the next\n"
        "\n"
        f"Each client needs {root}/loader.conf, once the root of trust is in it:\n"
        "\n"
        "  [registry]\n"
        '  id = "lab.example"\n'
        '  url = "https://spm.lab.example"\n'
        "\n"
        "  [core]\n"
        "  # How many distinct core keys must have signed a core plugin.\n"
        "  threshold = 1\n"
        "\n"
        "Next:\n"
        "  1. `spm keys new --role root`, on your own machine, makes a root key: root.key and root.pub\n"
        f"  2. `spm-registry root init root.pub --root {root}` drafts the root of trust\n"
        f"  3. `spm-registry root sign root.key --root {root}` signs it;\n"
        "     where root.key is not to come here, `docs/guides/root-ceremony.md` says how\n"
        f"  4. `spm-registry key add FILE.pub --root {root}` lets somebody's plugins be loaded\n"
        f"  5. `spm-registry loader-conf --root {root} --output loader.conf` writes what each client needs\n"
        f"  6. `spm-registry serve --root {root}` runs the registry\n"
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


@pytest.mark.parametrize("name", ["secret", "online.key", "loader.conf", "blobs"])
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
    ends = next(each["expires"] for each in listed if each["label"] == "maria")
    assert err == (
        f"Token for `maria`: publisher, valid until {ends}\nThe token is not stored and cannot be shown again.\n"
    )
    team.clock.now = 1_800_000_000
    assert team.ask("GET", "/v1/whoami", token).get_json()["label"] == "maria"
    assert sorted((each["label"], each["role"]) for each in listed) == [("admin", "admin"), ("maria", "publisher")]
    assert token not in json.dumps(listed)


def test_who_makes_a_token_is_told_what_its_label_already_owns(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    maria = team.token("maria")
    team.publish(maria, manifest_of())
    team.publish(maria, manifest_of(name="log-mel"))
    arguments = ["token", "new", "--root", team.root, "--role", "publisher", "--names", "*", "--json", "--label"]

    same = _run(capsys, *arguments, "maria")
    other = _run(capsys, *arguments, "mario")

    assert (same[0], same[2]) == (0, "This label already owns: audio-encoder, log-mel\n")
    assert (other[0], other[2]) == (0, "")


def test_a_revoked_token_no_longer_works(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    arguments = ["token", "new", "--root", team.root, "--label", "maria", "--role", "reader", "--json"]
    made = json.loads(_run(capsys, *arguments)[1])

    code, _, err = _run(capsys, "token", "revoke", made["id"], "--root", team.root)

    assert (code, err) == (0, f"Revoked the token {made['id']} of `maria`\n")
    assert team.ask("GET", "/v1/whoami", made["token"]).status_code == 401
    (listed,) = (line for line in _run(capsys, "token", "list", "--root", team.root)[1].splitlines() if "maria" in line)
    document = json.loads(_run(capsys, "token", "list", "--root", team.root, "--json")[1])
    revoked = {each["label"]: each["revoked"] for each in document["tokens"]}
    assert listed.split()[3:5] == ["revoked", revoked["maria"]]
    assert revoked["admin"] is None


def test_an_expired_token_is_listed_as_expired(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    request = TokenRequest(label="maria", role=Role.READER, days=1)
    with team.site.database.writing() as records:
        tokens.issue(records, request, secret=team.site.secret, actor="test", now=1_700_000_000)

    _, out, _ = _run(capsys, "token", "list", "--root", team.root)

    assert [line.split()[3:5] for line in out.splitlines() if "maria" in line] == [["expired", "2023-11-15T22:13:20Z"]]


def test_an_unknown_token_cannot_be_revoked(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    code, _, err = _run(capsys, "token", "revoke", "0000", "--root", team.root)

    assert code == 10
    assert err == (
        "error[not-found]: there is no token with the id `0000`\n"
        f"  hint: see `spm-registry token list --root {team.root}`\n"
    )


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


@pytest.mark.parametrize(("name", "what"), [("secret", "secret"), ("online.key", "online key")])
def test_what_is_private_and_others_may_read_is_refused(
    capsys: pytest.CaptureFixture[str], team: Team, name: str, what: str
) -> None:
    (team.root / name).chmod(0o640)

    code, _, err = _run(capsys, "serve", "--root", team.root)

    assert code == 26
    assert err == (
        f"error[conf-perms]: {team.root}/{name} has mode 0640: "
        f"others than its owner can reach the registry's {what}\n"
        f"  hint: chmod 600 {team.root}/{name}\n"
    )


def test_a_registry_without_a_root_is_not_served(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    root = tmp_path / "r"
    _run(capsys, "init", "--root", root)

    code, out, err = _run(capsys, "serve", "--root", root)

    assert (code, out) == (26, "")
    assert err == (
        f"error[conf-syntax]: the registry in {root} has no root of trust, without which no client can verify "
        "its index\n"
        f"  hint: make one: `spm-registry root init FILE.pub --root {root}`\n"
    )


def test_a_database_of_another_schema_is_refused(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    with team.site.database.connection() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")

    code, _, err = _run(capsys, "serve", "--root", team.root)

    assert code == 26
    assert err == (
        f"error[conf-syntax]: {team.root}/registry.db has schema 9999, and this program needs 0003\n"
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


@pytest.mark.parametrize(
    ("gone", "told"),
    [
        (["secret"], "`secret` is missing"),
        (["online.key"], "`online.key` is missing"),
        (["registry.db"], "`registry.db` is missing"),
        (["loader.conf", "blobs"], "`loader.conf`, `blobs` is missing"),
    ],
)
def test_nobody_is_told_to_make_a_registry_anew_over_one_that_lacks_a_piece(
    capsys: pytest.CaptureFixture[str], team: Team, gone: list[str], told: str
) -> None:
    for name in gone:
        (team.root / name).rename(team.root.parent / name)

    code, out, err = _run(capsys, "serve", "--root", team.root)

    assert (code, out) == (2, "")
    assert err == (
        f"error[usage]: {team.root} is not a whole registry: {told}\n"
        "  hint: put it back from a backup, or serve the whole backup (`spm-registry serve --root BACKUP`)\n"
    )


def test_a_registry_that_has_lost_its_uploads_folder_still_takes_a_publish(team: Team) -> None:
    (team.root / "uploads").rmdir()

    committed = team.publish(team.admin, manifest_of())

    assert committed.status_code == 201
    assert _mode(team.root / "uploads") == 0o700


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_loader_conf_is_written_so_that_clients_accept_it(team: Team, umask: int) -> None:
    path = team.root.parent / "handed-out.conf"
    script = f"import os, sys; os.umask({umask}); from registry.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", script, "loader-conf", "--root", str(team.root), "--output", str(path)]

    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"Wrote {path}\n")
    assert path.read_text() == team.site.loader_conf.read_text()
    assert _mode(path) == 0o644


def test_what_is_written_is_told_to_a_program(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    path = team.root.parent / "handed-out.conf"

    code, out, err = _run(capsys, "loader-conf", "--root", team.root, "--output", path, "--json")

    assert (code, err) == (0, "")
    assert json.loads(out) == {"loader_conf": team.site.loader_conf.read_text(), "path": str(path)}


@pytest.mark.parametrize("command", [["init"], ["token", "new", "--label", "maria", "--role", "reader"]])
def test_a_token_is_shown_before_the_note_that_speaks_of_it(team: Team, tmp_path: Path, command: list[str]) -> None:
    root = tmp_path / "new" if command == ["init"] else team.root
    words = [sys.executable, "-m", "registry.cli", *command, "--root", str(root)]

    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(words, env=buffered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)

    lines = done.stdout.splitlines()
    assert lines[-1] == "The token is not stored and cannot be shown again."
    assert "spm_" in "".join(lines[:-1])


def test_what_a_command_wrote_is_in_the_database_file_alone(team: Team) -> None:
    team.site.database.close()
    words = [sys.executable, "-m", "registry.cli", "token", "new", "--root", str(team.root), "--label", "maria"]

    subprocess.run([*words, "--role", "reader"], capture_output=True, check=True)

    with closing(sqlite3.connect(f"file:{team.root}/registry.db?immutable=1", uri=True)) as alone:
        labels = {label for (label,) in alone.execute("SELECT label FROM tokens")}
    assert labels == {"admin", "maria"}
    assert not (team.root / "registry.db-wal").exists()


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

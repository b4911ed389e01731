"""`spm-registry key`: whose signatures are accepted, as lines of a file that stays the administrator's own."""

import json
import stat
from pathlib import Path

import pytest

from keys.key_files import KeyRole, PublicKeyFile, new_key
from keys.keyring import LoaderConf
from registry.cli import main
from tests.registry.team import Team, manifest_of, problem


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def second(team: Team) -> PublicKeyFile:
    return new_key(team.ext.directory, "second", KeyRole.EXT, "video-team", None)


def test_a_key_is_pinned_once(capsys: pytest.CaptureFixture[str], team: Team, second: PublicKeyFile) -> None:
    file = team.ext.directory / "second.pub"

    first = _run(capsys, "key", "add", file, "--root", team.root, "--names", "video-*", "--json")
    before = team.state()
    again = _run(capsys, "key", "add", file, "--root", team.root, "--names", "video-*")

    told = json.loads(first[1])
    assert (told["keyid"], told["role"]) == (second.keyid, "ext")
    pinned = LoaderConf.read(team.site.loader_conf).keyring.ext_key(second.keyid)
    assert (pinned.publisher, pinned.names) == ("video-team", ("video-*",))
    assert again == (
        2,
        "",
        f"error[usage]: {team.site.loader_conf} pins the key {second.keyid} already\n"
        "  hint: to change what it may sign, edit its lines there\n",
    )
    assert team.state() == before
    assert stat.S_IMODE(team.site.loader_conf.stat().st_mode) == 0o644


def test_an_ext_key_needs_names(capsys: pytest.CaptureFixture[str], team: Team, second: PublicKeyFile) -> None:
    before = team.state()

    refused = _run(capsys, "key", "add", team.ext.directory / "second.pub", "--root", team.root)

    assert refused == (
        2,
        "",
        "error[usage]: the ext key `second` needs the names of the plugins that it may sign\n"
        "  hint: add `--names 'video-team-*'`, or `--names '*'` for all\n",
    )
    assert team.state() == before


def test_a_core_key_takes_no_names(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    new_key(team.ext.directory, "more", KeyRole.CORE, "core-team", None)
    before = team.state()

    refused = _run(capsys, "key", "add", team.ext.directory / "more.pub", "--root", team.root, "--names", "*")

    assert refused == (
        2,
        "",
        "error[usage]: the core key `more` takes no names: it signs every core plugin\n  hint: leave out `--names`\n",
    )
    assert team.state() == before


@pytest.mark.parametrize("passphrase", [None, b"secret"])
def test_a_private_key_is_never_taken_nor_shown(
    capsys: pytest.CaptureFixture[str], team: Team, passphrase: bytes | None
) -> None:
    new_key(team.ext.directory, "ben", KeyRole.EXT, "ben", passphrase)
    before, file = team.state(), team.ext.directory / "ben.key"

    refused = _run(capsys, "key", "add", file, "--root", team.root, "--names", "ben-*", "--json")

    assert refused[0] == 2
    assert json.loads(refused[1])["error"]["message"] == (
        f"{file}: this is a private key: keep it, and add `{team.ext.directory}/ben.pub`"
    )
    assert not any(line in refused[1] + refused[2] for line in file.read_text().splitlines())
    assert team.state() == before


def test_a_private_key_under_a_public_name_is_not_taken_either(
    capsys: pytest.CaptureFixture[str], team: Team, tmp_path: Path
) -> None:
    new_key(team.ext.directory, "ben", KeyRole.EXT, "ben", None)
    file = tmp_path / "ben.pub"
    (team.ext.directory / "ben.key").rename(file)

    refused = _run(capsys, "key", "add", file, "--root", team.root, "--names", "ben-*")

    message = f"{file}: this is a private key: keep it, and add the public key that belongs to it"
    assert refused == (2, "", f"error[usage]: {message}\n")


def test_pinned_keys_are_listed(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    code, out, err = _run(capsys, "key", "list", "--root", team.root)
    told = json.loads(_run(capsys, "key", "list", "--root", team.root, "--json")[1])

    ext, core = team.ext.public.keyid, team.core.public.keyid
    assert (code, err) == (0, "")
    assert out == f"{core}  core  -                 every core plugin\n{ext}  ext   audio-team        audio-* log-mel\n"
    assert told == {
        "keys": [
            {"keyid": core, "role": "core", "publisher": None, "names": []},
            {"keyid": ext, "role": "ext", "publisher": "audio-team", "names": ["audio-*", "log-mel"]},
        ]
    }


def test_a_key_that_was_removed_signs_nothing_more(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    keyid, conf = team.ext.public.keyid, team.site.loader_conf

    removed = _run(capsys, "key", "remove", keyid, "--root", team.root)

    assert removed == (
        0,
        "",
        f"Removed the ext key {keyid} from {conf}\n"
        "Every client needs the new file: "
        f"`spm-registry loader-conf --output loader.conf --root {team.root}` writes it\n"
        "Until a client has it, it goes on loading what this key signed.\n",
    )
    (only,) = problem(team.submit(team.admin, manifest_of()))["problems"]
    assert only["type"] == "key-unknown"
    assert keyid not in conf.read_text()
    assert stat.S_IMODE(conf.stat().st_mode) == 0o644
    assert f"'action': 'key-remove', 'subject': '{keyid}', 'detail': 'ext'" in team.state()


EDITED = """# Kept by the operators.
[registry]
id = "team.local"
url = "http://127.0.0.1:8080"

[core]
threshold = 1  # for now

[sandbox]
accept_missing = []

# Maria, since spring
{maria}
[ext.capabilities]
network = true

# Lee
{lee}
[limits]
memory_bytes = 1000000000
"""


def _block(key: PublicKeyFile) -> str:
    pem = key.public_key_pem.decode()
    return (
        f'[[ext]]  # pinned by hand\npublisher = "{key.publisher}"\nkeyid = "{key.keyid}"\n'
        f'public_key = """\n{pem}"""\nnames = ["*"]\n'
    )


@pytest.mark.parametrize(
    ("taken", "left", "gone"),
    [
        ("maria", "lee", "# Maria, since spring\n{maria}\n[ext.capabilities]\nnetwork = true\n\n"),
        ("lee", "maria", "# Lee\n{lee}\n"),
    ],
)
def test_all_that_an_administrator_wrote_stays_but_the_lines_of_the_key(
    capsys: pytest.CaptureFixture[str], team: Team, taken: str, left: str, gone: str
) -> None:
    keys = {name: new_key(team.ext.directory, name, KeyRole.EXT, name, None) for name in ("maria", "lee")}
    blocks = {name: _block(key) for name, key in keys.items()}
    team.site.loader_conf.write_text(EDITED.format(**blocks))

    code, _, _ = _run(capsys, "key", "remove", keys[taken].keyid, "--root", team.root)

    assert code == 0
    assert team.site.loader_conf.read_text() == EDITED.format(**blocks).replace(gone.format(**blocks), "")
    (pinned,) = LoaderConf.read(team.site.loader_conf).keyring.ext_keys
    assert pinned.publisher == left


def test_lines_that_cannot_be_told_apart_are_left_to_their_author(
    capsys: pytest.CaptureFixture[str], team: Team
) -> None:
    keyid, conf = team.ext.public.keyid, team.site.loader_conf
    pem = team.ext.public.public_key_pem.decode().replace("\n", "\\n")
    entry = f'{{publisher = "audio-team", keyid = "{keyid}", public_key = "{pem}", names = ["*"]}}'
    conf.write_text(f'ext = [{entry}]\n[registry]\nid = "team.local"\nurl = "http://x"\n[core]\nthreshold = 1\n')
    before = team.state()

    refused = _run(capsys, "key", "remove", keyid, "--root", team.root)

    assert refused == (
        26,
        "",
        f"error[conf-syntax]: the lines of the key {keyid} cannot be told apart in {conf}; it was not changed\n"
        "  hint: take them out by hand\n",
    )
    assert team.state() == before


def test_a_threshold_that_nobody_could_meet_keeps_a_core_key(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    other = new_key(team.ext.directory, "more", KeyRole.CORE, "core-team", None)
    conf = team.site.loader_conf
    _run(capsys, "key", "add", team.ext.directory / "more.pub", "--root", team.root)
    conf.write_text(conf.read_text().replace("threshold = 1", "threshold = 2"))
    before = team.state()

    refused = _run(capsys, "key", "remove", other.keyid, "--root", team.root)

    assert refused == (
        26,
        "",
        f"error[conf-syntax]: without the key {other.keyid} {conf} would be refused: "
        "loader.conf is refused: `core.threshold` is 2, but there is only 1 core key; it was not changed\n"
        "  hint: mend what is said there first, such as `threshold`\n",
    )
    assert team.state() == before


@pytest.mark.parametrize("keyid", ["0" * 64, "", "ext"])
def test_an_unknown_key_cannot_be_removed(capsys: pytest.CaptureFixture[str], team: Team, keyid: str) -> None:
    before = team.state()

    refused = _run(capsys, "key", "remove", keyid, "--root", team.root)

    assert refused == (
        10,
        "",
        f"error[not-found]: {team.site.loader_conf} pins no key {keyid!r}\n"
        f"  hint: see `spm-registry key list --root {team.root}`; write the key id whole\n",
    )
    assert team.state() == before

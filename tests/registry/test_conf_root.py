"""The root in loader.conf: pinned by two lines, all others as they were written."""

import json
from pathlib import Path

import pytest

from keys.keyring import LoaderConf, RootPin
from manifests.errors import ConfigSyntax
from registry.cli import main
from registry.services.conf_text import with_root
from registry.services.pins import pin_root
from tests.registry.team import Team

SHA = "5" * 64
NEW = f'[root]\nversion = 7\nsha256 = "{SHA}"\n'
REGISTRY = '[registry]\nid = "team.local"\nurl = "http://127.0.0.1:8080"\n'
CORE = "# How many.\n[core]\nthreshold = 1\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{REGISTRY}\n{CORE}", f"{REGISTRY}\n{NEW}\n{CORE}"),
        (f"{REGISTRY}{CORE}", f"{REGISTRY}\n{NEW}\n{CORE}"),
        (REGISTRY, f"{REGISTRY}\n{NEW}"),
        (REGISTRY.rstrip(), f"{REGISTRY}\n{NEW}"),
        (f"{CORE}\n{REGISTRY}", f"{CORE}\n{REGISTRY}\n{NEW}"),
        (
            f"{REGISTRY}\n# Ours.\n[root]  # since May\nsha256 = 'old'\n# First.\n  version=1 # one\n\n{CORE}",
            f'{REGISTRY}\n# Ours.\n[root]  # since May\nsha256 = "{SHA}"\n# First.\nversion = 7\n\n{CORE}',
        ),
        (f"{CORE}\n[root]\nversion = 1\nsha256 = 'old'\n{REGISTRY}", f"{CORE}\n{NEW}{REGISTRY}"),
    ],
)
def test_the_root_has_its_own_lines_and_all_others_stay(text: str, expected: str) -> None:
    assert with_root(text, 7, SHA) == expected
    assert with_root(expected, 7, SHA) == expected


def _without_root(path: Path) -> str:
    text = path.read_text()
    conf = LoaderConf.parse(text)
    assert conf.root is not None
    bare = text.replace(f'[root]\nversion = {conf.root.version}\nsha256 = "{conf.root.sha256}"\n\n', "")
    assert LoaderConf.parse(bare).root is None
    path.write_text(bare)
    return text


def test_a_root_is_pinned_by_its_version_and_digest(team: Team) -> None:
    served = team.ask("GET", "/v1/tuf/1.root.json")

    pinned = LoaderConf.read(team.site.loader_conf).root

    assert f'"{pinned.sha256 if pinned else None}"' == served.headers["ETag"]
    assert pinned == RootPin(version=1, sha256=served.headers["ETag"].strip('"'))


def test_a_pin_that_was_not_written_is_written_for_the_next_who_needs_it(
    capsys: pytest.CaptureFixture[str], team: Team
) -> None:
    whole = _without_root(team.site.loader_conf)

    code = main(["loader-conf", "--root", str(team.root), "--json"])

    assert (code, json.loads(capsys.readouterr().out)) == (0, {"loader_conf": whole})
    assert team.site.loader_conf.read_text() == whole


def test_pinning_the_same_root_changes_nothing(team: Team) -> None:
    before = team.state()

    pin_root(team.site)

    assert team.state() == before


def test_lines_that_cannot_be_told_apart_are_left_to_a_person(team: Team) -> None:
    path = team.site.loader_conf
    pinned = LoaderConf.read(path).root
    assert pinned is not None
    _without_root(path)
    text = f'root = {{ version = 9, sha256 = "{SHA}" }}\n{path.read_text()}'
    path.write_text(text)

    with pytest.raises(ConfigSyntax) as caught:
        pin_root(team.site)

    assert caught.value.message == f"the lines of the root cannot be told apart in {path}; it was not changed"
    assert caught.value.hint == f'write there by hand: `[root]`, `version = 1`, `sha256 = "{pinned.sha256}"`'
    assert path.read_text() == text


def test_key_commands_keep_the_root(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    pinned = LoaderConf.read(team.site.loader_conf).root

    removed = main(["key", "remove", team.ext.public.keyid, "--root", str(team.root)])
    file = team.ext.directory / "ext.pub"
    added = main(["key", "add", str(file), "--names", "audio-*", "--root", str(team.root)])

    assert (removed, added) == (0, 0)
    assert LoaderConf.read(team.site.loader_conf).root == pinned
    capsys.readouterr()

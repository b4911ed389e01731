"""Finding a plugin, and what is told of it before it is installed, as a person sees it; what is unsigned is a hint."""

import json
from pathlib import Path

import pytest

from tests.e2e.commands import SPM, Client, run
from tests.e2e.snapshots import unchanged
from tests.e2e.team import Team
from tests.fakes.tampering_proxy import Change, TamperingProxy, answer, body, drip, endless, redirect

pytestmark = pytest.mark.e2e

WIDTH = 100


def test_a_search_shows_what_is_installed_and_changes_nothing(client: Client) -> None:
    client.spm("install", "beta").ok()

    with unchanged(client.home):
        found = client.told("search", "alpha")
        plugins = client.told("search", "PLUGIN", "tests", "--device", "cpu", "--limit", "2")
        of_cores = client.told("search", "gamma", "--batch", "adaptive")

    assert found.ok().out == (
        "NAME   NEWEST  CLASS  DEVICES  BATCH     INSTALLED  SUMMARY\n"
        "alpha  2.0.0   ext    cpu      adaptive  -          The plugin alpha of the tests\n"
    )
    assert plugins.ok("note: there are more than these 2; another word, or `--limit N`, shows others\n").out == (
        "NAME   NEWEST  CLASS  DEVICES  BATCH     INSTALLED  SUMMARY\n"
        "alpha  2.0.0   ext    cpu      adaptive  -          The plugin alpha of the tests\n"
        "beta   1.1.0   ext    cpu      adaptive  1.1.0      The plugin beta of the tests\n"
    )
    assert of_cores.ok().out.splitlines()[1].split()[:3] == ["gamma", "1.0.0", "core"]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (80, "NAME   NEWEST  CLASS  DEVICES  BATCH     INSTALLED  SUMMARY\n"),
        (60, "NAME   NEWEST  DEVICES  INSTALLED  SUMMARY\n"),
        (40, "NAME   NEWEST  INSTALLED  SUMMARY\n"),
    ],
)
def test_a_search_and_a_doctor_fit_their_terminal(client: Client, columns: int, expected: str) -> None:
    environment = client.environment | {"COLUMNS": str(columns)}

    found = run([SPM, "search", "alpha"], environment).ok().out
    examined = run([SPM, "doctor"], environment).out

    assert found.startswith(expected)
    assert max(map(len, found.splitlines())) <= max(columns, 42)
    prose = [line for line in examined.splitlines() if not any("/" in word for word in line.split())]
    assert max(map(len, prose)) <= max(columns, 70)


def test_a_search_that_finds_nothing_says_what_is_near(client: Client) -> None:
    near = client.told("search", "alhpa")
    nothing = client.told("search", "alhpa", "beta")

    assert near.ok("  hint: did you mean `alpha`?\n").out == "the registry `team.example` tells of no such plugin\n"
    assert nothing.ok().out == "the registry `team.example` tells of no such plugin\n"


def test_a_search_for_a_pattern_says_that_words_are_none(client: Client) -> None:
    told = client.told("search", "alph*")

    assert (
        told.ok(
            "  hint: a word is looked for as it is written and is no pattern; `spm search` alone shows all there is\n"
            "  hint: did you mean `alpha`?\n"
        ).out
        == "the registry `team.example` tells of no such plugin\n"
    )


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--batch", "fast"], "`--batch fast`: a batch policy is `adaptive`, `static` or `none`", ""),
        (
            ["--limit", "0"],
            "argument --limit: '0' is not a whole number from 1 to 100",
            "`spm search --help` shows how it is used",
        ),
        (["a\x1bb"], "a search takes up to 8 words with 200 printable characters in all", ""),
        (["abcdefghi" * 30], "a search takes up to 8 words with 200 printable characters in all", ""),
        (
            ["--device", "gpu"],
            "'gpu' is not a device: write `cpu`, `cuda`, `cuda:0`, `cuda:sm_86`, `npu`, `npu:0`, `xpu` or `mps`",
            "",
        ),
    ],
)
def test_a_search_that_is_none_is_refused(client: Client, words: list[str], message: str, hint: str) -> None:
    client.spm("search", *words).refused(2, "usage", message, hint)


def test_a_misspelt_name_is_refused_with_those_that_are_near(client: Client) -> None:
    with unchanged(client.home):
        info = client.spm("info", "Gama")

    context = info.refused(10, "not-found", "the registry `team.example` has no plugin `gama`", "did you mean `gamma`?")
    assert context == {"name": "gama", "registry": "team.example", "near": ["gamma"]}


LIE = json.dumps({"_type": "spm.search/1", "results": [], "is_cut": False, "near": ["\x1b[2Jgamma"]})


@pytest.mark.parametrize(
    "change",
    [body(LIE.encode()), body(b"garbage"), answer(500), answer(404), redirect("/v1/registry"), endless, drip(0.05)],
    ids=["lie", "garbage", "failed", "absent", "redirect", "endless", "drip"],
)
def test_a_wire_that_lies_about_names_changes_no_refusal(wired: Client, wire: TamperingProxy, change: Change) -> None:
    wire.alter(r"/v1/search.*", change)

    wired.spm("info", "bta").refused(
        10,
        "not-found",
        "the registry `team.example` has no plugin `bta`",
        "check how it is spelled, or ask whoever runs the registry",
    )


def test_a_plugin_is_told_of_with_the_fallback_that_an_install_would_be(client: Client, team: Team) -> None:
    told = client.told("info", "delta")

    fact = "1.1.0 needs torch `>=99,<100`, and the target has"
    lines = told.ok().out.splitlines()
    assert lines[0] == "delta 1.0.0 (ext): The plugin delta of the tests"
    assert "installed  no" in lines
    assert f"signed by  {team.keyids['ext'][:16]}…, ext key of `team`, pinned in loader.conf" in lines
    assert f"install    stops, since there is only a fallback: {fact}" in lines
    assert "           `spm install delta --accept-fallback delta` takes 1.0.0 (`any`) instead" in lines
    assert [line.split()[0] for line in lines[-4:] if line[0] != " "] == ["VERSION", "1.1.0", "1.0.0"]
    assert max(map(len, lines)) <= WIDTH


def test_what_is_installed_and_who_requires_it_is_told(client: Client) -> None:
    client.spm("install", "alpha").ok()

    told = client.told("info", "beta", "--version", "1.0.0").ok().out.splitlines()
    document = client.spm("info", "beta").ok().document

    assert told[0] == "beta 1.0.0 (ext): The plugin beta of the tests"
    assert "installed  1.1.0: alpha requires it" in told
    assert (document["installed"], document["requested"], document["dependants"]) == ("1.1.0", False, ["alpha"])
    assert (document["described"], document["choice"]["version"]) == ("1.1.0", "1.1.0")


def test_a_release_that_is_not_there_is_refused(client: Client) -> None:
    client.spm("info", "beta", "--version", "3.0.0").refused(
        10, "not-found", "`beta` has no release 3.0.0 in `team.example`", "it has 1.1.0, 1.0.0"
    )
    client.spm("info", "beta", "--version", "3").refused(
        2,
        "usage",
        "`--version`: '3' is not a version: write `X.Y.Z`, with `-alpha.N`, `-beta.N`, `-rc.N` or `-dev.N` for a "
        "pre-release",
    )


def test_another_target_is_judged_as_it_is(client: Client, tmp_path: Path) -> None:
    target = json.loads(client.told("target", "probe").ok().out)
    target["torch"] = {"version": "99.1.0"}
    (tmp_path / "other.json").write_text(json.dumps(target))

    told = client.told("info", "delta", "--target", tmp_path / "other.json").ok().out

    assert "install    takes 1.1.0 (`any`)" in told.splitlines()

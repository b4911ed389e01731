"""Lesser releases: a fallback is refused until it is accepted by name, a yanked release is kept but not taken."""

import shutil
from pathlib import Path

import pytest

from tests.e2e.commands import Client
from tests.e2e.snapshots import unchanged
from tests.e2e.sources import write_source
from tests.e2e.team import Team

pytestmark = pytest.mark.e2e


def torch_of(client: Client) -> str:
    return str(client.spm("target", "probe").ok().document["torch"]["version"])


def test_a_fallback_is_refused_with_the_fact_that_stands_against_the_newest(client: Client) -> None:
    torch = torch_of(client)

    with unchanged(client.home):
        refusal = client.spm("install", "delta")

    context = refusal.refused(
        10,
        "fallback",
        "`delta` would fall back to 1.0.0, older than the newest release in range:\n"
        f"  1.1.0: needs torch `>=99,<100`, and the target has {torch}",
        "add `--accept-fallback delta` to accept that; it is recorded and shown ever after",
    )
    assert context["accept"] == ["delta"]


def test_accepting_another_plugin_does_not_accept_this_fallback(client: Client) -> None:
    with unchanged(client.home):
        refusal = client.spm("install", "delta", "--accept-fallback", "alpha")

    assert (refusal.code, refusal.document["error"]["reason"]) == (10, "fallback")


def test_a_release_that_was_asked_for_by_its_version_is_no_fallback(client: Client) -> None:
    client.spm("install", "delta==1.0.0").ok()

    (entry,) = client.spm("list").ok().document["plugins"]
    assert (entry["version"], entry["is_fallback"]) == ("1.0.0", False)


def test_an_accepted_fallback_is_recorded_and_shown_ever_after(client: Client) -> None:
    torch = torch_of(client)

    accepted = client.told("install", "delta", "--accept-fallback", "delta")

    assert accepted.out == "installed  delta 1.0.0 (ext) (fallback)\n"
    (entry,) = client.spm("list").ok().document["plugins"]
    assert entry["is_fallback"] is True
    assert entry["fallback"] == (
        f"delta 1.0.0 was accepted as a fallback: 1.1.0 needs torch `>=99,<100`, and the target has {torch}"
    )
    assert client.told("list").ok().out == (
        "NAME   VERSION           CLASS  BOUND TO  BATCH  WANTED BY\n"
        "delta  1.0.0 (fallback)  ext    -         -      you\n"
    )
    told = client.told("verify")
    assert told.out.splitlines()[0] == "verified   delta 1.0.0 (fallback)"
    assert told.err.splitlines()[:2] == [
        "  trap[range-unbounded] waste: `delta` 1.0.0 is not the newest in range; when it was accepted: "
        f"1.1.0 needs torch `>=99,<100`, and the target has {torch}",
        "    remedy: spm outdated",
    ]


def test_a_yanked_release_is_not_taken_anew_and_is_kept_where_it_is_installed(
    team: Team, client: Client, tmp_path: Path
) -> None:
    other = team.client(tmp_path / "other")
    for version in ("1.0.0", "1.1.0"):
        team.publish(write_source(tmp_path, "eta", version))
    client.spm("install", "eta").ok()
    team.publisher.spm("yank", "eta==1.1.0", "--reason", "it forgets").ok()

    other.spm("install", "eta").ok()
    client.spm("install", "beta").ok("warning[yanked]: `eta` 1.1.0 was yanked: it forgets\n")

    assert other.installed() == {"eta": "1.0.0"}
    assert client.installed() == {"beta": "1.1.0", "eta": "1.1.0"}
    client.require_sound()
    rows = client.told("info", "eta").ok().out.splitlines()
    assert next(row for row in rows if row.startswith("1.1.0")).endswith("yanked: it forgets")


def test_an_installed_release_that_was_yanked_is_not_moved_back_unasked(
    team: Team, client: Client, tmp_path: Path
) -> None:
    for version in ("1.0.0", "1.1.0"):
        team.publish(write_source(tmp_path, "omicron", version))
    client.spm("install", "omicron").ok()
    team.publisher.spm("yank", "omicron==1.1.0", "--reason", "it forgets").ok()

    with unchanged(client.home):
        refusal = client.spm("install", "omicron")

    why = "1.0.0 instead of the installed 1.1.0, which was yanked: it forgets"
    context = refusal.refused(
        10,
        "fallback",
        f"`omicron` would move back: {why}",
        "`spm install omicron==1.0.0` asks for that; `--accept-fallback omicron` accepts and records it",
    )
    assert context == {"fallbacks": [{"name": "omicron", "version": "1.0.0", "why": why}], "accept": ["omicron"]}
    assert (
        f"install stops, since it would move back: {why} "
        "`spm install omicron --accept-fallback omicron` takes 1.0.0 (`any`) instead VERSION"
    ) in " ".join(client.told("info", "omicron").ok().out.split())
    assert client.spm("install", "omicron", "--accept-fallback", "omicron").code == 0
    assert client.told("list").out.splitlines()[1].split()[:3] == ["omicron", "1.0.0", "(fallback)"]


def test_a_yank_of_a_misspelt_name_says_which_installed_one_is_near(team: Team, tmp_path: Path) -> None:
    shutil.copytree(team.publisher.home, tmp_path / "publisher", symlinks=True)
    publisher = Client(tmp_path / "publisher")
    publisher.spm("install", "gamma").ok()

    publisher.spm("yank", "gama==1.0.0", "--reason", "it forgets").refused(
        10,
        "not-found",
        "`gama` 1.0.0 is not published here",
        "see `spm info gama`; or did you mean `gamma`?",
    )


def test_an_acceptance_of_nothing_is_refused(client: Client) -> None:
    with unchanged(client.home):
        refusal = client.spm("install", "beta", "--accept-fallback", "bta")

    refusal.refused(2, "usage", "`--accept-fallback bta`: `bta` is not among what would be installed")


def test_a_plugin_of_which_every_release_in_range_is_yanked_is_refused_with_the_reason(
    team: Team, client: Client, tmp_path: Path
) -> None:
    team.publish(write_source(tmp_path, "theta", "1.0.0"))
    team.publisher.spm("yank", "theta==1.0.0", "--reason", "it forgets").ok()

    with unchanged(client.home):
        refusal = client.spm("install", "theta")

    refusal.refused(
        10,
        "unsatisfiable",
        "no set of releases satisfies every requirement:\n`theta`: `*` wanted by you\n  1.0.0: yanked (it forgets)",
        "`theta==1.0.0` takes that one all the same",
    )


def test_a_yank_that_was_undone_offers_the_release_again(team: Team, client: Client, tmp_path: Path) -> None:
    team.publish(write_source(tmp_path, "undone", "1.0.0"))
    team.publisher.spm("yank", "undone==1.0.0", "--reason", "a mistake").ok()
    team.publisher.spm("yank", "undone==1.0.0", "--undo").ok()

    client.spm("install", "undone").ok()

    assert client.installed() == {"undone": "1.0.0"}

"""The main job with the real commands over real HTTP: install, list, info, verify, run, uninstall."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.commands import Client
from tests.e2e.snapshots import unchanged
from tests.e2e.team import Team

pytestmark = pytest.mark.e2e


def test_a_plugin_is_installed_with_what_it_requires_and_run_and_uninstalled(
    team: Team, client: Client, tmp_path: Path
) -> None:
    installed = client.told("install", "alpha")
    listed = client.told("list")
    told = client.told("info", "alpha")
    verified = client.told("verify")
    (tmp_path / "x.json").write_text("[[1.0, 2.0], [3.0, 4.0]]")
    ran = client.spm("run", "alpha", "--input", tmp_path / "x.json", "--output", tmp_path / "y.json")
    removed = client.told("uninstall", "alpha")
    published = [str(release.published) for release in team.shard("alpha").releases]
    target = next(line for line in told.out.splitlines(keepends=True) if line.startswith("target     linux "))

    assert installed.ok().out == (
        "installed  alpha 2.0.0 (ext)\ninstalled  beta 1.1.0 (ext), required by another plugin\n"
    )
    assert listed.ok().out == (
        "NAME   VERSION  CLASS  BOUND TO  BATCH  WANTED BY\n"
        "alpha  2.0.0    ext    -         -      you\n"
        "beta   1.1.0    ext    -         -      alpha\n"
    )
    assert told.ok().out == (
        "alpha 2.0.0 (ext): The plugin alpha of the tests\n"
        "registry   team.example\n"
        f"published  {published[2][:10]} {published[2][11:16]} UTC, by the registry's clock\n"
        "installed  2.0.0: you asked for it\n"
        "devices    cpu\n"
        "batch      adaptive\n"
        "requires   beta ^1.0; Seedance contract >=2.0.0,<3\n"
        f"signed by  {team.keyids['ext'][:16]}…, ext key of `team`, pinned in loader.conf\n"
        f"{target}"
        "install    takes 2.0.0 (`any`)\n\n"
        "VERSION  PUBLISHED   SIZE   DEVICES  BATCH     REQUIRES   ON THIS TARGET\n"
        f"2.0.0    {published[2][:10]}  149 B  cpu      adaptive  beta ^1.0  fits (any target)\n"
        f"1.1.0    {published[1][:10]}  149 B  cpu      adaptive  beta ^1.0  fits (any target)\n"
        f"1.0.0    {published[0][:10]}  149 B  cpu      adaptive  beta ^1.0  fits (any target)\n"
    )
    assert verified.ok().out == "verified   alpha 2.0.0\nverified   beta 1.1.0\n"
    # beta doubles and alpha adds one.
    assert json.loads((tmp_path / "y.json").read_text()) == [[3.0, 5.0], [7.0, 9.0]]
    assert ran.ok().document["device"] == "cpu"
    assert removed.ok().out == "removed alpha 2.0.0\nremoved beta 1.1.0 (nothing else required it)\n"
    assert client.told("list").ok().out == f"nothing is installed in {client.store}\n"
    assert not list(client.store.glob("plugins/*"))
    assert not (client.store / "tmp").exists()


def test_a_core_plugin_runs_on_a_tensor_file_of_numpy(client: Client, tmp_path: Path) -> None:
    client.spm("install", "gamma").ok()
    np.save(tmp_path / "x.npy", np.ones((4, 2), dtype=np.float32))

    client.spm("run", "gamma", "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy").ok()

    assert np.load(tmp_path / "y.npy").tolist() == [[3.0, 3.0]] * 4


def test_what_was_installed_holds_the_signed_files_with_their_modes(team: Team, client: Client) -> None:
    client.spm("install", "gamma").ok()

    modes = {
        str(path.relative_to(client.tree("gamma"))): f"{path.stat().st_mode & 0o7777:04o}"
        for path in client.tree("gamma").rglob("*")
        if path.is_file()
    }
    sha256 = team.shard("gamma").releases[0].variants[0].manifest_sha256
    assert modes == {"gamma.py": "0444", "bin/tool": "0555"}
    assert (client.store / "current").read_text() == "000001\n"
    assert sorted(path.name for path in (client.store / "manifests" / sha256).iterdir()) == [
        "manifest.json",
        f"manifest.sig.{team.keyids['core']}",
    ]


def test_an_older_release_is_installed_where_it_was_asked_for_and_changed_on_demand(client: Client) -> None:
    older = client.told("install", "alpha==1.0.0")
    newer = client.told("install", "alpha@^1")

    back = client.told("install", "alpha==1.0.0")

    assert older.ok().out == ("installed  alpha 1.0.0 (ext)\ninstalled  beta 1.1.0 (ext), required by another plugin\n")
    assert newer.ok().out == "upgraded   alpha 1.1.0 (ext), was 1.0.0\n"
    assert back.ok().out == "downgraded alpha 1.0.0 (ext), was 1.1.0\n"


def test_a_second_install_changes_nothing(client: Client) -> None:
    client.spm("install", "alpha").ok()

    with unchanged(client.home):
        again = client.told("install", "alpha")

    assert again.ok().out == "unchanged  alpha 2.0.0 (ext)\n"


def test_a_dry_run_shows_the_plan_and_changes_nothing(team: Team, client: Client) -> None:
    with unchanged(client.home):
        planned = client.told("install", "alpha", "--dry-run")

    assert planned.ok().out == (
        "would be installed alpha 2.0.0 (ext)\n"
        f"           signed by {team.keyids['ext'][:16]}…\n"
        "would be installed beta 1.1.0 (ext), required by another plugin\n"
        f"           signed by {team.keyids['ext'][:16]}…\n"
        "259 B in 2 files would be downloaded\n"
    )


def test_uninstall_is_refused_while_another_plugin_requires_it(client: Client) -> None:
    client.spm("install", "alpha").ok()

    with unchanged(client.home):
        answer = client.spm("uninstall", "beta")

    context = answer.refused(
        10,
        "unsatisfiable",
        "`beta` cannot be removed: `alpha` requires it",
        "remove both: `spm uninstall alpha beta`",
    )
    assert context == {"name": "beta", "required_by": ["alpha"]}


@pytest.mark.parametrize("command", ["uninstall", "verify"])
def test_what_is_not_installed_is_not_found(client: Client, command: str) -> None:
    with unchanged(client.home):
        answer = client.spm(command, "alpha")

    answer.refused(10, "not-found", "`alpha` is not installed", "`spm list` shows what is")


def test_a_misspelt_installed_name_is_answered_with_the_one_that_was_meant(client: Client, tmp_path: Path) -> None:
    client.spm("install", "gamma").ok()

    with unchanged(client.home):
        verified = client.spm("verify", "gama")
        exported = client.spm("bundle", "export", "gama", "--output", tmp_path / "gama.bundle")

    meant = "did you mean `gamma`?"
    verified.refused(10, "not-found", "`gama` is not installed", meant)
    exported.refused(10, "not-found", "the registry `team.example` has no plugin `gama`", meant)


def test_a_slip_of_the_pen_is_answered_with_the_command_that_was_meant(client: Client) -> None:
    with unchanged(client.home):
        answer = client.spm("instal", "alpha")

    answer.refused(2, "usage", "`instal` is not a command of spm", "did you mean `spm install`?")

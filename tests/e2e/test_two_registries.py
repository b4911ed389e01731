"""Two real registries with a plugin of the same name: who owns the name is asked alone, however new the other's is."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.commands import Answer, Client
from tests.e2e.snapshots import unchanged
from tests.e2e.sources import write_source
from tests.e2e.team import Team, founded
from tests.fakes.tampering_proxy import TamperingProxy, answer
from tests.fakes.two_registries import PX, claiming, write_conf

pytestmark = pytest.mark.e2e

CALLS = """import {inner}


def make(context):
    inner = {inner}.make(context)

    def outer(x):
        return inner(x) + 1

    return outer
"""


@dataclass(frozen=True, slots=True)
class Both:
    """The registry of the store's own team, and a partner's; each has a newer squatter of the other's names."""

    own: Team
    px: Team


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    own_folder, px_folder = folder / "own", folder / "px"
    own_folder.mkdir()
    px_folder.mkdir()
    with founded(own_folder) as own, founded(px_folder, registry=PX) as px:
        own.publish(
            write_source(folder / "own-1", "base", "1.0.0"),
            write_source(folder / "own-1", "pxscale", "9.0.0"),
            write_source(
                folder / "own-1",
                "chain",
                "1.0.0",
                module=CALLS.format(inner="pxscale"),
                requires='{plugins: {pxscale: "^1.0"}}',
            ),
        )
        px.publish(
            write_source(
                folder / "px-1",
                "pxscale",
                "1.0.0",
                module=CALLS.format(inner="base"),
                requires='{plugins: {base: "^1.0"}}',
            ),
            write_source(folder / "px-1", "base", "9.0.0"),
            write_source(folder / "px-1", "lens", "1.0.0"),
        )
        yield Both(own, px)


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that knows both, each through a wire of its own."""

    client: Client
    own: TamperingProxy
    px: TamperingProxy

    def asked(self) -> tuple[list[str], list[str]]:
        """Return the paths that each registry was asked for."""
        return [seen.path for seen in self.own.seen], [seen.path for seen in self.px.seen]

    @property
    def px_folder(self) -> Path:
        return self.client.store / "registries" / PX


@pytest.fixture
def host(both: Both, tmp_path: Path) -> Iterator[Host]:
    with TamperingProxy(both.own.url) as own, TamperingProxy(both.px.url) as px:
        client = both.own.client(tmp_path, own.url)
        made = Host(client, own, px)
        write_conf(made.px_folder / "loader.conf", claiming(both.px.loader_conf.replace(both.px.url, px.url), "px*"))
        yield made


def plugins(told: Answer) -> dict[str, tuple[str, str | None]]:
    """Return version and registry by name."""
    return {one["name"]: (one["version"], one.get("registry")) for one in told.ok().document["plugins"]}


def test_a_newer_release_in_the_other_registry_is_never_looked_at(host: Host) -> None:
    installed = host.client.spm("install", "pxscale")

    assert plugins(installed) == {"base": ("1.0.0", None), "pxscale": ("1.0.0", PX)}
    own, px = host.asked()
    assert [path for path in own if "pxscale" in path] == []
    assert [path for path in px if "base" in path] == []


def test_a_plugin_of_the_own_registry_requires_one_of_the_other_and_they_run_together(
    host: Host, tmp_path: Path
) -> None:
    host.client.spm("install", "chain").ok()
    (tmp_path / "x.json").write_text("[[1.0, 2.0]]")

    ran = host.client.spm("run", "chain", "--input", tmp_path / "x.json", "--output", tmp_path / "y.json")

    ran.ok()
    # base doubles, pxscale and chain add one each.
    assert json.loads((tmp_path / "y.json").read_text()) == [[4.0, 6.0]]


def test_a_search_says_which_registry_was_not_asked(host: Host) -> None:
    note = "note: px.example was not asked; `spm info px.example/NAME` asks it for a plugin\n"

    host.client.told("search", "base").ok(note)
    nothing = host.client.told("search", "lens", "glass").ok(note)

    assert nothing.out == "the registry `team.example` tells of no such plugin\n"
    assert host.asked()[1] == []


def test_plans_listings_and_verification_tell_the_registry(host: Host) -> None:
    planned = host.client.told("install", "pxscale", "--dry-run").ok().out
    done = host.client.told("install", "pxscale").ok().out
    listed, shown = host.client.spm("list"), host.client.told("list").ok().out
    verified = host.client.told("verify").ok().out

    assert "would be installed pxscale 1.0.0 (ext), from px.example\n" in planned
    assert done == (
        "installed  base 1.0.0 (ext), required by another plugin\ninstalled  pxscale 1.0.0 (ext), from px.example\n"
    )
    assert plugins(listed) == {"base": ("1.0.0", None), "pxscale": ("1.0.0", PX)}
    assert shown == (
        "NAME     VERSION  CLASS  BOUND TO  BATCH  WANTED BY  FROM\n"
        "base     1.0.0    ext    -         -      pxscale    team.example\n"
        "pxscale  1.0.0    ext    -         -      you        px.example\n"
    )
    assert verified == "verified   base 1.0.0\nverified   pxscale 1.0.0 (from px.example)\n"


def test_a_rollback_brings_back_what_came_from_the_other_registry(host: Host) -> None:
    host.client.spm("install", "pxscale").ok()
    host.client.spm("uninstall", "pxscale").ok()
    host.own.alter(".*", answer(503))
    host.px.alter(".*", answer(503))

    host.client.spm("rollback").ok()

    assert plugins(host.client.spm("list")) == {"base": ("1.0.0", None), "pxscale": ("1.0.0", PX)}
    host.client.spm("verify").ok("verified   base 1.0.0\nverified   pxscale 1.0.0 (from px.example)\n")


def test_while_one_is_down_its_names_fail_and_the_others_install(host: Host) -> None:
    host.px.alter(".*", answer(503))

    with unchanged(host.client.store):
        failed = host.client.spm("install", "pxscale")

    assert (failed.code, failed.document["error"]["context"]["registry"]) == (31, PX)
    assert [path for path in host.asked()[0] if "pxscale" in path] == []
    assert plugins(host.client.spm("install", "base")) == {"base": ("1.0.0", None)}


def test_a_name_that_two_claim_is_asked_of_none(both: Both, host: Host) -> None:
    host.client.trust(claiming(both.own.loader_conf.replace(both.own.url, host.own.url), "pxscale", "base"))

    with unchanged(host.client.store):
        refused = host.client.spm("install", "pxscale")

    context = refused.refused(
        10,
        "ambiguous-source",
        "`pxscale` is claimed by `team.example` (`pxscale`) and `px.example` (`px*`): a name belongs to exactly one "
        "registry, so none was asked",
        "change `registry.names` in one of the loader.conf files, so that one alone claims it",
    )
    assert context == {"name": "pxscale", "registries": ["team.example", PX]}
    assert host.asked() == ([], [])


def test_a_registry_may_be_named_for_what_none_claims_but_not_against_a_claim(host: Host) -> None:
    named = host.client.spm("install", f"{PX}/lens")
    against = host.client.spm("install", "team.example/pxscale")

    assert plugins(named) == {"lens": ("1.0.0", PX)}
    against.refused(
        10,
        "ambiguous-source",
        "`team.example/pxscale` was asked for, but the name is claimed by the registry `px.example` (`px*`), so "
        "neither "
        "was asked",
        "write `pxscale` if that one is meant; if not, change `registry.names` in its loader.conf",
    )


def test_a_plugin_of_the_own_registry_is_not_taken_over_when_its_name_is_claimed(both: Both, host: Host) -> None:
    conf = host.px_folder / "loader.conf"
    claimed = conf.read_text()
    write_conf(conf, claimed.replace('names = ["px*"]', 'names = ["other*"]'))
    host.client.spm("install", "pxscale").ok()
    write_conf(conf, claimed)

    with unchanged(host.client.store):
        refused = host.client.spm("install", "pxscale")

    refused.refused(
        10,
        "ambiguous-source",
        "`pxscale` is installed from the registry `team.example`, and would now come from `px.example`, where that "
        "name "
        "is another plugin",
        "if that one is meant, `spm uninstall pxscale` first",
    )
    host.client.spm("uninstall", "pxscale").ok()
    assert plugins(host.client.spm("install", "pxscale"))["pxscale"] == ("1.0.0", PX)


def test_trust_of_each_is_brought_up_to_date_by_its_id(host: Host) -> None:
    host.client.spm("install", "pxscale").ok()

    shown = [host.client.spm("trust", "update", *words).ok().document for words in ((), ("--registry", PX))]

    assert [one["registry"] for one in shown] == ["team.example", PX]
    assert [one["refused"] for one in shown] == [[], []]


def test_a_lock_records_where_each_plugin_comes_from_and_holds_other_hosts_to_it(host: Host, tmp_path: Path) -> None:
    project = tmp_path / "project"
    host.client.spm("init", project).ok()
    host.client.spm("add", "pxscale", f"{PX}/lens", "--project", project).ok()
    host.client.spm("sync", "--project", project).ok()
    locked = json.loads((project / "spm.lock").read_bytes())["plugins"]

    elsewhere = host.client.copy("elsewhere")
    (elsewhere.store / "registries" / PX / "loader.conf").unlink()
    (elsewhere.store / "registries" / PX).rename(tmp_path / "away")
    with unchanged(elsewhere.store):
        refused = elsewhere.spm("sync", "--project", project)

    expected = {"base": ("1.0.0", None), "lens": ("1.0.0", PX), "pxscale": ("1.0.0", PX)}
    assert {one["name"]: (one["version"], one.get("registry")) for one in locked} == expected
    assert plugins(host.client.spm("list")) == expected
    assert (refused.code, refused.document["error"]["reason"]) == (26, "conf-missing")

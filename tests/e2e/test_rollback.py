"""Going back with real commands: to the generation before and further, by today's trust, without the registry."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.e2e.commands import SPM, Client, run
from tests.e2e.snapshots import unchanged
from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry

pytestmark = pytest.mark.e2e

LISTED = "`spm rollback --list` shows them; `spm gc` frees older ones"


@dataclass
class Scene:
    """A registry, and a machine that has had `alpha` 1.0.0, then 2.0.0 and `gamma`: generations 1 and 2."""

    registry: SimulatedRegistry
    served: ServedFiles
    client: Client


@contextmanager
def founded(folder: Path) -> Iterator[Scene]:
    registry, client = SimulatedRegistry(), Client(folder / "client")
    registry.publish("beta")
    registry.publish("gamma")
    registry.publish("alpha", requires=["beta"])
    with ServedFiles(registry.file) as served:
        client.trust(registry.loader_conf(served.url))
        client.spm("install", "alpha").ok()
        registry.publish("alpha", "2.0.0", requires=["beta"])
        client.spm("install", "alpha", "gamma").ok()
        yield Scene(registry, served, client)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with founded(tmp_path_factory.mktemp("rollback")) as scene:
        yield scene


@pytest.fixture
def served(base: Scene) -> ServedFiles:
    base.served.seen.clear()
    return base.served


@pytest.fixture
def client(base: Scene, tmp_path: Path) -> Client:
    """Give a copy of the machine."""
    shutil.copytree(base.client.store, tmp_path / "store", symlinks=True)
    return Client(tmp_path)


def generation(client: Client) -> int:
    return int((client.store / "current").read_text())


def requested(client: Client) -> set[str]:
    return {entry["name"] for entry in client.spm("list").ok().document["plugins"] if entry["requested"]}


def test_a_rollback_returns_to_the_generation_before_and_a_second_one_comes_back(
    client: Client, served: ServedFiles
) -> None:
    back = client.told("rollback")

    assert back.ok().out == "returned to generation 1, as generation 3\n  alpha 2.0.0 -> 1.0.0\n  - gamma 1.0.0\n"
    assert client.installed() == {"alpha": "1.0.0", "beta": "1.0.0"}
    assert requested(client) == {"alpha"}
    client.require_sound()
    forth = client.told("rollback")
    assert forth.ok().out == "returned to generation 2, as generation 4\n  alpha 1.0.0 -> 2.0.0\n  + gamma 1.0.0\n"
    assert client.installed() == {"alpha": "2.0.0", "beta": "1.0.0", "gamma": "1.0.0"}
    client.require_sound()
    assert (generation(client), served.seen) == (4, [])
    assert not (client.store / "tmp").exists()


def test_what_an_uninstall_took_away_is_laid_out_again_from_blobs(client: Client, served: ServedFiles) -> None:
    client.spm("uninstall", "alpha", "gamma").ok()
    assert [path.name for path in (client.store / "plugins").glob("*/*")] == ["1.0.0"], "what `alpha` 2.0.0 replaced"

    answer = client.spm("rollback").ok().document

    assert (answer["generation"], answer["repeats"], answer["laid_out"]) == (4, 2, ["alpha", "beta", "gamma"])
    assert [(one["name"], one["before"]) for one in answer["changes"]] == [
        ("alpha", None),
        ("beta", None),
        ("gamma", None),
    ]
    assert client.installed() == {"alpha": "2.0.0", "beta": "1.0.0", "gamma": "1.0.0"}
    client.require_sound()
    assert served.seen == []


def test_a_generation_may_be_named(client: Client) -> None:
    client.spm("uninstall", "gamma").ok()
    client.spm("uninstall", "alpha").ok()

    answer = client.told("rollback", "--to", "2")

    assert answer.ok().out == (
        "returned to generation 2, as generation 5\n  + alpha 2.0.0\n  + beta 1.0.0\n  + gamma 1.0.0\n"
    )
    client.require_sound()


def test_a_return_to_what_stands_changes_nothing(client: Client) -> None:
    with unchanged(client.home):
        answer = client.told("rollback", "--to", "2")

    assert answer.ok().out == "generation 2 has just what generation 2 had\n"


def test_a_return_to_what_stands_mends_what_is_damaged(client: Client) -> None:
    (client.tree("gamma") / "extra").touch()

    answer = client.told("rollback", "--to", "2")

    assert answer.ok().out == (
        "generation 2 has just what generation 2 had\n  gamma 1.0.0 was damaged, and is laid out anew\n"
    )
    client.require_sound()


def test_bindings_and_accepted_fallbacks_come_back_too(client: Client) -> None:
    client.spm("install", "gamma", "--batch-policy", "adaptive").ok()
    client.spm("install", "gamma", "--unbind").ok()

    answer = client.told("rollback")

    assert answer.ok().out == ("returned to generation 3, as generation 5\n  gamma 1.0.0 bound or wanted otherwise\n")
    (entry,) = [one for one in client.spm("list").ok().document["plugins"] if one["name"] == "gamma"]
    assert entry["bindings"] == {"batch_policy": "adaptive"}


def test_the_list_shows_what_changed_in_each_generation(client: Client) -> None:
    client.spm("rollback").ok()

    created = [step["created"] for step in reversed(client.spm("rollback", "--list").ok().document["generations"])]

    assert client.told("rollback", "--list").ok().out == (
        "GENERATION  CREATED               CHANGES                              NOTE\n"
        f"3           {created[0]}  alpha 2.0.0 -> 1.0.0, - gamma 1.0.0  current\n"
        f"2           {created[1]}  alpha 1.0.0 -> 2.0.0, + gamma 1.0.0  -\n"
        f"1           {created[2]}  + alpha 1.0.0, + beta 1.0.0          -\n"
    )


def test_the_list_tells_what_is_freed_and_what_is_damaged(client: Client) -> None:
    client.spm("uninstall", "gamma").ok()
    shutil.rmtree(client.store / "blobs")
    (client.store / "generations" / "000001.json").write_bytes(b"{}")

    with unchanged(client.home):
        third, second, first = reversed(client.spm("rollback", "--list").ok().document["generations"])

    assert (third["is_current"], third["missing"], third["damage"]) == (True, [], None)
    assert (second["missing"], second["changes"]) == ([{"name": "gamma", "release": "1.0.0"}], None)
    assert first["damage"].startswith("the generation file")


@pytest.mark.parametrize("command", [("install", "beta"), ("uninstall", "gamma"), ("gc",)])
def test_a_damaged_generation_beyond_the_current_one_changes_nothing_and_may_be_left_behind(
    client: Client, command: tuple[str, ...]
) -> None:
    damaged = client.store / "generations" / "000003.json"
    damaged.write_bytes(b"{}")

    with unchanged(client.home):
        refusal = client.spm(*command)

    error = refusal.document["error"]
    assert (refusal.code, error["reason"]) == (25, "file-set")
    assert error["message"].startswith(
        f"`{damaged}` is the newest generation, but damaged, and cannot be made current: the generation file "
    )
    assert error["message"].endswith("; nothing was changed")
    assert error["hint"] == (
        f"restore it from a backup, or remove it (`rm -r {damaged}`): what is installed now is whole, `spm list` "
        "shows it"
    )
    assert client.installed() == {"alpha": "2.0.0", "beta": "1.0.0", "gamma": "1.0.0"}
    back = client.told("rollback")
    assert back.ok().out == "returned to generation 1, as generation 4\n  alpha 2.0.0 -> 1.0.0\n  - gamma 1.0.0\n"
    client.spm("install", "gamma").ok()
    assert generation(client) == 5
    assert damaged.read_bytes() == b"{}"


def test_a_damaged_generation_is_not_returned_to_and_another_may_be_named(client: Client) -> None:
    client.spm("uninstall", "gamma").ok()
    (client.store / "generations" / "000002.json").unlink()
    (client.store / "generations" / "000002.json").mkdir()

    with unchanged(client.home):
        refusal = client.spm("rollback")

    refusal.refused(
        25,
        "file-set",
        f"generation 2 of `{client.store}` is damaged: {client.store}/generations/000002.json is no plain file; "
        "nothing was changed",
        "`spm rollback --list` shows which are whole, and `--to N` returns to one of them",
    )
    client.told("rollback", "--to", "1").ok()


def test_what_was_revoked_since_is_not_returned_to(tmp_path: Path) -> None:
    with founded(tmp_path) as scene:
        revoked = scene.registry.shards["alpha"].releases[0].variants[0].manifest_sha256
        scene.registry.revoke_manifest(revoked)
        scene.client.spm("trust", "update").ok()

        with unchanged(scene.client.home):
            refusals = [scene.client.spm("rollback"), scene.client.spm("rollback", "--to", "1")]

    for refusal in refusals:
        refusal.refused(
            22,
            "artifact-revoked",
            f"`alpha` 1.0.0 is refused: the manifest sha256:{revoked} was revoked by the registry's root holders or in "
            "loader.conf",
            "take another release: `spm info alpha` lists them",
        )


def test_a_manifest_that_was_changed_is_not_returned_to(base: Scene, client: Client) -> None:
    digest = base.registry.shards["alpha"].releases[0].variants[0].manifest_sha256
    path = client.store / "manifests" / digest / "manifest.jws"
    data = bytearray(path.read_bytes())
    # In the middle of the signature, where any letter is as canonical as another.
    data[-40] = ord("B" if data[-40] == ord("A") else "A")
    path.write_bytes(bytes(data))

    with unchanged(client.home):
        refusal = client.spm("rollback")

    assert (refusal.code, refusal.document["error"]["reason"]) == (20, "sig-invalid")


@pytest.mark.parametrize("lost", ["blobs", "manifests"])
def test_what_is_freed_is_named_with_the_command_that_fetches_it(client: Client, lost: str) -> None:
    client.spm("uninstall", "alpha", "gamma").ok()
    shutil.rmtree(client.store / lost)
    what = {"blobs": "1 of its 1 blobs", "manifests": "its manifest"}[lost]

    with unchanged(client.home):
        refusal = client.spm("rollback")

    context = refusal.refused(
        25,
        "file-set",
        "generation 2 cannot be laid out again, since the store no longer has: "
        f"of `alpha` 2.0.0, {what}; of `beta` 1.0.0, {what}; of `gamma` 1.0.0, {what}; nothing was changed",
        "fetch it from the registry: `spm install alpha==2.0.0 beta==1.0.0 gamma==1.0.0`",
    )
    assert context["generation"] == 2
    assert context["missing"][0] == {"name": "alpha", "release": "2.0.0", "lacks": what}
    client.spm("install", "alpha==2.0.0", "beta==1.0.0", "gamma==1.0.0").ok()
    client.require_sound()


@pytest.mark.parametrize("number", ["0", "3", "99", "-1"])
def test_a_generation_that_is_not_there_is_not_found(client: Client, number: str) -> None:
    with unchanged(client.home):
        refusal = client.spm("rollback", f"--to={number}")

    refusal.refused(10, "not-found", f"generation {number} is not in `{client.store}`, which has 1, 2", LISTED)


def test_before_the_first_install_there_is_nothing_to_return_to(base: Scene, tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.trust(base.registry.loader_conf(base.served.url))

    with unchanged(client.home):
        empty = client.spm("rollback")
    assert client.told("rollback", "--list").ok().out == f"nothing was ever installed in {client.store}\n"
    client.spm("install", "beta").ok()
    with unchanged(client.home):
        first = client.spm("rollback")

    empty.refused(
        10, "not-found", f"nothing was installed in `{client.store}` before now: there is nothing to return to"
    )
    first.refused(
        10,
        "not-found",
        f"nothing was installed in `{client.store}` before generation 1: there is nothing to return to",
        "`spm uninstall NAME` removes a plugin",
    )


def test_a_store_of_another_registry_is_not_returned_to(client: Client) -> None:
    conf = client.conf.read_text()
    client.trust(conf.replace('id = "team.example"', 'id = "other.example"'))

    with unchanged(client.home):
        refusal = client.spm("rollback")

    refusal.refused(
        26,
        "conf-syntax",
        f"the plugins of generation 1 in `{client.store}` are of the registry `team.example`, "
        "but loader.conf is of `other.example`",
        "a store returns only to what its own registry vouches for; use another store (`--root DIR`)",
    )


@pytest.mark.parametrize("created", ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_clock_that_was_wrong_changes_neither_the_order_nor_what_is_kept(client: Client, created: str) -> None:
    seconds = int(datetime.fromisoformat(created).replace(tzinfo=UTC).timestamp())
    environment = client.environment | {"SOURCE_DATE_EPOCH": str(seconds)}
    run([SPM, "uninstall", "gamma", "--json"], environment).ok()
    run([SPM, "rollback", "--json"], environment).ok()
    run([SPM, "rollback", "--json"], environment).ok()

    numbers = [step["number"] for step in client.spm("rollback", "--list").ok().document["generations"]]
    freed = client.spm("gc").ok().document

    assert numbers == [1, 2, 3, 4, 5]
    assert freed["kept_generations"] == [4, 5]
    assert client.spm("rollback").ok().document["repeats"] == 4
    client.require_sound()

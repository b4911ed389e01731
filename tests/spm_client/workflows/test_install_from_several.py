"""Install over two registries: each plugin from its own, by its own keys, and what is learnt of both kept together."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from keys.trust_state import read_trust_state
from manifests.errors import AmbiguousSource, KeyRevoked, KeyUnknown, SpmError, Undecided
from manifests.names import PluginName
from runtime.generation import current_generation
from runtime.installed import StoreTrust, open_entry
from spm_client.workflows.uninstall import uninstall
from tests.e2e.snapshots import snapshot
from tests.fakes.two_registries import PX, TwoRegistries, two_registries
from tests.spm_client.workflows.several import put, registries
from tests.spm_client.workflows.sources import MOMENT


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoRegistries]:
    """Give both; `px-scale` requires `base` of the own registry, whose `chain` requires `px-scale`."""
    with two_registries(tmp_path / "store") as made:
        made.own.publish("base")
        made.own.publish("px-scale", "9.0.0")
        made.own.publish("chain", requires=["px-scale"])
        made.px.publish("px-scale", requires=["base"])
        made.px.publish("base", "9.0.0")
        yield made


def refusal(two: TwoRegistries, *specs: str) -> SpmError:
    before = snapshot(two.root)
    with pytest.raises(SpmError) as caught:
        put(two, *specs)
    assert snapshot(two.root) == before
    return caught.value


def load(two: TwoRegistries, name: str) -> None:
    """Verify an installed plugin as a host does at a load."""
    entry = current_generation(two.root).find(name)
    assert entry is not None
    open_entry(two.root, entry, StoreTrust(two.root, two.conf, datetime.now(UTC)).of(entry))


def test_a_plugin_of_one_registry_may_require_one_of_another(two: TwoRegistries) -> None:
    put(two, "chain")

    expected = {"base": ("1.0.0", None), "chain": ("1.0.0", None), "px-scale": ("1.0.0", PX)}
    assert registries(current_generation(two.root)) == expected
    for name in expected:
        load(two, name)


def test_neither_is_asked_for_a_name_of_the_other(two: TwoRegistries) -> None:
    put(two, "px-scale")

    own, px = two.asked()
    assert [path for path in own if "px-scale" in path] == []
    assert [path for path in px if "base" in path] == []


def test_manifests_and_blobs_come_from_the_plugins_own_registry(two: TwoRegistries) -> None:
    put(two, "px-scale")

    own, px = two.asked()
    for asked, registry in ((own, two.own), (px, two.px)):
        found = {path for path in asked if path.startswith(("/v1/manifests/", "/v1/blobs/"))}
        assert len(found) == 3
        assert found <= registry.documents.keys()


def test_what_is_learnt_of_each_is_kept_in_its_place(two: TwoRegistries) -> None:
    put(two, "px-scale")

    states = read_trust_state(two.root), read_trust_state(two.px_layout.root)
    assert [state and state.registry for state in states] == ["team.example", PX]
    assert sorted(path.name for path in (two.px_layout.trust / "cache").glob("index.*")) == ["index.px-scale.json"]


def test_a_dry_run_tells_the_registry_and_changes_nothing(two: TwoRegistries) -> None:
    before = snapshot(two.root)

    installed = put(two, "px-scale", is_dry_run=True)

    assert registries(installed.generation) == {"base": ("1.0.0", None), "px-scale": ("1.0.0", PX)}
    assert snapshot(two.root) == before


def test_nothing_is_kept_of_either_where_one_refuses(two: TwoRegistries) -> None:
    two.px.revoke_key()

    found = refusal(two, "px-scale")

    assert isinstance(found, KeyRevoked)


def test_what_signed_a_plugin_of_one_vouches_for_none_of_the_other(two: TwoRegistries) -> None:
    """The other registry hands out a plugin that its own keys do not sign, but those of the store's own registry do."""
    two.px.key = two.own.key
    two.px.publish("px-blur")

    found = refusal(two, "px-blur")

    assert isinstance(found, KeyUnknown)


def test_what_was_installed_before_the_name_was_claimed_is_not_replaced(two: TwoRegistries) -> None:
    two.pin_px("other-*")
    put(two, "px-scale")
    two.pin_px("px-*")
    two.asked()

    found = refusal(two, "px-scale"), refusal(two, "base")

    assert [type(one) for one in found] == [AmbiguousSource, AmbiguousSource]
    assert found[0].message == (
        "`px-scale` is installed from the registry `team.example`, and would now come from `px.example`, where that "
        "name is another plugin"
    )
    assert two.asked()[1] == []


def test_after_an_uninstall_it_comes_from_where_it_belongs(two: TwoRegistries) -> None:
    two.pin_px("other-*")
    put(two, "px-scale")
    two.pin_px("px-*")
    uninstall((PluginName("px-scale"),), two.layout, created=MOMENT)

    put(two, "px-scale")

    assert registries(current_generation(two.root))["px-scale"] == ("1.0.0", PX)


def test_a_registry_that_is_named_is_remembered(two: TwoRegistries) -> None:
    two.px.publish("lens")
    put(two, f"{PX}/lens")

    two.px.publish("lens", "1.1.0")
    put(two, "lens")

    assert registries(current_generation(two.root)) == {"lens": ("1.1.0", PX)}


def test_a_key_revoked_elsewhere_is_told_and_hinders_no_other_plugin(two: TwoRegistries) -> None:
    put(two, "px-scale")
    two.px.revoke_key()
    two.own.publish("other")

    installed = put(two, "other")

    assert [(one.entry.name, type(one.refusal)) for one in installed.refused] == [("px-scale", KeyRevoked)]
    load(two, "other")


def test_a_registry_that_forgot_is_told_where_its_plugin_is_not_asked_for(two: TwoRegistries) -> None:
    two.own.publish("other")
    put(two, "chain")
    for path in two.px_layout.trust.glob("*.json"):
        path.unlink()
    two.px_served.files = lambda _: None

    with pytest.raises(SpmError) as caught:
        load(two, "px-scale")

    assert isinstance(caught.value, Undecided)
    load(two, "base")


def test_an_uninstall_keeps_the_registry_of_what_stays(two: TwoRegistries) -> None:
    put(two, "px-scale", "chain")

    uninstall((PluginName("chain"),), two.layout, created=MOMENT)

    assert registries(current_generation(two.root)) == {"base": ("1.0.0", None), "px-scale": ("1.0.0", PX)}

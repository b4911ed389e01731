"""A bundle carries plugins of one registry, and leaves alone what is installed from another."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from manifests.errors import AmbiguousSource
from runtime.generation import current_generation
from spm_client.resolve import parse_spec
from spm_client.workflows.bundle_export import export_bundle
from spm_client.workflows.bundle_import import import_bundle
from spm_client.workflows.consent import Wishes
from tests.e2e.snapshots import snapshot
from tests.fakes.two_registries import PX, TwoRegistries, two_registries
from tests.spm_client.workflows.several import put, registries, silent
from tests.spm_client.workflows.sources import HOST, MOMENT


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoRegistries]:
    with two_registries(tmp_path / "store") as made:
        made.own.publish("base")
        made.own.publish("px-scale")
        made.px.publish("px-scale", requires=["base"])
        yield made


def export(two: TwoRegistries, path: Path, *specs: str) -> None:
    export_bundle(
        Wishes(requirements=tuple(parse_spec(spec) for spec in specs)),
        two.layout,
        two.conf,
        two.own,
        HOST,
        path,
        is_replacing=False,
        now=datetime.now(UTC),
        progress=silent,
    )


def take(two: TwoRegistries, path: Path) -> None:
    import_bundle(
        path,
        Wishes(requirements=()),
        two.layout,
        two.conf,
        HOST,
        now=datetime.now(UTC),
        created=MOMENT,
        progress=silent,
    )


def test_a_plugin_of_another_registry_is_not_exported(two: TwoRegistries, tmp_path: Path) -> None:
    with pytest.raises(AmbiguousSource) as caught:
        export(two, tmp_path / "px.bundle", "px-scale")

    assert (caught.value.message, caught.value.hint) == (
        "`px-scale` belongs to the registry `px.example`, and this bundle is of `team.example`: a bundle carries "
        "plugins "
        "of one registry, the store's own",
        "use a store whose own registry is `px.example` (`--root DIR`)",
    )
    assert not (tmp_path / "px.bundle").exists()
    assert [path for path in two.own.asked if "px-scale" in path] == []


def test_a_bundle_of_the_own_registry_does_not_bring_in_a_name_of_another(two: TwoRegistries, tmp_path: Path) -> None:
    two.pin_px("other-*")
    export(two, tmp_path / "squat.bundle", "px-scale")
    two.pin_px("px-*")
    before = snapshot(two.root)

    with pytest.raises(AmbiguousSource):
        take(two, tmp_path / "squat.bundle")

    assert snapshot(two.root) == before


def test_nor_where_that_name_is_installed_from_the_other(two: TwoRegistries, tmp_path: Path) -> None:
    two.pin_px("other-*")
    export(two, tmp_path / "squat.bundle", "px-scale")
    two.pin_px("px-*")
    put(two, "px-scale")
    before = snapshot(two.root)

    with pytest.raises(AmbiguousSource):
        take(two, tmp_path / "squat.bundle")

    assert snapshot(two.root) == before


def test_an_import_leaves_plugins_of_another_registry_as_they_are(two: TwoRegistries, tmp_path: Path) -> None:
    two.own.publish("base", "1.1.0")
    export(two, tmp_path / "base.bundle", "base")
    put(two, "base==1.0.0", "px-scale")
    two.asked()

    take(two, tmp_path / "base.bundle")

    expected = {"base": ("1.1.0", None), "px-scale": ("1.0.0", PX)}
    assert registries(current_generation(two.root)) == expected
    assert two.asked() == ([], [])

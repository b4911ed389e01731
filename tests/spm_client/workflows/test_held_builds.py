"""An installed release is held by its build: another one of the same version is a choice made anew."""

from dataclasses import replace
from pathlib import Path

import pytest

from manifests.errors import FallbackRefused
from manifests.parts import Variant
from manifests.ranges import Range
from manifests.target import TorchFacts
from tests.e2e.snapshots import unchanged
from tests.spm_client.resolve.universe import HOST
from tests.spm_client.workflows.bundles import Machine

LATER = replace(HOST, torch=TorchFacts(version="2.99.0"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine with the build of `alpha` for its torch installed, where there is one for any torch too."""
    machine = Machine(tmp_path / "store")
    machine.registry.publish("alpha", variant=Variant(accelerator="cpu"))
    plain = machine.registry.shards.pop("alpha")
    machine.registry.publish("alpha", variant=Variant(accelerator="cpu", torch=Range.parse("~2.13")))
    (release,) = machine.registry.shards["alpha"].releases
    both = replace(release, variants=(*plain.releases[0].variants, *release.variants))
    machine.registry.list(replace(plain, releases=(both,)))
    machine.registry.publish("beta")
    machine.install("alpha")
    return machine


def test_lesser_build_is_not_taken_when_the_host_has_changed_and_something_else_is_installed(machine: Machine) -> None:
    with unchanged(machine.layout.root), pytest.raises(FallbackRefused) as refused:
        machine.install("beta", target=LATER)

    assert refused.value.message == (
        "`alpha` 1.0.0 would fall back to the variant `cpu`, less specific than:\n"
        "  variant `cpu-torch2.13`: needs torch `~2.13`, and the target has 2.99.0"
    )
    assert refused.value.hint == "add `--accept-fallback alpha` to accept that; it is recorded and shown ever after"


def test_installed_build_stays_where_the_host_is_the_same(machine: Machine) -> None:
    (before,) = machine.generation.plugins

    machine.install("beta")

    assert machine.generation.find("alpha") == before

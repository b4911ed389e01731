"""Which target a host is, and what an install by the lock is asked for."""

from dataclasses import replace

import pytest

from manifests.errors import UsageError
from manifests.target import Target, TargetDevice
from spm_client.workflows.sync import choose_target, named_target, wishes_of
from tests.manifests.builders import refused
from tests.manifests.test_project_lock import whole
from tests.spm_client.workflows.team_project import CPU, GPU

BOTH = {"gpu": GPU, "laptop": CPU}


def renamed(target: Target) -> Target:
    devices = tuple(replace(device, name="another", memory_bytes=8 << 30) for device in target.devices)
    return replace(target, devices=devices, driver="580.65.06", glibc="2.39")


def test_a_target_is_taken_by_its_name() -> None:
    assert named_target(BOTH, "gpu") == "gpu"


def test_the_only_target_is_taken() -> None:
    assert choose_target({"gpu": GPU}, CPU) == "gpu"


@pytest.mark.parametrize(("host", "name"), [(CPU, "laptop"), (GPU, "gpu")])
def test_the_target_that_is_as_this_host_in_what_matters_is_taken(host: Target, name: str) -> None:
    assert choose_target(BOTH, renamed(host)) == name


def test_a_name_that_is_no_target_is_refused() -> None:
    assert refused(lambda: named_target(BOTH, "moon"), UsageError) == (
        "spm.toml has no target `moon`; it has `gpu`, `laptop`"
    )


@pytest.mark.parametrize(
    "host",
    [
        replace(CPU, python="3.12.1"),
        replace(CPU, torch=None),
        replace(GPU, devices=(*GPU.devices[:1], TargetDevice(id="cuda:0", name="a gpu", sm="sm_90"))),
    ],
)
def test_a_host_that_is_none_of_them_is_told_what_there_is(host: Target) -> None:
    assert refused(lambda: choose_target(BOTH, host), UsageError) == (
        "which target to install is not clear: spm.toml has `gpu`, `laptop`, and this host is as none of them is"
    )


def test_a_host_that_is_several_of_them_is_told_which() -> None:
    assert refused(lambda: choose_target({**BOTH, "desk": renamed(CPU)}, CPU), UsageError) == (
        "which target to install is not clear: spm.toml has `desk`, `gpu`, `laptop`, and this host is as 2 targets "
        "are (desk, laptop)"
    )


def test_wishes_are_exactly_the_lock() -> None:
    lock = whole()

    wishes = wishes_of(lock, "laptop", is_dry_run=True)

    assert [(one.name, str(one.range), one.source) for one in wishes.requirements] == [("alpha", "^1.0", "spm.toml")]
    assert dict(wishes.locked) == lock.releases("laptop")
    assert dict(wishes.bindings_of) == lock.bindings
    assert (wishes.is_exact, wishes.is_dry_run, wishes.is_strict) == (True, True, False)
    assert wishes.accepted == {"alpha"}

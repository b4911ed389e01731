"""The probe: this host for real, recorded hosts from their files, and unknown where nothing is known."""

import platform
from pathlib import Path

import pytest
import torch

from manifests.target import Target, TargetDevice
from runtime.probe import probe_target, probe_torch

NVIDIA_VERSION = """NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (build@host)
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""


def test_this_host_is_told_as_torch_itself_tells_it() -> None:
    facts = probe_torch()

    assert facts is not None
    assert (str(torch.__version__), torch.version.cuda, torch.compiled_with_cxx11_abi()) == (
        facts.version,
        facts.cuda,
        facts.cxx11_abi,
    )


def test_this_hosts_profile_is_a_target_document() -> None:
    target = probe_target()

    assert target == Target.from_dict(target.to_dict())
    assert (target.os, target.cpu, target.python, target.contract) == (
        "linux",
        platform.machine(),
        platform.python_version(),
        "2.0.5",
    )


def test_a_host_without_files_has_only_unknowns(tmp_path: Path) -> None:
    target = probe_target(system=tmp_path)

    assert target.driver is None
    assert target.devices == (TargetDevice(id="cpu", name=platform.machine()),)


def test_driver_and_cpu_are_read_from_the_kernels_files(tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(NVIDIA_VERSION)
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal:       1000 kB\nMemFree:        1 kB\n")

    target = probe_target(system=tmp_path)

    assert target.driver == "550.54.15"
    assert target.devices == (TargetDevice(id="cpu", name="A CPU @ 2 GHz", memory_bytes=1_024_000),)


@pytest.mark.skipif(torch.version.cuda is not None, reason="a CUDA build of torch is asked instead")
def test_nvidia_nodes_are_devices_even_where_torch_cannot_tell_more(tmp_path: Path) -> None:
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / "dev" / name).touch()

    accelerators = probe_target(system=tmp_path).accelerators

    assert accelerators == (
        TargetDevice(id="cuda:0", name="NVIDIA device"),
        TargetDevice(id="cuda:1", name="NVIDIA device"),
    )

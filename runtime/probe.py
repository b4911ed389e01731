"""What this host is: the one place that looks. Reads files; asks torch only in a child, and only about NVIDIA devices.

A fact that cannot be had stays None: it is unknown, never assumed.
"""

import json
import os
import platform
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from manifests.errors import Undecided
from manifests.target import CONTRACT_VERSION, Target, TargetDevice, TorchFacts

_MAX_BYTES = 1 << 20
_ASK_SECONDS = 120
_NVIDIA_NODE = re.compile(r"nvidia[0-9]+")
_DRIVER = re.compile(r"Kernel Module\s.*?([0-9]+\.[0-9]+(?:\.[0-9]+)?)")
_ABI_CONSTANT = re.compile(r'def compiled_with_cxx11_abi\(\)[^\n]*\n(?:\s+r?"""[^"]*"""\n)?\s+return (True|False)\n')
_ABI_FLAG = re.compile(r"_GLIBCXX_USE_CXX11_ABI=([01])")
_ASK = """
import json, torch
devices = []
for index in range(torch.cuda.device_count()):
    facts = torch.cuda.get_device_properties(index)
    devices.append({"name": facts.name, "sm": f"sm_{facts.major}{facts.minor}", "memory_bytes": facts.total_memory})
print(json.dumps(devices))
"""


def probe_target(*, system: Path = Path("/")) -> Target:
    """Return this host as a target.

    Raises: Undecided when there are NVIDIA devices and torch does not answer about them.
    """
    torch = probe_torch()
    libc, version = platform.libc_ver()
    return Target(
        os=platform.system().lower(),
        cpu=platform.machine().lower(),
        glibc=version if libc == "glibc" and version else None,
        python=platform.python_version(),
        torch=torch,
        driver=_driver(system),
        devices=(_cpu(system), *_nvidia_devices(system, torch)),
        contract=CONTRACT_VERSION,
    )


def probe_torch() -> TorchFacts | None:
    """Return the facts of the installed torch from its files, None where none is installed. Imports nothing of it."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    text = _text(folder / "version.py") or ""
    version = re.search(r"^__version__ = '([^']+)'", text, re.MULTILINE)
    if version is None:
        return None
    cuda = re.search(r"^cuda\b[^=]*= '([^']+)'", text, re.MULTILINE)
    return TorchFacts(version=version[1], cuda=cuda[1] if cuda else None, cxx11_abi=_abi(folder))


def _abi(folder: Path) -> bool | None:
    # Newer releases answer by a constant in their own source, older ones by a flag in their CMake file.
    constant = _ABI_CONSTANT.search(_text(folder / "__init__.py") or "")
    if constant:
        return constant[1] == "True"
    flag = _ABI_FLAG.search(_text(folder / "share" / "cmake" / "Torch" / "TorchConfig.cmake") or "")
    return flag[1] == "1" if flag else None


def _cpu(system: Path) -> TargetDevice:
    model = re.search(r"^model name\s*:\s*(.+)$", _text(system / "proc/cpuinfo") or "", re.MULTILINE)
    total = re.search(r"^MemTotal:\s+([0-9]+) kB$", _text(system / "proc/meminfo") or "", re.MULTILINE)
    return TargetDevice(
        id="cpu",
        name=model[1].strip() if model else platform.machine(),
        memory_bytes=int(total[1]) * 1024 if total else None,
    )


def _driver(system: Path) -> str | None:
    found = _DRIVER.search(_text(system / "proc/driver/nvidia/version") or "")
    return found[1] if found else None


def _nvidia_devices(system: Path, torch: TorchFacts | None) -> tuple[TargetDevice, ...]:
    try:
        nodes = sorted(name for name in os.listdir(system / "dev") if _NVIDIA_NODE.fullmatch(name))
    except FileNotFoundError:
        return ()
    if not nodes:
        return ()
    # Without a CUDA build of torch nobody can be asked; that the devices are there is known all the same.
    answers = _ask_torch() if torch is not None and torch.cuda is not None else [{} for _ in nodes]
    return tuple(
        TargetDevice(
            id=f"cuda:{index}",
            name=answer.get("name", "NVIDIA device"),
            sm=answer.get("sm"),
            memory_bytes=answer.get("memory_bytes"),
        )
        for index, answer in enumerate(answers)
    )


def _ask_torch() -> list[dict[str, Any]]:
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASK_SECONDS,
            check=True,
        )
        answers = json.loads(done.stdout[-_MAX_BYTES:])
    except (subprocess.SubprocessError, ValueError) as error:
        raise Undecided(
            f"this host has NVIDIA devices, but torch does not answer about them: {str(error)[:300]}",
            reason="unknown:devices",
            hint="look at `nvidia-smi` and at `python -c 'import torch; print(torch.cuda.device_count())'`",
        ) from error
    return list(answers)


def _text(path: Path) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_BYTES)
    except OSError:
        return None

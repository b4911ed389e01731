"""Builds the example plugins as packing would and imports them in this process. Verifies and isolates nothing."""

import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "manifests" / "examples"
DOWNLOAD_IMPOSSIBLE = 75


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginContext:
    """What a worker hands to a plugin's factory."""

    path: Path
    name: str
    version: str
    device: torch.device = torch.device("cpu")


def run_build(source: Path, staging: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Copy the plugin tree to staging and run the source's build.py on it, as packing does."""
    shutil.copytree(source / "plugin", staging, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return subprocess.run(
        [sys.executable, str(source / "build.py"), str(staging)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def build(source: Path, staging: Path, **environment: str) -> Path:
    """Build a plugin tree, or skip with the reason where its downloads cannot be had."""
    done = run_build(source, staging, **environment)
    if done.returncode == DOWNLOAD_IMPOSSIBLE:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return staging


@contextmanager
def imported(module: str, *trees: Path) -> Iterator[ModuleType]:
    """Import a plugin module out of these trees, and afterwards leave the interpreter as it was.

    Another release's modules of the same names are set aside meanwhile.
    """
    names = {path.stem for tree in trees for path in tree.glob("*.py")}
    set_aside = {name: sys.modules.pop(name) for name in names & sys.modules.keys()}
    paths, writes_bytecode = sys.path.copy(), sys.dont_write_bytecode
    # A __pycache__ in a source tree would be packed, or refused, as a file of the plugin.
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(tree) for tree in trees]
    importlib.invalidate_caches()
    try:
        yield importlib.import_module(module)
    finally:
        sys.path[:], sys.dont_write_bytecode = paths, writes_bytecode
        for name in names & sys.modules.keys():
            del sys.modules[name]
        sys.modules.update(set_aside)

"""Importing the runtime costs no torch."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_importing_host_does_not_import_torch() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from runtime import Host, Instance; "
        "print('torch' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_probing_the_host_does_not_import_torch_or_its_parts() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from runtime.probe import probe_target; probe_target(); "
        "print([name for name in sys.modules if name.partition('.')[0] == 'torch'])"
    )

    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"

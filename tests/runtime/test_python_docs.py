"""docs/reference/python.md: its example runs and prints what its comments say; its tables name what there is."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from manifests import errors
from manifests.batching import BatchMode, BatchPolicy
from manifests.parts import TensorSpec
from runtime import Host
from tests.runtime.stores import Store

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/python.md").read_text()
EXAMPLE = ROOT / "manifests/examples/log-mel"


def install_log_mel(root: Path) -> Store:
    """Install the example plugin as its own manifest describes it."""
    told = yaml.safe_load((EXAMPLE / "manifest.yaml").read_text())
    store = Store(root)
    store.add(
        "log-mel",
        (EXAMPLE / "plugin/log_mel.py").read_text(),
        inputs=_specs(told["inputs"]),
        outputs=_specs(told["outputs"]),
        entry=told["entry"],
        version=told["version"],
        batch_policy=BatchPolicy(mode=BatchMode.ADAPTIVE, max_batch_size=64),
    )
    return store


def _specs(told: list[dict[str, Any]]) -> list[TensorSpec]:
    return [TensorSpec(name=one["name"], dtype=one["dtype"], shape=tuple(one["shape"])) for one in told]


def test_the_example_runs_and_prints_what_its_comments_say(tmp_path: Path) -> None:
    install_log_mel(tmp_path / "ben-store")
    (example,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)

    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{example}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == re.findall(r"print\(.*\)  # (.*)$", example, re.MULTILINE)


def test_every_member_of_stats_is_told(tmp_path: Path) -> None:
    with Host(install_log_mel(tmp_path / "store").root) as host:
        members = set(host.load("log-mel").stats())

    assert set(_first_cells("`stats()`")) == members


def test_every_argument_of_host_is_told() -> None:
    arguments = list(inspect.signature(Host).parameters)

    assert _first_cells("`Host(root") == arguments


def test_every_error_that_is_told_exists() -> None:
    assert [name for name in _first_cells("Errors") if not hasattr(errors, name)] == []


def _first_cells(heading: str) -> list[str]:
    section = next(part for part in PAGE.split("\n## ") if part.startswith(heading))
    return [
        name for row in re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]

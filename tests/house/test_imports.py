"""Who may import whom, and what a command loads before it has anything to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from manifests.batching import BatchMode, BatchPolicy
from manifests.devices import parse_affinity
from manifests.lockfile import Bindings, Generation
from spm_client.cli.main import COMMANDS
from tests.house.rooms import ROOT
from tests.manifests.builders import CREATED, installed

HEAVY = {"torch", "numpy", "flask", "sqlalchemy", "alembic", "requests"}
NETWORK_AND_KEYS = {"urllib3", "cryptography", "jwcrypto", "ssl", "socket"}
NOTHING = {
    "importlib.metadata",
    "yaml",
    "packaging",
    "rfc8785",
    "manifests",
    "argparse",
    "json",
    "typing",
    "dataclasses",
}
# What a listing has no use for, and each costs a millisecond to ten.
NO_USE_IN_A_LISTING = {
    "bz2",
    "dataclasses",
    "datetime",
    "difflib",
    "importlib.metadata",
    "inspect",
    "lzma",
    "manifests.lockfile",
    "manifests.manifest",
    "manifests.parts",
    "manifests.ranges",
    "packaging",
    "rfc8785",
    "shlex",
    "shutil",
    "signal",
    "spm_client.store.generations",
    "subprocess",
    "tempfile",
    "threading",
    "yaml",
}

# Runs the command as its script does, then names every module it has loaded.
PROGRAM = """
import sys
from spm_client.cli.main import main
try:
    code = main(sys.argv[1:])
except SystemExit as exit:
    code = exit.code
print(*sorted(sys.modules), sep="\\n", file=sys.stderr)
sys.exit(code)
"""

BOUND = Bindings(affinity=parse_affinity(["cuda:0", "cpu"]), batch_policy=BatchPolicy(mode=BatchMode.ADAPTIVE))


def loaded(*arguments: str) -> set[str]:
    """Return the modules that a successful run of `spm` has loaded, beside those of a bare interpreter."""
    return _modules(PROGRAM, *arguments) - _modules("import sys; print(*sys.modules, sep='\\n', file=sys.stderr)")


def _modules(program: str, *arguments: str) -> set[str]:
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.splitlines())


def test_layers_hold() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    # The graph has its own progress bars; without a terminal they are not drawn.
    environment = os.environ | {"TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    assert " kept, 0 broken" in done.stdout


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version_loads_nothing(flag: str) -> None:
    modules = loaded(flag)

    assert modules & (HEAVY | NETWORK_AND_KEYS | NOTHING) == set()
    assert len(modules) < 10


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_loads_nothing_heavy(command: str) -> None:
    assert loaded(command, "--help") & HEAVY == set()


def test_help_of_all_loads_nothing_heavy() -> None:
    assert loaded("--help") & (HEAVY | NETWORK_AND_KEYS) == set()


@pytest.mark.parametrize("count", [0, 3])
def test_list_loads_only_what_it_shows(count: int, tmp_path: Path) -> None:
    if count:
        plugins = tuple(installed(f"plugin-{place}", bindings=BOUND) for place in range(count))
        made = Generation(number=1, registry="team.example", created=CREATED, plugins=plugins)
        (tmp_path / "generations").mkdir()
        (tmp_path / "generations" / "000001.json").write_bytes(made.to_bytes())
        (tmp_path / "current").write_text("000001\n")

    modules = loaded("--root", str(tmp_path), "list")

    assert modules & (HEAVY | NETWORK_AND_KEYS | NO_USE_IN_A_LISTING) == set()
    assert "spm_client.store.shown_generation" in modules
    assert len(modules) < 80


@pytest.mark.parametrize("module", ["runtime", "manifests.manifest", "keys.verified", "registry"])
def test_library_loads_no_torch(module: str) -> None:
    program = f"import sys, {module}; print(*sys.modules, sep='\\n', file=sys.stderr)"

    assert _modules(program) & {"torch", "numpy"} == set()


def test_host_is_imported_without_torch() -> None:
    program = "import sys; from runtime import Host; print(*sys.modules, sep='\\n', file=sys.stderr)"

    assert _modules(program) & {"torch", "numpy"} == set()


@pytest.mark.parametrize("module", ["keys.trust_state", "keys.verified", "runtime.installed"])
def test_what_a_load_needs_of_trust_loads_no_tuf(module: str) -> None:
    program = f"import sys, {module}; print(*sys.modules, sep='\\n', file=sys.stderr)"

    assert _modules(program) & {"tuf", "securesystemslib", "urllib3"} == set()

"""Where torch is not installed: a refusal that says how to get it, from the command and from the library."""

import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.stores import Store

ROOT = Path(__file__).parents[2]
DOUBLE = "def make(context):\n    return lambda x: x * 2\n"
HINT = "install torch, then `pip install 'seedance-spm[runtime]'` (in a checkout: `pip install '.[runtime]'`)"
PATH = "import sys\nsys.path += sys.argv.pop(1).split(':')\n"
RUN = "from spm_client.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
LOAD = """
from manifests.errors import IncompatibleTarget
from runtime import Host
try:
    Host(sys.argv[1]).load("double")
except IncompatibleTarget as error:
    print(error.reason, error.message, error.hint, sep="\\n")
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Return all that is installed here, but for torch."""
    folder = tmp_path / "packages"
    folder.mkdir()
    # Debian's Python names folders that need not be there.
    for installed in filter(Path.is_dir, map(Path, site.getsitepackages())):
        for entry in installed.iterdir():
            if not entry.name.startswith(("torch", "functorch", "__pycache__")) and entry.suffix != ".pth":
                (folder / entry.name).symlink_to(entry)
    return folder


def run(packages: Path, script: str, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    # Without site-packages nothing is installed but what is named here.
    command = [sys.executable, "-I", "-S", "-c", PATH + script, f"{packages}:{ROOT}", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def run_double(store: Store, packages: Path, tmp_path: Path) -> "subprocess.CompletedProcess[str]":
    store.add("double", DOUBLE)
    (tmp_path / "x.json").write_text("[[1, 2, 3, 4]]")
    return run(packages, RUN, "--root", store.root, "run", "double", "--input", tmp_path / "x.json")


def test_the_command_refuses_with_the_cure(store: Store, packages: Path, tmp_path: Path) -> None:
    done = run_double(store, packages, tmp_path)

    assert (done.returncode, done.stdout) == (12, "")
    assert done.stderr == (
        f"error[torch]: reading `{tmp_path}/x.json` needs torch, and no torch is installed beside spm\n  hint: {HINT}\n"
    )


def test_the_library_refuses_with_the_cure(store: Store, packages: Path) -> None:
    store.add("double", DOUBLE)

    done = run(packages, LOAD, store.root)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"torch\n`double` needs torch, and no torch is installed beside spm\n{HINT}\n"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import no_such_part\n", "No module named 'no_such_part'"),
        ("raise OSError('libcudart.so.12: cannot open shared object file')\n", "libcudart.so.12: cannot open shared"),
    ],
)
def test_a_torch_that_cannot_be_imported_is_refused_with_the_reason(
    store: Store, packages: Path, tmp_path: Path, source: str, why: str
) -> None:
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").write_text(source)

    done = run_double(store, packages, tmp_path)

    assert done.returncode == 12
    assert done.stderr.startswith(
        f"error[torch]: reading `{tmp_path}/x.json` needs torch, and the torch that is installed cannot be imported: "
        f"{why}"
    )

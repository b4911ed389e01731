"""What is shipped: exactly the five rooms, and nothing heavy unless it is asked for."""

import subprocess
import sys
import tomllib
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.rooms import ROOMS, ROOT

BASE = {"cryptography", "jwcrypto", "packaging", "pyyaml", "rfc8785", "securesystemslib", "tomlkit", "tuf", "urllib3"}
HEAVY = {"torch", "flask", "sqlalchemy", "alembic", "granian", "numpy", "requests"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.iterdir()
    return ZipFile(path)


def metadata(wheel: ZipFile) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def requirements(wheel: ZipFile, extra: str) -> set[str]:
    """Return the names that an installation asks for; with no extra, "" is what markers see."""
    written = map(Requirement, metadata(wheel).get_all("Requires-Dist", []))
    wanted = {found for found in written if found.marker is None or found.marker.evaluate({"extra": extra})}
    return {canonicalize_name(found.name) for found in wanted}


def test_wheel_has_exactly_the_five_rooms(wheel: ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}

    assert {top for top in tops if not top.endswith(".dist-info")} == set(ROOMS)
    assert len(tops) == len(ROOMS) + 1


def test_wheel_has_no_examples_and_no_tests(wheel: ZipFile) -> None:
    strange = {"examples", "tests", "demo", "benchmarks", "__pycache__"}

    assert [name for name in wheel.namelist() if strange & set(name.split("/"))] == []


def test_wheel_has_every_module_and_the_schema(wheel: ZipFile) -> None:
    names = set(wheel.namelist())

    assert "manifests/manifest.schema.json" in names
    assert {path.parent.name for path in map(Path, names) if path.name == "__init__.py"} >= set(ROOMS)


def test_base_installation_asks_for_nothing_heavy(wheel: ZipFile) -> None:
    assert requirements(wheel, "") == BASE


@pytest.mark.parametrize(
    ("extra", "brings"),
    [("registry", {"flask", "sqlalchemy", "alembic", "granian"}), ("runtime", {"torch"})],
)
def test_heavy_things_come_with_their_extra(wheel: ZipFile, extra: str, brings: set[str]) -> None:
    assert requirements(wheel, extra) & HEAVY == brings


def test_wheel_gives_the_commands_of_the_project(wheel: ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    given = ConfigParser()
    given.read_string(wheel.read(name).decode())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert dict(given["console_scripts"]) == project["scripts"]
    assert {"spm", "spm-registry"} <= set(given["console_scripts"])


def test_project_says_the_same_as_the_wheel(wheel: ZipFile) -> None:
    assert metadata(wheel)["Requires-Python"] == ">=3.11"
    assert Path(wheel.filename or "").name.endswith("-py3-none-any.whl")

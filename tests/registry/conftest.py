"""Fixtures of the registry's tests."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.services.setup import make_registry
from tests.registry.team import START, Clock, Team, found_registry, join_team


@pytest.fixture(scope="session")
def founded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Make one registry and its keys, to be copied for each test."""
    folder = tmp_path_factory.mktemp("founded")
    return folder, found_registry(folder / "registry", folder / "keys")


@pytest.fixture
def team(founded: tuple[Path, str], tmp_path: Path) -> Iterator[Team]:
    """Give a registry with pinned keys, an admin's token and a standing clock."""
    folder, admin = founded
    shutil.copytree(folder, tmp_path / "team")
    made = join_team(tmp_path / "team" / "registry", tmp_path / "team" / "keys", admin, Clock())
    yield made
    made.site.database.close()


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make one registry without a root, to be copied for each test that changes it."""
    root = tmp_path_factory.mktemp("bare") / "registry"
    make_registry(root, "team.local", "http://127.0.0.1:8080", START)
    return root

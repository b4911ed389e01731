"""Fixtures of the tests of `keys`."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder_open_to_all() -> Iterator[Path]:
    """Yield a new folder that other users may enter; the folders that pytest makes are closed to them."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)

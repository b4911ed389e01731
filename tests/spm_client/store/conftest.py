"""Fixtures of the tests of the store: an empty one, and a scratch folder in it."""

from pathlib import Path

import pytest

from spm_client.store.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "store")


@pytest.fixture
def scratch(layout: Layout) -> Path:
    folder = layout.tmp / "scratch"
    folder.mkdir(parents=True)
    return folder

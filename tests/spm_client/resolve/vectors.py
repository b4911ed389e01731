"""Public resolver data, read by path where it lies beside the checkout. Copies none of it."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[4] / "shared" / "vectors" / "resolver"


def vectors(name: str) -> Any:
    """Return a file of public vectors; without it the test is skipped, and says so."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"public vectors are not beside this checkout: {name} is absent")
    return json.loads(path.read_text(encoding="utf-8"))

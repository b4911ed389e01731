"""Fixtures of the tests of the command: `spm` called in this process, as its entry point calls it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from spm_client.cli.main import main


@dataclass(frozen=True, slots=True)
class Told:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Spm = Callable[..., Told]


@pytest.fixture
def spm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Spm:
    """Give `spm` in an empty home; SystemExit counts as the code it carries."""
    for name in ("SPM_ROOT", "SPM_TOKEN", "SOURCE_DATE_EPOCH", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "100")

    def call(*arguments: str | Path) -> Told:
        try:
            code = main([str(word) for word in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        told = capsys.readouterr()
        return Told(code, told.out, told.err)

    return call

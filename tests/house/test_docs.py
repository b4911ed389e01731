"""The documents held against the code: reasons are all listed, examples work, links lead somewhere."""

import re
from pathlib import Path

import pytest

from manifests.errors import SpmError
from manifests.traps import PluginFacts, find_traps
from tests.spm_client.workflows.sources import packed

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def kinds(kind: type[SpmError]) -> list[type[SpmError]]:
    return [kind, *(deeper for child in kind.__subclasses__() for deeper in kinds(child))]


def test_every_reason_stands_in_the_row_of_its_exit_code() -> None:
    page = (ROOT / "docs/reference/refusals.md").read_text()
    rows = {int(row[1]): row[2] for row in re.finditer(r"^\| (\d+) \|(.*)\|$", page, re.MULTILINE)}

    missing = [
        f"{kind.exit_code} {kind.default_reason}"
        for kind in kinds(SpmError)[1:]
        if not kind.__subclasses__()
        and not re.search(rf"`{kind.default_reason.partition(':')[0]}[`:]", rows[kind.exit_code])
        and kind.default_reason != "waste-trap"
    ]

    assert missing == []


def test_the_example_of_a_source_packs_and_has_no_trap(tmp_path: Path) -> None:
    page = (ROOT / "docs/reference/plugin-source.md").read_text()
    yaml, code = re.findall(r"```(?:yaml|python)\n# (?:manifest\.yaml|plugin/twice\.py)\n(.*?)```", page, re.DOTALL)
    (tmp_path / "twice" / "plugin").mkdir(parents=True)
    (tmp_path / "twice" / "manifest.yaml").write_text(yaml)
    (tmp_path / "twice" / "plugin" / "twice.py").write_text(code)

    manifest = packed(tmp_path / "twice", tmp_path / "dist").manifest

    assert (manifest.name, manifest.release) == ("twice", "1.0.0")
    assert find_traps(PluginFacts.of_manifest(manifest), None) == ()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []

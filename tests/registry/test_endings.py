"""The ends of root and targets: said from two months before on, by `root show`, at the start and once a day."""

import logging
import shutil
import time
from pathlib import Path

import pytest

from keys.key_files import load_private
from registry.services.endings import endings
from registry.services.fresh_timestamp import FreshTimestamp
from registry.services.root_ceremony import found_root
from registry.storage.changes import Changes
from registry.storage.site import open_site
from tests.registry.machines import Registry, holder

DAY = 86_400
FOUNDED = 1_800_000_000
END = FOUNDED + 365 * DAY
DATE = "2028-01-15"


def _registry(tmp_path: Path, bare: Path, at: int) -> Registry:
    ana, registry = holder(tmp_path, "ana"), Registry(Path(shutil.copytree(bare, tmp_path / "registry")))
    site = open_site(registry.root)
    found_root(site, [(ana.public, load_private(ana.key, None))], 1, at)
    site.database.close()
    return registry


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (END - 61 * DAY, None),
        (END - 60 * DAY, f"root 1 and targets 1 end in 60 days ({DATE}); then clients refuse every install"),
        (END - DAY, f"root 1 and targets 1 end in 1 day ({DATE}); then clients refuse every install"),
        (END - 1, f"root 1 and targets 1 end in less than a day ({DATE}); then clients refuse every install"),
        (END + 5 * DAY, f"root 1 and targets 1 ended 5 days ago ({DATE}): clients refuse every install"),
    ],
)
def test_an_end_is_said_with_what_renews_it(tmp_path: Path, bare: Path, now: int, expected: str | None) -> None:
    site = open_site(_registry(tmp_path, bare, FOUNDED).root)

    with site.database.reading() as records:
        said = endings(records, Path("/srv/spm"), now)
    site.database.close()

    renew = ". Renew it: `spm-registry root rotate --root /srv/spm`"
    assert said == (() if expected is None else (expected + renew,))


def test_root_show_warns_of_the_end(tmp_path: Path, bare: Path) -> None:
    registry = _registry(tmp_path, bare, int(time.time()) - 356 * DAY + 60)

    said = registry.run("root", "show").ok()
    told = registry.json("root", "show")

    (warning,) = [line for line in said.err.splitlines() if " end in " in line]
    assert warning.startswith("warning: root 1 and targets 1 end in 9 days (")
    assert warning.endswith(
        f"); then clients refuse every install. Renew it: `spm-registry root rotate --root {registry.root}`"
    )
    assert told["adopted"]["warnings"][-1] == warning.removeprefix("warning: ")


def test_a_registry_that_serves_logs_it_once_a_day(
    tmp_path: Path, bare: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site = open_site(_registry(tmp_path, bare, FOUNDED).root)
    now = [FOUNDED]
    timestamp = FreshTimestamp(site, Changes(site.database), lambda: now[0])

    with caplog.at_level(logging.WARNING, logger="registry"):
        for hours in range(0, 72, 12):
            now[0] = END - 50 * DAY + hours * 3600
            timestamp.row()
    site.database.close()

    said = [record.getMessage() for record in caplog.records if record.name == "registry"]
    assert len(said) == 3
    assert said[0].startswith(f"root 1 and targets 1 end in 50 days ({DATE}); ")

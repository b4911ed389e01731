"""What a person is told of a lock: what changed on stdout, what is amiss in what it keeps on stderr."""

import pytest

from manifests.errors import KeyRevoked
from manifests.names import PluginName
from manifests.project_lock import ProjectLock
from manifests.versions import Version
from spm_client.cli.project_options import show_lock
from spm_client.cli.session import Session
from spm_client.workflows.lock_drift import LockChange
from spm_client.workflows.project import Relocked
from tests.manifests.test_project_lock import plugin

BETA, ONE = PluginName("beta"), Version.parse("1.0.0")


def test_what_is_amiss_in_what_a_lock_keeps_is_told_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    lock = ProjectLock(registry="team.example", targets=(("cpu", "0" * 64),), exclude_newer="2026-01-31T23:59:59Z")
    relocked = Relocked(
        lock=lock,
        changes=(),
        yanked=((BETA, ONE, "wrong weights"),),
        distrusted=((BETA, ONE, KeyRevoked("`beta` 1.0.0 is refused: its key is revoked")),),
        beyond=((BETA, ONE, "2026-02-01T00:00:00Z"),),
        is_written=False,
        bound_option=" --exclude-newer 2026-01-31T23:59:59Z",
    )

    show_lock(relocked, Session(is_json=False, environment={}))

    told = capsys.readouterr()
    assert told.out == "spm.lock has 0 plugins for 1 target, unchanged\n"
    assert told.err == (
        "warning[yanked]: `beta` 1.0.0 stays locked, and was yanked: wrong weights\n"
        "  remedy: `spm upgrade beta` takes a release that is not\n"
        "warning[key-revoked]: `beta` 1.0.0 is refused: its key is revoked; it stays locked, and no host installs or "
        "loads it\n"
        "  remedy: `spm upgrade beta` takes a release that is trusted, or refuses\n"
        "warning[exclude-newer]: `beta` 1.0.0 stays locked, and was published at 2026-02-01T00:00:00Z, after "
        "2026-01-31T23:59:59Z\n"
        "  remedy: `spm upgrade beta --exclude-newer 2026-01-31T23:59:59Z` takes what was there then\n"
    )


def test_a_plugin_whose_registry_changed_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    change = LockChange(
        name=BETA,
        before={"cpu": plugin("beta", "1.0.0", "cpu")},
        after={"cpu": plugin("beta", "1.0.0", "cpu", registry="px.example")},
    )
    lock = ProjectLock(registry="team.example", targets=(("cpu", "0" * 64),), plugins=(change.after["cpu"],))
    relocked = Relocked(lock=lock, changes=(change,), yanked=(), distrusted=(), beyond=(), is_written=True)

    show_lock(relocked, Session(is_json=False, environment={}))

    assert capsys.readouterr().out == (
        "changed    beta 1.0.0, of `px.example`, was of `team.example`\nspm.lock has 1 plugin for 1 target\n"
    )

"""Installing by a lock that is written along with it: both stand or neither does, and what stands is told truly."""

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from keys.keyring import LoaderConf
from manifests.errors import FallbackRefused, LimitReached, LockDrift
from manifests.project_lock import ProjectLock
from manifests.traps import Finding, Severity
from runtime.generation import current_generation
from spm_client.store.layout import Layout
from spm_client.workflows.plan import Installed
from spm_client.workflows.sync import for_project, said_for_project, wishes_of
from spm_client.workflows.sync_install import sync_store
from tests.e2e.snapshots import unchanged
from tests.fakes.simulated_registry import SimulatedRegistry
from tests.keys.trust_builders import make_trust
from tests.spm_client.workflows.team_project import CPU, GPU, TeamProject, silent
from tests.spm_client.workflows.test_lock import CUDA, refusal


@pytest.fixture
def project(tmp_path: Path) -> TeamProject:
    made = TeamProject(tmp_path)
    made.publish("beta", "1.0.0")
    made.publish("beta", "1.1.0")
    made.publish("alpha", "1.0.0", requires={"beta": "^1.0"})
    made.write('alpha = "^1.0"')
    return made


def put(project: TeamProject, lock: ProjectLock, last_question: Callable[[], None] = lambda: None) -> Installed:
    layout = Layout(project.root)
    return sync_store(
        wishes_of(lock, "cpu"),
        layout,
        LoaderConf.read(layout.conf),
        project.connect,
        CPU,
        last_question=last_question,
        now=datetime.now(UTC),
        created="2026-12-01T12:00:00Z",
        progress=silent,
    )


def sync(project: TeamProject) -> None:
    """Lock and install as `spm sync` does where spm.lock does not answer spm.toml."""

    def along(lock: ProjectLock, last_question: Callable[[], None]) -> None:
        put(project, lock, last_question)

    project.lock(along=along)


def installed(project: TeamProject) -> dict[str, str]:
    return {entry.name: str(entry.version) for entry in current_generation(project.root).plugins}


def test_store_and_lock_change_together(project: TeamProject) -> None:
    sync(project)

    assert installed(project) == project.versions() == {"alpha": "1.0.0", "beta": "1.1.0"}


@pytest.mark.parametrize("file", ["spm.toml", "spm.lock"])
def test_a_file_that_changes_during_the_install_leaves_the_store_as_it_was(project: TeamProject, file: str) -> None:
    sync(project)
    project.write('beta = "==1.0.0"')
    store = project.root
    blob = project.registry.blob

    def disturbed(*arguments: Any, **options: Any) -> Any:
        (project.folder / file).write_text("another program's")
        return blob(*arguments, **options)

    project.registry.blob = disturbed  # type: ignore[method-assign]
    lock = (project.folder / "spm.lock").read_bytes()

    with unchanged(store):
        refused = refusal(lambda: sync(project), LockDrift)

    assert refused.message == (
        f"`{project.folder / file}` was changed by another program meanwhile; nothing was written"
    )
    assert (project.folder / file).read_text() == "another program's"
    assert file == "spm.lock" or (project.folder / "spm.lock").read_bytes() == lock


def test_a_project_disk_that_is_full_is_found_before_anything_is_installed(
    project: TeamProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, f"No space left on device ({descriptor})")

    monkeypatch.setattr("os.fsync", full)

    with project.unchanged():
        refused = refusal(lambda: sync(project), LimitReached)

    assert refused.message == f"the disk under `{project.folder}` is full; `spm.lock` was not written"


def test_a_lock_that_cannot_take_its_place_after_the_install_is_told_with_what_stands(
    project: TeamProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: object) -> None:
        raise OSError(errno.ENOSPC, f"No space left on device for {path}")

    def along(lock: ProjectLock, last_question: Callable[[], None]) -> None:
        put(project, lock, last_question)
        monkeypatch.setattr("spm_client.adapters.staged_files.os.replace", lambda _old, new: full(new))

    refused = refusal(lambda: project.lock(along=along), LimitReached)
    monkeypatch.undo()

    assert refused.message == (
        "what the new spm.lock names is installed, but spm.lock itself is as it was: "
        f"the disk under `{project.folder}` is full; `spm.lock` was not written"
    )
    assert refused.hint == "make it possible to write there, then run `spm sync` again: it writes spm.lock"
    assert installed(project) == {"alpha": "1.0.0", "beta": "1.1.0"}
    assert sorted(path.name for path in project.folder.iterdir()) == ["cpu.json", "spm.toml"]
    sync(project)
    assert installed(project) == project.versions()


def test_what_the_lock_says_beside_the_digests_is_held_against_the_registry(project: TeamProject) -> None:
    project.lock()
    value = json.loads((project.folder / "spm.lock").read_bytes())
    alpha, beta = value["plugins"]
    alpha["type"] = "core"
    beta["variants"][0]["keyids"] = ["0" * 64]
    path = f"variants.{beta['variants'][0]['manifest_sha256'][:12]}.keyids"
    lock = ProjectLock.from_bytes(json.dumps(value).encode())

    with project.unchanged():
        refused = refusal(lambda: put(project, lock), LockDrift)

    assert refused.context["differences"] == [
        "`alpha` 1.0.0: `type` is `core` in spm.lock, and would be `ext`",
        f"`beta` 1.1.0: `{path}` is `{'0' * 64}` in spm.lock, and would be `{project.registry.keyid}`",
    ]
    assert refused.hint == ("find out who changed spm.lock; `spm lock` writes what the registry and the signatures say")


def test_a_requirement_that_is_missing_in_the_lock_is_a_drift(project: TeamProject) -> None:
    project.write('alpha = "^1.0"\nbeta = "*"')
    project.lock()
    value = json.loads((project.folder / "spm.lock").read_bytes())
    value["plugins"][0]["requires"] = {}
    lock = ProjectLock.from_bytes(json.dumps(value).encode())

    with project.unchanged():
        refused = refusal(lambda: put(project, lock), LockDrift)

    assert refused.context["differences"] == [
        "`alpha` 1.0.0: `requires.beta` is not there in spm.lock, and would be `^1.0`"
    ]


def another_registry(project: TeamProject, name: str, *, names: str) -> None:
    index = make_trust("px.example", now=datetime.now(UTC).replace(microsecond=0))
    other = SimulatedRegistry(index=index)
    other.publish(name, "1.1.0")
    folder = project.root / "registries" / "px.example"
    folder.mkdir(parents=True, exist_ok=True)
    conf = other.loader_conf().replace("[registry]\n", f"[registry]\nnames = [{names}]\n")
    (folder / "loader.conf").write_text(conf)
    (folder / "loader.conf").chmod(0o644)
    project.others["px.example"] = other


def test_a_plugin_that_is_installed_from_another_registry_is_told_how_to_get_the_locked_one(
    project: TeamProject,
) -> None:
    project.write('beta = "^1.0"')
    project.lock()
    own = project.locked
    another_registry(project, "beta", names='"px-*"')
    project.write('beta = { range = "^1.0", registry = "px.example" }')
    sync(project)

    with unchanged(project.root):
        refused = refusal(lambda: put(project, own), LockDrift)

    assert refused.message == (
        "`beta` is installed from the registry `px.example`, and spm.lock has it from `team.example`, where that name "
        "is another plugin"
    )
    assert refused.hint == "if that one is meant, `spm uninstall beta`, then `spm sync`"


def test_a_locked_plugin_whose_registry_changed_is_told_as_such(project: TeamProject) -> None:
    project.write('beta = "^1.0"')
    before = project.lock().lock
    another_registry(project, "beta", names='"beta"')

    relocked = project.lock()

    (change,) = relocked.changes
    assert (change.verb, change.moved(before.registry)) == ("changed", ("team.example", "px.example"))
    assert [plugin.registry for plugin in project.locked.plugins] == ["px.example"]


def test_a_fallback_that_a_sync_refuses_names_the_command_that_accepts_it(project: TeamProject) -> None:
    project.publish("delta", variants=[CUDA, None], torch=None)
    project.write('delta = "*"')
    project.lock()
    old = replace(GPU, devices=(GPU.devices[0], replace(GPU.devices[1], sm="sm_75")))
    layout = Layout(project.root)

    with project.unchanged():
        refused = refusal(
            lambda: sync_store(
                wishes_of(project.locked, "cpu"),
                layout,
                LoaderConf.read(layout.conf),
                project.connect,
                old,
                now=datetime.now(UTC),
                created="2026-12-01T12:00:00Z",
                progress=silent,
            ),
            FallbackRefused,
        )

    assert refused.hint == "`spm lock --accept-fallback delta` for this target accepts and records it, then `spm sync`"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("spm install alpha==1.0.0 --affinity=cuda:0", "spm add alpha --affinity=cuda:0 && spm sync"),
        ("spm install alpha==1.0.0 --batch-policy=adaptive", "spm add alpha --batch-policy=adaptive && spm sync"),
        ("spm install alpha", "spm upgrade alpha && spm sync"),
        ("`spm install alpha==1.0.0` lays it out anew", "`spm sync` lays it out anew"),
        ("`spm uninstall alpha` first", "`spm uninstall alpha` first"),
    ],
)
def test_advice_in_a_project_is_by_the_commands_of_a_project(said: str, told: str) -> None:
    assert said_for_project(said) == told


def test_remedies_of_waste_traps_are_by_the_commands_of_a_project() -> None:
    finding = Finding(
        trap="x", severity=Severity.WASTE, plugin="alpha", message="m", remedy="spm uninstall alpha", evidence={}
    )
    done = Installed(generation=current_generation(Path("/nonexistent")), changes=(), findings=(finding,))

    assert [one.remedy for one in for_project(done).findings] == ["spm remove alpha && spm sync"]

"""A team's project with the real commands: begin, add, lock, sync, upgrade, explain, remove, as a person would."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import SECONDS, SPM, Answer, Client
from tests.e2e.snapshots import unchanged
from tests.e2e.sources import write_source
from tests.e2e.team import Team

pytestmark = pytest.mark.e2e

HERE = "linux-x86_64"


@dataclass(frozen=True, slots=True)
class Project:
    """A project's folder, and the machine of whoever works in it."""

    folder: Path
    client: Client

    def told(self, *arguments: str, at: str = ".") -> Answer:
        """Run `spm ...` in the folder as a person does."""
        done = subprocess.run(
            [SPM, *arguments],
            cwd=self.folder / at,
            env=self.client.environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Answer(code=done.returncode, out=done.stdout, err=done.stderr)

    def spm(self, *arguments: str) -> Answer:
        """Run `spm ... --json` from elsewhere."""
        return self.client.spm(*arguments, "--project", self.folder)

    @property
    def toml(self) -> Path:
        return self.folder / "spm.toml"

    @property
    def lock(self) -> Path:
        return self.folder / "spm.lock"

    def locked(self) -> dict[str, str]:
        return {plugin["name"]: plugin["version"] for plugin in json.loads(self.lock.read_bytes())["plugins"]}

    def second_target(self, name: str, **changes: object) -> None:
        """Add a target that is this host but for the changes."""
        target = json.loads((self.folder / "targets" / f"{HERE}.json").read_bytes())
        (self.folder / "targets" / f"{name}.json").write_text(json.dumps(target | changes))
        self.toml.write_text(self.toml.read_text() + f'{name} = "targets/{name}.json"\n')


@pytest.fixture(scope="module")
def host(team: Team, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return this host as it is probed, which takes a second each time."""
    return team.client(tmp_path_factory.mktemp("host")).spm("target", "probe").ok().document


@pytest.fixture
def project(client: Client, host: dict[str, Any], tmp_path: Path) -> Project:
    """Give a project without requirements, for this host."""
    return begun(Project(tmp_path / "speech", client), host)


def begun(project: Project, host: dict[str, Any]) -> Project:
    """Write what `spm init` does."""
    (project.folder / "targets").mkdir(parents=True)
    (project.folder / "targets" / f"{HERE}.json").write_text(json.dumps(host))
    head = '[project]\nname = "speech"\nregistry = "team.example"\n\n[requirements]\n'
    project.toml.write_text(f'{head}\n[targets]\n{HERE} = "targets/{HERE}.json"\n')
    return project


def test_a_project_from_its_beginning_to_its_end(client: Client, tmp_path: Path) -> None:
    folder = tmp_path / "speech"
    folder.mkdir()
    project = Project(folder, client)

    made = project.told("init", "--target", HERE).ok()
    added = project.told("add", "alpha@^1.0").ok()
    named = project.told("add", "beta").ok()
    tree = project.told("tree").ok()
    why = project.told("why", "beta").ok()
    synced = project.told("sync").ok()
    outdated = project.told("outdated").ok()
    moved = project.told("add", "alpha@^2.0").ok()
    again = project.told("sync", "--locked", "--target", HERE).ok()
    removed = project.told("remove", "alpha").ok()
    emptied = project.told("sync", "--target", HERE).ok()

    assert made.out == (
        f"wrote {project.toml}\nwrote {folder}/targets/{HERE}.json, which describes this host\n"
        "`spm add NAME` adds a plugin and locks it; `spm sync` installs what is locked\n"
    )
    assert added.out == (
        'spm.toml   alpha = "^1.0"\nadded      alpha 1.1.0\nadded      beta 1.1.0\n'
        "spm.lock has 2 plugins for 1 target\n"
    )
    assert named.out == 'spm.toml   beta = "^1.1.0"\nspm.lock has 2 plugins for 1 target\n'
    assert tree.out == ("speech\n├── alpha 1.1.0 (^1.0)\n│   └── beta 1.1.0 (^1.0)\n└── beta 1.1.0 (^1.1.0)\n")
    assert why.out == (
        "beta 1.1.0\n  speech -> beta 1.1.0 (^1.1.0)\n  speech -> alpha 1.1.0 (^1.0) -> beta 1.1.0 (^1.0)\n"
    )
    assert synced.out == (
        "installed  alpha 1.1.0 (ext)\ninstalled  beta 1.1.0 (ext)\n"
        f"2 plugins installed as spm.lock has them for {HERE}\n"
    )
    assert outdated.out == (
        "NAME   LOCKED  IN RANGE  NEWEST  WHY\nalpha  1.1.0   1.1.0     2.0.0   spm.toml wants `^1.0`\n"
    )
    assert moved.out == (
        'spm.toml   alpha = "^2.0"\nupgraded   alpha 2.0.0, was 1.1.0\nspm.lock has 2 plugins for 1 target\n'
    )
    assert again.out == (
        "upgraded   alpha 2.0.0 (ext), was 1.1.0\nunchanged  beta 1.1.0 (ext)\n"
        f"2 plugins installed as spm.lock has them for {HERE}\n"
    )
    assert removed.out == (
        "spm.toml   requires alpha no more\nremoved    alpha 2.0.0\nspm.lock has 1 plugin for 1 target\n"
    )
    assert emptied.out == (
        "unchanged  beta 1.1.0 (ext)\nremoved    alpha 2.0.0, not in spm.lock\n"
        f"1 plugin installed as spm.lock has them for {HERE}\n"
    )
    assert client.installed() == {"beta": "1.1.0"}


def test_the_project_is_found_from_a_folder_below(project: Project) -> None:
    project.told("add", "beta@^1.0").ok()
    (project.folder / "src" / "deep").mkdir(parents=True)

    below = project.told("tree", at="src/deep").ok()

    assert below.out == "speech\n└── beta 1.1.0 (^1.0)\n"


def test_what_needs_a_project_says_how_to_begin_one(client: Client, tmp_path: Path) -> None:
    for command in (["lock"], ["sync"], ["remove", "beta"]):
        with unchanged(tmp_path):
            refusal = client.spm(*command, "--project", tmp_path)

        refusal.refused(
            26,
            "lock-missing",
            f"`{tmp_path}` is no project: there is no spm.toml",
            "`spm init` begins one; `--project DIR` names one that is elsewhere",
        )


def test_a_second_init_changes_nothing(project: Project) -> None:
    with unchanged(project.folder):
        refusal = project.client.spm("init", project.folder)

    refusal.refused(2, "usage", f"`{project.toml}` is there already: `{project.folder}` is a project")


def test_the_lock_has_the_same_bytes_from_two_machines_and_for_two_targets(
    team: Team, project: Project, tmp_path: Path
) -> None:
    project.second_target("old-torch", torch={"version": "2.9.0+cpu"})
    project.told("add", "alpha@^2.0", "gamma", "heavy").ok()
    other = Project(tmp_path / "elsewhere" / "speech", team.client(tmp_path / "elsewhere" / "home"))
    other.folder.mkdir(parents=True)
    (other.folder / "targets").mkdir()
    for file in ("spm.toml", f"targets/{HERE}.json", "targets/old-torch.json"):
        (other.folder / file).write_bytes((project.folder / file).read_bytes())

    made = other.spm("lock").ok().document
    warm = other.lock.read_bytes()
    other.lock.unlink()
    other.spm("lock").ok()

    assert made["targets"] == [HERE, "old-torch"]
    assert project.lock.read_bytes() == warm == other.lock.read_bytes()
    assert set(json.loads(warm)["plugins"][0]["targets"]) == {HERE, "old-torch"}


def test_a_sync_takes_the_target_that_this_host_is(project: Project) -> None:
    project.second_target("old-torch", torch={"version": "2.9.0+cpu"})
    project.told("add", "beta@^1.0").ok()

    by_host = project.spm("sync").ok().document
    by_name = project.spm("sync", "--target", "old-torch").ok().document
    with unchanged(project.folder, project.client.store):
        strange = project.spm("sync", "--target", "moon")

    assert (by_host["target"], by_name["target"]) == (HERE, "old-torch")
    strange.refused(2, "usage", f"spm.toml has no target `moon`; it has `{HERE}`, `old-torch`")


def test_a_fallback_is_refused_until_it_is_accepted_and_then_stands_in_both_files(project: Project) -> None:
    with unchanged(project.folder, project.client.store):
        refusal = project.spm("add", "delta")
    accepted = project.spm("add", "delta", "--accept-fallback", "delta").ok().document

    assert (refusal.code, refusal.document["error"]["hint"]) == (
        10,
        "`spm add delta --accept-fallback delta` accepts that; it is written to spm.toml and shown ever after",
    )
    assert accepted["requirements"] == {"delta": {"range": "^1.0.0", "accept-fallback": True}}
    assert 'delta = {range = "^1.0.0", accept-fallback = true}\n' in project.toml.read_text()
    (entry,) = json.loads(project.lock.read_bytes())["plugins"]
    assert entry["targets"][HERE]["fallback"].startswith("delta 1.0.0 was accepted as a fallback: 1.1.0 needs torch")
    project.spm("sync", "--target", HERE)
    (installed,) = project.client.spm("list").ok().document["plugins"]
    assert (installed["is_fallback"], installed["fallback"]) == (True, entry["targets"][HERE]["fallback"])


def test_a_binding_is_installed_and_leaves_with_its_line(project: Project) -> None:
    project.told("add", "beta@^1.0", "--affinity", "cpu", "--batch-policy", "none").ok()
    project.spm("sync", "--target", HERE)
    (bound,) = project.client.spm("list").ok().document["plugins"]

    project.told("add", "beta", "--unbind").ok()
    project.spm("sync", "--target", HERE).ok()

    assert bound["bindings"] == {"affinity": ["cpu"], "batch_policy": "none"}
    assert "bindings" not in project.client.spm("list").ok().document["plugins"][0]
    assert 'beta = "^1.0"\n' in project.toml.read_text()


def test_drift_is_refused_with_each_difference_and_repaired_by_a_plain_sync(project: Project) -> None:
    project.told("add", "alpha@^1.0").ok()
    project.told("sync", "--target", HERE).ok()
    project.toml.write_text(project.toml.read_text().replace('"^1.0"', '"~1.0"'))

    for command in (["lock", "--locked"], ["sync", "--locked"]):
        with unchanged(project.folder, project.client.store):
            refusal = project.spm(*command)
        context = refusal.refused(
            10,
            "lock-drift",
            "spm.lock is not what it would be if it were written now:\n"
            "  `alpha`: `range` is `~1.0` in spm.toml and is `^1.0` in spm.lock",
            "`spm lock` brings it up to date, `spm lock --dry-run` shows how",
        )
        assert context["differences"] == ["`alpha`: `range` is `~1.0` in spm.toml and is `^1.0` in spm.lock"]
    synced = project.told("sync", "--target", HERE).ok()

    assert synced.out == (
        "downgraded alpha 1.0.0, was 1.1.0\nspm.lock has 2 plugins for 1 target\n"
        "downgraded alpha 1.0.0 (ext), was 1.1.0\n"
        f"2 plugins installed as spm.lock has them for {HERE}\n"
    )
    project.spm("lock", "--locked").ok()


def test_a_sync_that_fails_leaves_lock_and_store(project: Project) -> None:
    project.told("add", "alpha@^1.0").ok()
    project.told("sync", "--target", HERE).ok()
    project.toml.write_text(project.toml.read_text().replace('"^1.0"', '">=9,<10"'))

    with unchanged(project.folder, project.client.store):
        refusal = project.spm("sync", "--target", HERE)

    refusal.refused(
        10,
        "not-found",
        "`alpha` has no release in `>=9,<10`; the newest of 3 is 2.0.0",
        "`alpha==2.0.0` asks for that one",
    )


def test_a_locked_manifest_that_the_registry_does_not_list_is_not_installed(project: Project) -> None:
    project.told("add", "beta@^1.0").ok()
    digest = json.loads(project.lock.read_bytes())["plugins"][0]["variants"][0]["manifest_sha256"]
    project.lock.write_text(project.lock.read_text().replace(digest, "0" * 64))

    with unchanged(project.folder):
        refusal = project.spm("sync", "--target", HERE)

    assert (refusal.code, refusal.document["error"]["reason"]) == (10, "lock-drift")
    assert project.client.installed() == {}


def test_without_a_project_the_store_is_explained(client: Client, tmp_path: Path) -> None:
    client.told("install", "alpha==1.1.0").ok()
    nowhere = Project(tmp_path, client)

    tree = nowhere.told("tree").ok()
    why = nowhere.told("why", "beta").ok()
    outdated = nowhere.told("outdated").ok()
    strange = client.spm("why", "betta")

    assert tree.out == f"{client.store} (generation 1)\n└── alpha 1.1.0\n    └── beta 1.1.0 (^1.0)\n"
    assert why.out == "beta 1.1.0\n  you -> alpha 1.1.0 -> beta 1.1.0 (^1.0)\n"
    assert outdated.out == (
        "NAME   INSTALLED  IN RANGE  NEWEST  WHY\n"
        "alpha  1.1.0      2.0.0     2.0.0   it is installed: `spm install alpha` takes 2.0.0\n"
    )
    strange.refused(10, "not-found", "`betta` is not installed", "did you mean `beta`?")


def test_json_is_one_document(project: Project) -> None:
    added = project.spm("add", "alpha@^2.0").ok().document
    locked = project.spm("lock", "--dry-run").ok().document
    tree = project.spm("tree").ok().document
    why = project.spm("why", "beta").ok().document
    outdated = project.spm("outdated").ok().document
    removed = project.spm("remove", "alpha").ok().document

    assert list(added) == [
        "requirements", "lock", "written", "dry_run", "registry", "targets", "changes", "plugins", "yanked",
        "distrusted", "beyond_bound",
    ]  # fmt: skip
    assert added["changes"][0] == {
        "name": "alpha",
        "change": "added",
        "before": {},
        "after": {HERE: "2.0.0"},
        "fallbacks": [],
    }
    assert (locked["written"], locked["dry_run"], locked["changes"]) == (False, True, [])
    assert tree["trees"][0]["plugins"][0]["requires"] == {"beta": "^1.0"}
    assert [[step["name"] for step in path] for path in why["graphs"][0]["paths"]] == [["alpha", "beta"]]
    assert outdated == {"of": "locked", "plugins": []}
    assert removed["requirements"] == ["alpha"]


def test_a_release_that_is_yanked_after_it_was_locked_stays_and_warns(
    team: Team, project: Project, tmp_path: Path
) -> None:
    sources = tmp_path / "sources"
    team.publish(write_source(sources, "lota", "1.0.0"))
    project.told("add", "lota").ok()
    team.publish(write_source(sources, "lota", "1.1.0"), write_source(sources, "lota", "1.2.0"))

    stayed = project.told("lock").ok()
    shown = project.told("outdated").ok()
    project.told("upgrade", "lota").ok()
    team.publisher.spm("yank", "lota==1.2.0", "--reason", "wrong weights").ok()
    warned = project.told("lock", "--locked")
    synced = project.told("sync", "--target", HERE)
    behind = project.told("outdated").ok()
    moved = project.told("upgrade", "lota").ok()

    assert stayed.out == "spm.lock has 1 plugin for 1 target, unchanged\n"
    assert shown.out == (
        "NAME  LOCKED  IN RANGE  NEWEST  WHY\n"
        "lota  1.0.0   1.2.0     1.2.0   it is locked: `spm upgrade lota` takes 1.2.0\n"
    )
    assert (warned.code, warned.out, warned.err) == (
        0,
        "spm.lock has 1 plugin for 1 target, unchanged\n",
        "warning[yanked]: `lota` 1.2.0 stays locked, and was yanked: wrong weights\n"
        "  remedy: `spm upgrade lota` takes a release that is not\n",
    )
    assert (synced.code, synced.err) == (0, "warning[yanked]: `lota` 1.2.0 was yanked: wrong weights\n")
    assert project.client.installed() == {"lota": "1.2.0"}
    assert behind.out == "NAME  LOCKED  IN RANGE  NEWEST  WHY\nlota  1.2.0   1.1.0     1.1.0   yanked: wrong weights\n"
    assert moved.out == "downgraded lota 1.1.0, was 1.2.0\nspm.lock has 1 plugin for 1 target\n"

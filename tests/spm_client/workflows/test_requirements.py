"""Adding to a project and removing from it: both files change together, or neither does."""

from pathlib import Path

import pytest

from manifests.batching import BatchPolicy
from manifests.devices import parse_affinity
from manifests.errors import FallbackRefused, NotFound, SpmError, UsageError
from manifests.lockfile import Bindings
from manifests.names import PluginName
from manifests.project_lock import ProjectLock
from spm_client.resolve import parse_spec
from spm_client.workflows.requirements import Addition, add, range_from, remove
from tests.manifests.test_project_lock import plugin, small
from tests.spm_client.workflows.team_project import CPU, GPU, TeamProject
from tests.spm_client.workflows.test_lock import CUDA, refusal


@pytest.fixture
def project(tmp_path: Path) -> TeamProject:
    made = TeamProject(tmp_path)
    made.publish("beta", "1.0.0")
    made.publish("beta", "1.1.0")
    made.publish("alpha", "1.0.0", requires={"beta": "^1.0"})
    made.publish("alpha", "1.2.0", requires={"beta": "^1.0"})
    made.write()
    return made


def added(project: TeamProject, *specs: str, bare: tuple[str, ...] = (), **more: object) -> None:
    addition = Addition(
        requirements=tuple(parse_spec(spec) for spec in specs),
        bare=frozenset(PluginName(name) for name in bare),
        **more,  # type: ignore[arg-type]
    )
    add(project.open(), project.asker(), addition)


def toml(project: TeamProject) -> str:
    return (project.folder / "spm.toml").read_text()


def test_a_name_gets_the_range_of_what_was_taken(project: TeamProject) -> None:
    before = toml(project)

    added(project, "alpha", bare=("alpha",))

    assert toml(project) == before.replace("[requirements]\n", '[requirements]\nalpha = "^1.2.0"\n')
    assert project.versions() == {"alpha": "1.2.0", "beta": "1.1.0"}


def test_a_range_that_was_written_stays_as_it_is(project: TeamProject) -> None:
    added(project, "alpha@~1.0", "beta@*")

    assert 'alpha = "~1.0"\nbeta = "*"\n' in toml(project)
    assert project.versions()["alpha"] == "1.0.0"


def test_a_name_that_is_there_keeps_its_range_and_gets_the_options(project: TeamProject) -> None:
    added(project, "alpha@~1.0")

    added(
        project,
        "alpha",
        bare=("alpha",),
        bindings=Bindings(affinity=parse_affinity(["cpu"]), batch_policy=BatchPolicy.from_value("static")),
    )
    bound = toml(project)
    added(project, "alpha", bare=("alpha",), unbind=True)

    assert 'alpha = {range = "~1.0", affinity = ["cpu"], batch-policy = "static"}\n' in bound
    assert 'alpha = "~1.0"\n' in toml(project)
    assert project.versions()["alpha"] == "1.0.0"


def test_what_is_locked_already_is_not_moved_by_being_named(project: TeamProject) -> None:
    added(project, "alpha@^1.0")
    project.publish("beta", "1.2.0")

    added(project, "beta", bare=("beta",))

    assert 'beta = "^1.1.0"\n' in toml(project)
    assert project.versions()["beta"] == "1.1.0"


def test_an_accepted_fallback_of_what_others_require_stands_below_resolution(project: TeamProject) -> None:
    project.publish("beta", "1.3.0", torch=">=99,<100")

    with project.unchanged():
        refusal(lambda: added(project, "alpha", bare=("alpha",)), FallbackRefused)
    added(project, "alpha", bare=("alpha",), accept_fallback=frozenset({PluginName("beta")}))

    assert toml(project).endswith('\n[resolution]\naccept-fallback = ["beta"]\n')
    assert project.locked.accept_fallback == {"beta"}
    assert project.versions()["beta"] == "1.1.0"


def test_an_accepted_fallback_of_its_own_stands_beside_the_range(project: TeamProject) -> None:
    project.publish("beta", "1.3.0", torch=">=99,<100")

    added(project, "beta@^1.0", accept_fallback=frozenset({PluginName("beta")}))

    assert 'beta = {range = "^1.0", accept-fallback = true}\n' in toml(project)


def test_an_acceptance_of_what_would_not_be_there_is_refused(project: TeamProject) -> None:
    with project.unchanged():
        refused = refusal(
            lambda: added(project, "beta@^1.0", accept_fallback=frozenset({PluginName("gamma")})), UsageError
        )

    assert refused.message == "`--accept-fallback gamma`: `gamma` is not among what would be locked"


def test_a_binding_is_for_one_plugin(project: TeamProject) -> None:
    with project.unchanged():
        refused = refusal(lambda: added(project, "alpha@*", "beta@*", unbind=True), UsageError)

    assert refused.message == "`--affinity`, `--batch-policy` and `--unbind` are for one plugin: add it alone"


def test_a_plugin_that_is_nowhere_changes_nothing(project: TeamProject) -> None:
    with project.unchanged():
        refused = refusal(lambda: added(project, "nowhere", bare=("nowhere",)), NotFound)

    assert refused.message == "the registry `team.example` has no plugin `nowhere`"


def test_a_disk_that_is_full_at_the_second_file_leaves_the_first(
    project: TeamProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    added(project, "beta@^1.0")
    real, names = os.replace, list[str]()

    def replace(source: str | Path, place: str | Path) -> None:
        names.append(Path(place).name)
        if Path(place).name == "spm.toml":
            raise OSError(28, "No space left on device")
        real(source, place)

    with project.unchanged():
        monkeypatch.setattr(os, "replace", replace)
        with pytest.raises(SpmError) as caught:
            added(project, "alpha", bare=("alpha",))
        monkeypatch.undo()

    assert caught.value.reason == "limit:disk"
    assert [name for name in names if name.startswith("spm")] == ["spm.lock", "spm.toml", "spm.lock"]


def test_a_removed_requirement_takes_what_only_it_needed(project: TeamProject) -> None:
    added(project, "alpha", bare=("alpha",))
    before = toml(project)

    remove(project.open(), project.asker(), (PluginName("alpha"),))

    assert toml(project) == before.replace('alpha = "^1.2.0"\n', "")
    assert project.versions() == {}


def test_what_others_require_cannot_be_removed(project: TeamProject) -> None:
    added(project, "alpha", bare=("alpha",))

    with project.unchanged():
        refused = refusal(lambda: remove(project.open(), project.asker(), (PluginName("beta"),)), NotFound)

    assert (refused.message, refused.hint) == (
        "spm.toml does not require `beta`; it is there since `alpha` requires it",
        "`spm why beta` shows how",
    )


def test_a_misspelt_name_is_not_removed(project: TeamProject) -> None:
    added(project, "alpha", bare=("alpha",))

    with project.unchanged():
        refused = refusal(lambda: remove(project.open(), project.asker(), (PluginName("alpa"),)), NotFound)

    assert (refused.message, refused.hint) == ("`alpa` is not required by spm.toml", "did you mean `alpha`?")


def test_targets_with_different_releases_share_a_range(project: TeamProject) -> None:
    project.publish("gamma", "1.0.0")
    project.publish("gamma", "2.0.0", variants=[CUDA])
    project.write(cpu=CPU, gpu=GPU)

    added(project, "gamma", bare=("gamma",), accept_fallback=frozenset({PluginName("gamma")}))

    assert 'gamma = {range = ">=1.0.0,<3", accept-fallback = true}\n' in toml(project)
    assert (project.versions("cpu"), project.versions("gpu")) == ({"gamma": "1.0.0"}, {"gamma": "2.0.0"})


@pytest.mark.parametrize(
    ("versions", "text"),
    [
        (("1.2.0",), "^1.2.0"),
        (("0.3.1",), "^0.3.1"),
        (("1.2.0", "1.4.0"), "^1.2.0"),
        (("1.2.0", "3.0.0"), ">=1.2.0,<4"),
        (("0.3.0", "0.4.0"), ">=0.3.0,<1"),
        (("1.0.0-rc.1",), "^1.0.0-rc.1"),
        (("1.0.0+cpu",), "^1.0.0"),
    ],
)
def test_range_of_what_was_taken(versions: tuple[str, ...], text: str) -> None:
    lock: ProjectLock = small(plugins=tuple(plugin("alpha", version) for version in versions))

    found = range_from(lock, PluginName("alpha"))

    assert found.text == text
    assert all(found.contains(one.version) for one in lock.plugins)


@pytest.mark.parametrize(
    ("specs", "told"),
    [
        (("alpha@^2", "alpha@^1.0"), "`alpha@^2` and `alpha@^1.0` are both for `alpha`"),
        (("alpha==1.0.0", "alpha@==1.2.0"), "`alpha@==1.0.0` and `alpha@==1.2.0` are both for `alpha`"),
        (("team.example/beta", "beta"), "`team.example/beta` and `beta` are both for `beta`"),
    ],
)
def test_two_specifiers_of_one_plugin_are_refused_with_both(
    project: TeamProject, specs: tuple[str, ...], told: str
) -> None:
    with project.unchanged():
        refused = refusal(lambda: added(project, *specs), UsageError)

    assert refused.message == f"{told}, and spm.toml has one range for each plugin"


def test_a_refused_fallback_names_the_command_that_adds_and_accepts(project: TeamProject) -> None:
    project.publish("delta", "1.0.0")
    project.publish("delta", "1.1.0", variants=[CUDA])

    refused = refusal(lambda: added(project, "delta", "beta@>=1,<2", bare=("delta",)), FallbackRefused)

    assert refused.hint == (
        "`spm add delta 'beta@>=1,<2' --accept-fallback delta` accepts that; it is written to spm.toml and shown ever "
        "after"
    )


def test_the_command_of_a_hint_has_all_that_was_given(project: TeamProject) -> None:
    project.publish("delta", "1.0.0")
    project.publish("delta", "1.1.0", variants=[CUDA])
    bound = Bindings(affinity=parse_affinity(["cpu"]), batch_policy=BatchPolicy.from_value("static"))
    beta = frozenset({PluginName("beta")})

    refused = refusal(
        lambda: added(project, "delta", bare=("delta",), bindings=bound, pre=beta, accept_fallback=beta),
        FallbackRefused,
    )

    assert refused.hint.startswith(
        "`spm add delta --affinity cpu --batch-policy static --pre beta --accept-fallback beta --accept-fallback delta`"
    )

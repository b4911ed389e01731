"""Locking a project: what is taken, what stays, what is refused, and that the bytes are the same from anywhere."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from manifests.errors import (
    FallbackRefused,
    Fork,
    IncompatibleTarget,
    LockDrift,
    LockMissing,
    NotFound,
    OtherRegistry,
    SignatureInvalid,
    SpmError,
)
from manifests.names import PluginName
from manifests.parts import Variant
from manifests.project_lock import ProjectLock
from spm_client.adapters.project_files import ProjectFolder
from spm_client.workflows.project import require_undrifted
from spm_client.workflows.relock import require_current
from spm_client.workflows.requirements import Addition
from tests.fakes.simulated_registry import SimulatedRegistry
from tests.keys.trust_builders import make_trust
from tests.spm_client.workflows.team_project import CPU, GPU, HEAD, TeamProject

CUDA = Variant(os="linux", accelerator="cuda", sm=("sm_86",))
ANY_LINUX = Variant(os="linux")


@pytest.fixture
def project(tmp_path: Path) -> TeamProject:
    made = TeamProject(tmp_path)
    made.publish("beta", "1.0.0")
    made.publish("beta", "1.1.0")
    made.publish("alpha", "1.0.0", requires={"beta": "^1.0"})
    return made


def refusal(call: object, kind: type[SpmError]) -> SpmError:
    assert callable(call)
    with pytest.raises(SpmError) as caught:
        call()
    assert type(caught.value) is kind, caught.value.message
    return caught.value


def test_a_lock_has_the_newest_with_all_that_it_requires_and_who_signed(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')

    relocked = project.lock()

    assert project.versions() == {"alpha": "1.0.0", "beta": "1.1.0"}
    assert [(change.name, change.verb) for change in relocked.changes] == [("alpha", "added"), ("beta", "added")]
    alpha = project.locked.plugins[0]
    assert [variant.keyids for variant in alpha.variants] == [(project.registry.keyid,)]
    assert [(name, str(wanted)) for name, wanted in alpha.requires] == [("beta", "^1.0")]
    assert project.locked.registry == "team.example"


def test_all_variants_are_recorded_and_each_target_takes_its_own(project: TeamProject) -> None:
    project.publish("gamma", variants=[ANY_LINUX, CUDA])
    project.write('gamma = "*"', cpu=CPU, gpu=GPU)

    project.lock()

    (gamma,) = project.locked.plugins
    tags = {variant.manifest_sha256: variant.tag for variant in gamma.variants}
    assert sorted(tags.values()) == ["linux", "linux-cuda-sm_86"]
    assert {name: tags[pin.manifest_sha256] for name, pin in gamma.targets} == {
        "cpu": "linux",
        "gpu": "linux-cuda-sm_86",
    }


def test_the_bytes_are_the_same_from_a_cold_and_a_warm_store(project: TeamProject) -> None:
    project.publish("gamma", variants=[CUDA, ANY_LINUX], requires={"alpha": "*"})
    project.write('gamma = "*"', cpu=CPU, gpu=GPU)
    project.lock()
    first = (project.folder / "spm.lock").read_bytes()
    (project.folder / "spm.lock").unlink()

    project.lock()
    warm = (project.folder / "spm.lock").read_bytes()
    (project.folder / "spm.lock").unlink()
    project.trust("elsewhere")
    project.lock(store="elsewhere")

    assert first == warm == (project.folder / "spm.lock").read_bytes()
    assert first == ProjectLock.from_bytes(first).to_bytes()


def test_what_is_locked_stays_when_something_newer_comes(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')
    project.lock()
    before = (project.folder / "spm.lock").read_bytes()
    project.publish("alpha", "1.1.0", requires={"beta": "^1.0"})
    project.publish("beta", "1.2.0")

    relocked = project.lock()

    assert (project.folder / "spm.lock").read_bytes() == before
    assert relocked.is_written is False
    assert {change.verb for change in relocked.changes} == {"unchanged"}


def test_upgrading_one_plugin_leaves_the_others(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')
    project.lock()
    project.publish("alpha", "1.1.0", requires={"beta": "^1.0"})
    project.publish("beta", "1.2.0")

    relocked = project.lock("alpha")

    assert project.versions() == {"alpha": "1.1.0", "beta": "1.1.0"}
    assert [(change.name, change.verb) for change in relocked.changes] == [("alpha", "upgraded"), ("beta", "unchanged")]


def test_upgrading_everything_takes_the_newest(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')
    project.lock()
    project.publish("alpha", "1.1.0", requires={"beta": "^1.0"})
    project.publish("beta", "1.2.0")

    project.lock(freed=None)

    assert project.versions() == {"alpha": "1.1.0", "beta": "1.2.0"}


def test_a_requirement_that_changes_moves_only_what_it_must(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')
    project.lock()
    project.publish("alpha", "2.0.0", requires={"beta": "^1.0"})
    project.publish("beta", "1.2.0")
    project.write('alpha = "^2.0"')

    project.lock()

    assert project.versions() == {"alpha": "2.0.0", "beta": "1.1.0"}


def test_a_new_target_takes_what_the_others_have(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')
    project.lock()
    project.publish("beta", "1.2.0")
    project.write('alpha = "^1.0"', cpu=CPU, gpu=GPU)

    project.lock()

    assert project.versions("cpu") == project.versions("gpu") == {"alpha": "1.0.0", "beta": "1.1.0"}
    assert [pin.fallback for plugin in project.locked.plugins for _, pin in plugin.targets] == [None] * 4


def test_targets_move_together_where_one_of_them_must_move(project: TeamProject) -> None:
    project.publish("gamma", "1.0.0", torch="<2.14")
    project.write('gamma = "^1.0"', cpu=CPU, gpu=GPU)
    project.lock()
    project.publish("gamma", "1.1.0")
    assert GPU.torch is not None
    project.write('gamma = "^1.0"', cpu=CPU, gpu=replace(GPU, torch=replace(GPU.torch, version="2.14.0")))

    project.lock()

    assert project.versions("cpu") == project.versions("gpu") == {"gamma": "1.1.0"}


def test_targets_differ_where_the_lesser_one_is_accepted(project: TeamProject) -> None:
    project.publish("gamma", "1.0.0")
    project.publish("gamma", "1.1.0", variants=[CUDA])
    project.write('gamma = "^1.0"', cpu=CPU, gpu=GPU)

    with project.unchanged():
        refused = refusal(project.lock, FallbackRefused)
    project.write('gamma = { range = "^1.0", accept-fallback = true }', cpu=CPU, gpu=GPU)
    project.lock()

    assert refused.hint == (
        "`spm lock --accept-fallback gamma` accepts that; it is written to spm.toml and shown ever after"
    )
    assert project.versions("cpu") == {"gamma": "1.0.0"}
    assert project.versions("gpu") == {"gamma": "1.1.0"}
    old, new = project.locked.plugins
    assert [pin.fallback for _, pin in old.targets] == [
        "gamma 1.0.0 was accepted as a fallback: 1.1.0 has no variant for it: `linux-cuda-sm_86` is built for cuda, "
        "and the target has no cuda device"
    ]
    assert [pin.fallback for _, pin in new.targets] == [None]
    before = (project.folder / "spm.lock").read_bytes()
    project.lock()
    assert (project.folder / "spm.lock").read_bytes() == before


def test_an_acceptance_that_is_taken_back_is_a_fallback_again(project: TeamProject) -> None:
    project.publish("gamma", "1.0.0")
    project.publish("gamma", "1.1.0", variants=[CUDA])
    project.write('gamma = { range = "^1.0", accept-fallback = true }')
    project.lock()
    project.write('gamma = "^1.0"')

    with project.unchanged():
        refusal(project.lock, FallbackRefused)


def test_a_target_that_would_take_a_lesser_build_of_a_locked_release_is_refused(project: TeamProject) -> None:
    project.publish("gamma", variants=[ANY_LINUX, CUDA])
    project.write('gamma = "*"', gpu=GPU)
    project.lock()
    old = replace(GPU, devices=(GPU.devices[0], replace(GPU.devices[1], sm="sm_75")))
    project.write('gamma = "*"', gpu=old)

    with project.unchanged():
        refused = refusal(project.lock, FallbackRefused)

    assert refused.message == (
        "`gamma` 1.0.0 would fall back to the variant `linux`, less specific than:\n"
        "  variant `linux-cuda-sm_86`: is built for sm_86, and the target has sm_75"
    )


def test_a_yanked_release_stays_locked_and_its_reason_is_told(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')
    project.lock()
    before = (project.folder / "spm.lock").read_bytes()
    project.yank("beta", "1.1.0", "wrong weights")

    relocked = project.lock()

    assert (project.folder / "spm.lock").read_bytes() == before
    assert [(name, str(version), why) for name, version, why in relocked.yanked] == [("beta", "1.1.0", "wrong weights")]
    project.lock("beta")
    assert project.versions()["beta"] == "1.0.0"


def test_a_signature_that_does_not_hold_keeps_everything_out_of_the_lock(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')
    (digest,) = (entry.manifest_sha256 for entry in project.registry.shards["alpha"].releases[0].variants)
    path = f"/v1/manifests/{digest}/manifest.jws"
    token = project.registry.documents[path]
    project.registry.documents[path] = token[:-8] + (b"AAAAAAAA" if token[-8:] != b"AAAAAAAA" else b"BBBBBBBB")

    with project.unchanged(), pytest.raises(SpmError) as caught:
        project.lock()

    assert caught.value.exit_code == SignatureInvalid.exit_code
    assert not (project.folder / "spm.lock").exists()


def test_a_locked_version_with_other_manifests_is_refused(project: TeamProject) -> None:
    project.write('beta = "^1.0"')
    project.lock()
    text = (project.folder / "spm.lock").read_text()
    digest = project.locked.plugins[0].variants[0].manifest_sha256
    (project.folder / "spm.lock").write_text(text.replace(digest, "0" * 64))

    with project.unchanged():
        refused = refusal(project.lock, Fork)

    assert refused.message == (
        f"spm.lock has other manifests of `beta` 1.1.0 (sha256:0000000000000000…) than the registry lists now "
        f"(sha256:{digest[:16]}…); a release never changes"
    )


@pytest.mark.parametrize("head", [HEAD, HEAD.replace("\n\n", '\nregistry = "team.example"\n\n')])
def test_a_lock_of_another_registry_is_refused_and_told_how_to_begin_anew(project: TeamProject, head: str) -> None:
    project.write('beta = "^1.0"', head=head)
    project.lock()
    lock = project.folder / "spm.lock"
    lock.write_text(lock.read_text().replace("team.example", "old.example"))

    with project.unchanged():
        refused = refusal(project.lock, OtherRegistry)
    lock.unlink()
    project.lock()

    assert (refused.reason, refused.message) == (
        "conf-registry",
        "spm.lock is of the registry `old.example`, but loader.conf is of `team.example`",
    )
    assert refused.hint == (
        "use the store of that registry (`--root DIR`); or, if the project has moved to `team.example` for good, "
        "remove spm.lock, and `spm lock` locks everything anew"
    )
    assert project.locked.registry == "team.example"


def test_a_project_of_another_registry_is_refused(project: TeamProject) -> None:
    project.write('beta = "^1.0"', head=HEAD.replace("\n\n", '\nregistry = "other.example"\n\n'))

    with project.unchanged():
        refused = refusal(project.lock, OtherRegistry)

    assert refused.message == "spm.toml is of the registry `other.example`, but loader.conf is of `team.example`"
    assert refused.reason == "conf-registry"


def test_a_binding_that_a_target_cannot_keep_is_refused(project: TeamProject) -> None:
    project.write('beta = { range = "^1.0", affinity = ["cuda:0"] }', cpu=CPU, gpu=GPU)

    with project.unchanged():
        refused = refusal(project.lock, IncompatibleTarget)

    assert refused.message == "spm.toml binds `beta` to `cuda:0`, and the target `cpu` has cpu"


def test_a_name_to_upgrade_that_is_not_locked_is_refused_with_the_nearest(project: TeamProject) -> None:
    project.write('beta = "^1.0"')
    project.lock()

    with project.unchanged():
        refused = refusal(lambda: project.lock("bta"), NotFound)

    assert (refused.message, refused.hint) == ("`bta` is not in spm.lock", "did you mean `beta`?")


def test_a_dry_run_tells_and_writes_nothing(project: TeamProject) -> None:
    project.write('beta = "^1.0"')

    with project.unchanged():
        relocked = project.lock(is_dry_run=True)

    assert [(change.name, change.verb) for change in relocked.changes] == [("beta", "added")]


def test_drift_from_spm_toml_is_seen_without_a_registry(project: TeamProject) -> None:
    project.write('alpha = "^1.0"\nbeta = "^1.0"', cpu=CPU)
    project.lock()
    project.registry.asked.clear()
    project.write(
        'alpha = { range = "^1.1", affinity = ["cpu"] }\ngamma = "*"',
        more='\n[resolution]\npre = ["beta"]\nexclude-newer = "2026-01-31"\n',
        cpu=GPU,
        gpu=GPU,
    )

    with project.unchanged():
        refused = refusal(lambda: require_undrifted(project.open()), LockDrift)

    assert refused.message == (
        "spm.lock is not what it would be if it were written now:\n"
        "  `alpha`: `affinity` is `cpu` in spm.toml and is not written in spm.lock, "
        "`range` is `^1.1` in spm.toml and is `^1.0` in spm.lock\n"
        "  spm.lock answers a requirement of `beta` that spm.toml does not have\n"
        "  spm.toml requires `gamma` `*`, and spm.lock does not answer that\n"
        "  `resolution.pre` names beta in spm.toml and nobody in spm.lock\n"
        "  the document of the target `cpu` is another than when spm.lock was written\n"
        "  spm.toml has the target `gpu`, and spm.lock is not for it\n"
        "  spm.toml excludes what is newer than 2026-01-31T23:59:59Z, and spm.lock has no such bound"
    )
    assert len(refused.context["differences"]) == 7
    assert project.registry.asked == []


def test_a_current_lock_is_current_and_no_lock_is_none(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')

    with project.unchanged():
        missing = refusal(lambda: require_current(project.open(), project.asker()), LockMissing)
    project.lock()
    with project.unchanged():
        require_current(project.open(), project.asker())

    assert missing.message == f"`{project.folder}` has no spm.lock"
    assert missing.hint == "`spm lock` writes it"


def test_drift_that_only_the_registry_knows_of_is_listed(project: TeamProject) -> None:
    project.write('alpha = "^1.0"')
    project.lock()
    lock = project.locked
    without = replace(lock, plugins=(replace(lock.plugins[0], requires=()),))
    (project.folder / "spm.lock").write_bytes(without.to_bytes())

    with project.unchanged():
        refused = refusal(lambda: require_current(project.open(), project.asker()), LockDrift)

    assert refused.message == (
        "spm.lock is not what it would be if it were written now:\n"
        "  `alpha` 1.0.0: `requires.beta` is not there in spm.lock, and would be `^1.0`\n"
        "  `beta` 1.1.0 would be added"
    )
    assert refused.hint == "`spm lock` brings it up to date, `spm lock --dry-run` shows how"


def test_a_file_that_another_program_changed_meanwhile_is_left_alone(project: TeamProject) -> None:
    project.write('beta = "^1.0"')
    folder: ProjectFolder = project.open()
    project.write('alpha = "^1.0"')

    with project.unchanged():
        refused = refusal(lambda: folder.replace(lock=b"{}"), LockDrift)

    assert refused.message == (
        f"`{project.folder / 'spm.toml'}` was changed by another program meanwhile; nothing was written"
    )


def test_a_range_that_no_release_meets_changes_nothing(project: TeamProject) -> None:
    project.write('beta = ">=9,<10"')

    with project.unchanged():
        refused = refusal(project.lock, NotFound)

    assert refused.message == "`beta` has no release in `>=9,<10`; the newest of 2 is 1.1.0"


def test_a_fallback_that_is_accepted_while_locking_is_written_to_spm_toml(project: TeamProject) -> None:
    project.publish("gamma", "1.0.0")
    project.publish("gamma", "1.1.0", variants=[CUDA])
    project.publish("delta", "1.0.0", requires={"gamma": "^1.0"})
    project.write('gamma = "^1.0"')
    names = frozenset({PluginName("gamma")})

    with project.unchanged():
        project.lock(accepting=Addition(requirements=(), accept_fallback=names), is_dry_run=True)
    project.lock(accepting=Addition(requirements=(), accept_fallback=names))

    assert 'gamma = {range = "^1.0", accept-fallback = true}\n' in (project.folder / "spm.toml").read_text()
    require_current(project.open(), project.asker())


def published(project: TeamProject, name: str, **moments: str) -> None:
    """Stamp releases of a plugin, named `v1_0_0`, as a registry does when it publishes them."""
    stamps = {word[1:].replace("_", "."): moment for word, moment in moments.items()}
    project.change(
        name,
        lambda shard: replace(
            shard, releases=tuple(replace(one, published=stamps[str(one.version)]) for one in shard.releases)
        ),
    )


def test_releases_that_are_too_new_are_left_out_until_the_bound_is_gone(project: TeamProject) -> None:
    published(project, "beta", v1_0_0="2026-01-01T12:00:00Z", v1_1_0="2026-02-01T00:00:00Z")
    project.write('beta = "^1.0"', more='\n[resolution]\nexclude-newer = "2026-01-31"\n')

    project.lock()
    bounded = project.versions()
    bound = project.locked.exclude_newer
    project.write('beta = "^1.0"')
    project.lock()

    assert (bounded, bound) == ({"beta": "1.0.0"}, "2026-01-31T23:59:59Z")
    assert (project.versions(), project.locked.exclude_newer) == ({"beta": "1.0.0"}, None)
    project.lock("beta")
    assert project.versions() == {"beta": "1.1.0"}


def test_a_bound_given_to_one_lock_is_recorded_and_holds_for_a_locked_run(project: TeamProject) -> None:
    published(project, "beta", v1_0_0="2026-01-01T12:00:00Z", v1_1_0="2026-02-01T00:00:00Z")
    project.write('beta = "^1.0"')

    project.lock(exclude_newer="2026-01-31T23:59:59Z")

    assert project.versions() == {"beta": "1.0.0"}
    require_current(project.open(), project.asker())
    assert project.locked.exclude_newer == "2026-01-31T23:59:59Z"


def test_a_plugin_of_another_registry_says_so_and_only_that_one_is_asked(project: TeamProject, tmp_path: Path) -> None:
    index = make_trust("px.example", now=datetime.now(UTC).replace(microsecond=0))
    other = SimulatedRegistry(index=index)
    other.publish("px-scale", "1.0.0")
    folder = tmp_path / "store" / "registries" / "px.example"
    folder.mkdir(parents=True)
    conf = other.loader_conf().replace("[registry]\n", '[registry]\nnames = ["px-*"]\n')
    (folder / "loader.conf").write_text(conf)
    (folder / "loader.conf").chmod(0o644)
    project.others["px.example"] = other
    project.write('beta = "^1.0"\npx-scale = "*"')

    project.lock()

    assert [(plugin.name, plugin.registry) for plugin in project.locked.plugins] == [
        ("beta", None),
        ("px-scale", "px.example"),
    ]
    assert project.locked.releases("cpu")[PluginName("px-scale")].registry == "px.example"
    assert [path for path in other.asked if "beta" in path] == []
    assert [path for path in project.registry.asked if "px-scale" in path] == []


def test_what_goes_along_keeps_the_lock_as_it_was_when_it_fails(project: TeamProject) -> None:
    project.write('beta = "^1.0"')

    def fail(lock: ProjectLock, last_question: object) -> None:
        assert [plugin.name for plugin in lock.plugins] == ["beta"]
        raise NotFound("the install failed")

    with project.unchanged():
        refused = refusal(lambda: project.lock(along=fail), NotFound)

    assert refused.message == "the install failed"

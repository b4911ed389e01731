"""An install by spm.lock takes what was locked, by its digests, and nothing else; whatever differs is a drift."""

from dataclasses import replace
from pathlib import Path

import pytest

from manifests.devices import parse_affinity
from manifests.errors import FallbackRefused, IncompatibleTarget, LockDrift, Unsatisfiable, UsageError
from manifests.index import Shard
from manifests.lockfile import Bindings
from manifests.names import PluginName
from manifests.parts import Variant
from manifests.project_lock import LockedRelease
from manifests.ranges import Range
from manifests.versions import Version
from tests.spm_client.workflows.bundles import Machine

ALPHA, BETA, GAMMA = PluginName("alpha"), PluginName("beta"), PluginName("gamma")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "store")


def locked(version: str, *digests: str, fallback: str | None = None, registry: str | None = None) -> LockedRelease:
    manifests = frozenset(digests)
    return LockedRelease(version=Version.parse(version), manifests=manifests, fallback=fallback, registry=registry)


def test_what_was_locked_is_taken_though_there_is_newer_and_it_is_no_fallback(machine: Machine) -> None:
    beta = machine.registry.publish("beta", "1.0.0")
    alpha = machine.registry.publish("alpha", "1.0.0", requires=["beta"])
    machine.registry.publish("beta", "1.1.0")
    machine.registry.publish("alpha", "1.1.0", requires=["beta"])

    done = machine.install("alpha", locked={ALPHA: locked("1.0.0", alpha), BETA: locked("1.0.0", beta)}, is_exact=True)

    assert machine.installed == {"alpha": "1.0.0", "beta": "1.0.0"}
    assert [entry.fallback for entry in machine.generation.plugins] == [None, None]
    assert [(change.verb, change.after.requested) for change in done.changes] == [
        ("installed", True),
        ("installed", False),
    ]


def test_a_yanked_release_that_was_locked_is_taken_and_the_reason_told(machine: Machine) -> None:
    digest = machine.registry.publish("alpha", "1.0.0")
    machine.registry.publish("alpha", "1.1.0")
    machine.registry.list(machine.registry.shards["alpha"].with_yanked(Version.parse("1.0.0"), "it forgets"))

    done = machine.install("alpha", locked={ALPHA: locked("1.0.0", digest)}, is_exact=True)

    assert [change.yanked for change in done.changes] == ["it forgets"]


def test_a_newer_one_that_is_installed_is_moved_back_to_what_was_locked(machine: Machine) -> None:
    digest = machine.registry.publish("alpha", "1.0.0")
    machine.registry.publish("alpha", "1.1.0")
    machine.install("alpha")

    done = machine.install("alpha", locked={ALPHA: locked("1.0.0", digest)}, is_exact=True)

    assert [change.verb for change in done.changes] == ["downgraded"]
    assert machine.generation.plugins[0].fallback is None


def test_another_manifest_than_the_locked_one_is_a_drift(machine: Machine) -> None:
    digest, other = machine.registry.publish("alpha"), "ab" * 32

    with machine.unchanged(), pytest.raises(LockDrift) as refused:
        machine.install("alpha", locked={ALPHA: locked("1.0.0", other)}, is_exact=True)

    assert refused.value.message == (
        f"`alpha` 1.0.0 would be installed from the manifest sha256:{digest}, but spm.lock names sha256:{other}: "
        "the registry lists none of the locked manifests, and a release never changes"
    )
    assert refused.value.hint == "do not lock anew before the registry's administrator has told you why"
    assert (refused.value.exit_code, refused.value.reason) == (10, "lock-drift")
    assert refused.value.context == {"name": "alpha", "version": "1.0.0", "expected": [other], "found": digest}


def test_a_variant_of_the_locked_release_that_was_not_locked_is_a_drift(machine: Machine) -> None:
    digest = machine.registry.publish("alpha", variant=Variant(accelerator="cpu"))
    shard = machine.registry.shards["alpha"]
    other = replace(shard.releases[0].variants[0], variant=Variant(accelerator="cuda"), manifest_sha256="ab" * 32)
    variants = (shard.releases[0].variants[0], other)
    machine.registry.list(
        Shard(registry=shard.registry, name=ALPHA, releases=(replace(shard.releases[0], variants=variants),))
    )

    with machine.unchanged(), pytest.raises(LockDrift) as refused:
        machine.install("alpha", locked={ALPHA: locked("1.0.0", "ab" * 32)}, is_exact=True)

    assert refused.value.message == (
        f"`alpha` 1.0.0 would be installed from the manifest sha256:{digest}, but spm.lock names "
        f"sha256:{'ab' * 32}: this target takes the variant `cpu`, for which it was not locked"
    )
    assert refused.value.hint == "`spm lock` with this target among those of spm.toml locks it too"


def test_what_is_required_and_not_locked_is_a_drift_of_an_exact_install(machine: Machine) -> None:
    machine.registry.publish("beta")
    digest = machine.registry.publish("alpha", requires=["beta"])

    with machine.unchanged(), pytest.raises(LockDrift) as refused:
        machine.install("alpha", locked={ALPHA: locked("1.0.0", digest)}, is_exact=True)

    assert refused.value.message == "`beta` 1.0.0 would be installed, and spm.lock does not name it"
    assert refused.value.hint == "`spm lock` locks what spm.toml needs now"


def test_a_lock_of_another_registry_is_a_drift(machine: Machine) -> None:
    digest = machine.registry.publish("alpha")

    with machine.unchanged(), pytest.raises(LockDrift) as refused:
        machine.install("alpha", locked={ALPHA: locked("1.0.0", digest, registry="other.example")}, is_exact=True)

    assert refused.value.message == (
        "spm.lock has `alpha` 1.0.0 from the registry `other.example`, but here the name belongs to `team.example`"
    )
    assert refused.value.hint == (
        "let it belong to `other.example` here too, by `registry.names` in that one's loader.conf; or, if the change "
        "is "
        "meant, `spm lock` locks it anew"
    )


def test_a_locked_release_that_is_gone_is_refused_by_name(machine: Machine) -> None:
    machine.registry.publish("alpha", "1.1.0")

    with machine.unchanged(), pytest.raises(Unsatisfiable) as refused:
        machine.install("alpha", locked={ALPHA: locked("1.0.0", "ab" * 32)}, is_exact=True)

    assert "spm.lock" in refused.value.message
    assert "==1.0.0" in refused.value.message


def test_an_exact_install_removes_all_else_and_forgets_who_wanted_it(machine: Machine) -> None:
    alpha, beta = machine.registry.publish("alpha"), machine.registry.publish("beta")
    machine.registry.publish("gamma")
    machine.registry.publish("delta", requires=["beta"])
    machine.install("alpha", "beta", "gamma")

    done = machine.install("alpha", locked={ALPHA: locked("1.0.0", alpha)}, is_exact=True)

    assert machine.installed == {"alpha": "1.0.0"}
    assert [entry.name for entry in done.dropped] == ["beta", "gamma"]
    assert beta not in {entry.manifest_sha256 for entry in machine.generation.plugins}


def test_who_was_wanted_before_is_only_required_after_an_exact_install(machine: Machine) -> None:
    beta = machine.registry.publish("beta")
    alpha = machine.registry.publish("alpha", requires=["beta"])
    machine.install("alpha", "beta")

    machine.install("alpha", locked={ALPHA: locked("1.0.0", alpha), BETA: locked("1.0.0", beta)}, is_exact=True)

    assert [entry.requested for entry in machine.generation.plugins] == [True, False]


def test_the_same_exact_install_twice_commits_nothing_more(machine: Machine) -> None:
    digest = machine.registry.publish("alpha")
    wanted = {ALPHA: locked("1.0.0", digest)}
    machine.install("alpha", locked=wanted, is_exact=True)

    with machine.unchanged():
        machine.install("alpha", locked=wanted, is_exact=True)


def test_bindings_of_a_project_take_the_place_of_those_that_were(machine: Machine) -> None:
    beta = machine.registry.publish("beta")
    alpha = machine.registry.publish("alpha", requires=["beta"])
    bound = Bindings(affinity=parse_affinity(["cpu"]))
    wanted = {ALPHA: locked("1.0.0", alpha), BETA: locked("1.0.0", beta)}
    machine.install("alpha", bindings=bound)

    machine.install("alpha", locked=wanted, is_exact=True, bindings_of={BETA: bound})

    assert [entry.bindings for entry in machine.generation.plugins] == [Bindings(), bound]


def test_a_binding_of_a_project_to_what_the_target_lacks_is_refused(machine: Machine) -> None:
    machine.registry.publish("alpha")

    with machine.unchanged(), pytest.raises(IncompatibleTarget) as refused:
        machine.install("alpha", bindings_of={ALPHA: Bindings(affinity=parse_affinity(["cuda:0"]))})

    assert refused.value.message == ("the affinity `cuda:0` of `alpha` in spm.toml cannot be kept: this target has cpu")


def test_a_binding_of_what_is_not_installed_is_a_slip_of_the_pen(machine: Machine) -> None:
    machine.registry.publish("alpha")

    with machine.unchanged(), pytest.raises(UsageError) as refused:
        machine.install("alpha", bindings_of={BETA: Bindings(affinity=parse_affinity(["cpu"]))})

    assert refused.value.message == "spm.toml binds `beta`, which is not among what would be installed"


def with_unusable_variant(machine: Machine) -> str:
    """Publish a release with a build for this kind of machine that needs another torch; return the other's digest."""
    digest = machine.registry.publish("alpha", variant=Variant(accelerator="cpu"))
    release = machine.registry.shards["alpha"].releases[0]
    better = replace(
        release.variants[0],
        variant=Variant(accelerator="cpu", torch=Range.parse(">=99,<100")),
        manifest_sha256="ab" * 32,
    )
    shard = replace(
        machine.registry.shards["alpha"], releases=(replace(release, variants=(*release.variants, better)),)
    )
    machine.registry.list(shard)
    return digest


def test_a_fallback_that_the_lock_does_not_record_is_refused(machine: Machine) -> None:
    digest = with_unusable_variant(machine)

    with machine.unchanged(), pytest.raises(FallbackRefused) as refused:
        machine.install("alpha", locked={ALPHA: locked("1.0.0", digest)}, is_exact=True)

    assert refused.value.message.startswith("`alpha` 1.0.0 would fall back to the variant `cpu`, less specific than:\n")
    assert refused.value.context["accept"] == ["alpha"]


def test_a_fallback_that_the_lock_records_is_accepted_and_recorded(machine: Machine) -> None:
    wanted = {ALPHA: locked("1.0.0", with_unusable_variant(machine), fallback="alpha is a lesser one")}

    machine.install("alpha", locked=wanted, is_exact=True)

    assert machine.generation.plugins[0].fallback == "alpha is a lesser one"

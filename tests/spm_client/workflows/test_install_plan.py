"""What a dry run says is what the run then does; what is installed alone; and what a registry is asked for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from manifests.errors import SpmError, Unsatisfiable
from spm_client.cli.plan_text import plan_document, plan_lines
from spm_client.workflows.plan import Installed
from tests.spm_client.workflows.bundles import Machine

NAMES = ("alpha", "beta", "gamma", "delta")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "store")


def requests(machine: Machine) -> list[str]:
    """Return what the registry was asked for since it was last looked at, save for what a refresh always asks."""
    asked, machine.registry.asked = machine.registry.asked, []
    return [path for path in asked if not path.endswith(("timestamp.json", ".root.json"))]


@dataclass(frozen=True)
class Step:
    """What is published, damaged and wished for before one install."""

    published: tuple[tuple[str, tuple[str, ...]], ...]
    damaged: str | None
    wished: tuple[str, ...]
    no_deps: bool
    accepted: bool


steps = st.builds(
    Step,
    published=st.lists(
        st.tuples(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple)),
        max_size=3,
    ).map(tuple),
    damaged=st.sampled_from((None, *NAMES)),
    wished=st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(tuple),
    no_deps=st.booleans(),
    accepted=st.booleans(),
)


def publish(machine: Machine, published: Sequence[tuple[str, tuple[str, ...]]]) -> None:
    for name, requires in published:
        shard = machine.registry.shards.get(name)
        version = f"1.{len(shard.releases) if shard else 0}.0"
        machine.registry.publish(name, version, requires=[other for other in requires if other != name])


def attempt(machine: Machine, step: Step, *, is_dry_run: bool) -> Installed | SpmError:
    accepted = frozenset(step.wished) if step.accepted else frozenset()
    try:
        return machine.install(*step.wished, no_deps=step.no_deps, is_dry_run=is_dry_run, accept_fallback=accepted)
    except SpmError as refusal:
        return refusal


def document(outcome: Installed | SpmError) -> object:
    return outcome.to_dict() if isinstance(outcome, SpmError) else plan_document(outcome, is_dry_run=False)


@pytest.mark.property
# Without shrinking, which takes minutes at half a second a story.
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(st.lists(steps, min_size=1, max_size=4))
def test_a_dry_run_says_what_the_run_then_does(story: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        machine = Machine(Path(folder) / "store")
        publish(machine, [(name, ()) for name in NAMES])
        for step in story:
            publish(machine, step.published)
            for file in machine.root.glob(f"plugins/{step.damaged}/*/*.py"):
                file.unlink()

            with machine.unchanged():
                planned = attempt(machine, step, is_dry_run=True)
            before = machine.generation
            done = attempt(machine, step, is_dry_run=False)

            assert document(planned) == document(done)
            if isinstance(done, SpmError):
                assert machine.generation == before
            else:
                assert machine.generation == done.generation


def test_the_plan_of_a_dry_run_is_told_in_full(machine: Machine) -> None:
    machine.registry.publish("beta")
    machine.registry.publish("gamma")
    machine.install("gamma")
    machine.registry.publish("alpha", requires=["beta"])

    planned = machine.install("alpha", is_dry_run=True)

    keyid = machine.registry.keyid[:16]
    assert list(plan_lines(planned, is_dry_run=True)) == [
        "would be installed alpha 1.0.0 (ext)",
        f"           signed by {keyid}…",
        "would be installed beta 1.0.0 (ext), required by another plugin",
        f"           signed by {keyid}…",
        "37 B in 2 files would be downloaded; 1 plugin would stay unchanged",
    ]
    told = plan_document(planned, is_dry_run=True)
    assert told["download"] == {"blobs": 2, "bytes": 37}
    assert [(one["name"], one["action"], one["variant"]) for one in told["plugins"]] == [
        ("alpha", "installed", "any"),
        ("beta", "installed", "any"),
        ("gamma", "unchanged", "any"),
    ]


def test_the_column_of_what_would_be_done_is_as_wide_as_its_words(machine: Machine) -> None:
    for name, version in (("beta", "1.0.0"), ("beta", "1.1.0"), ("gamma", "1.0.0")):
        machine.registry.publish(name, version)
    machine.install("beta", "gamma")

    planned = machine.install("beta==1.0.0", "gamma", is_dry_run=True)

    assert list(plan_lines(planned, is_dry_run=True)) == [
        "would be downgraded beta 1.0.0 (ext), was 1.1.0",
        f"           signed by {machine.registry.keyid[:16]}…",
        "would be unchanged  gamma 1.0.0 (ext)",
        "18 B in 1 file would be downloaded; 1 plugin would stay unchanged",
    ]


def test_what_is_required_is_not_installed_along_where_that_was_not_wanted(machine: Machine) -> None:
    machine.registry.publish("beta")
    machine.registry.publish("alpha", requires=["beta"])
    machine.install("beta")
    machine.registry.publish("beta", "1.1.0")

    machine.install("alpha", no_deps=True)

    assert machine.installed == {"alpha": "1.0.0", "beta": "1.0.0"}
    machine.load("alpha")


def test_what_would_be_missing_is_named_and_nothing_installed(machine: Machine) -> None:
    machine.registry.publish("beta", "2.0.0")
    machine.registry.publish("gamma")
    machine.install("beta")
    machine.registry.publish("alpha", requires=["beta", "gamma"])

    with machine.unchanged(), pytest.raises(Unsatisfiable) as refused:
        machine.install("alpha", no_deps=True)

    assert refused.value.message == (
        "`--no-deps` installs nothing that is required: `alpha` 1.0.0 requires `beta` `^1.0`, and 2.0.0 is installed; "
        "`alpha` 1.0.0 requires `gamma` `^1.0`, which is not installed"
    )
    assert refused.value.hint == ("leave out `--no-deps`, which installs what is required too, or install that first")
    assert refused.value.context == {
        "missing": [
            {"name": "beta", "range": "^1.0", "installed": "2.0.0"},
            {"name": "gamma", "range": "^1.0", "installed": None},
        ]
    }


def test_a_release_that_an_installed_plugin_cannot_use_is_not_installed_alone(machine: Machine) -> None:
    machine.registry.publish("beta")
    machine.registry.publish("alpha", requires=["beta"])
    machine.install("alpha")
    machine.registry.publish("beta", "2.0.0")

    with machine.unchanged(), pytest.raises(Unsatisfiable) as refused:
        machine.install("beta", no_deps=True)

    assert refused.value.message == (
        "`--no-deps` installs nothing that is required: "
        "the installed `alpha` 1.0.0 requires `beta` `^1.0`, and not 2.0.0"
    )


def test_two_that_require_each_other_may_be_installed_alone_together(machine: Machine) -> None:
    machine.registry.publish("beta")
    machine.registry.publish("alpha", requires=["beta"])

    machine.install("alpha", "beta", no_deps=True)

    assert machine.installed == {"alpha": "1.0.0", "beta": "1.0.0"}


def test_a_manifest_that_the_store_has_is_not_fetched_again(machine: Machine) -> None:
    machine.registry.publish("alpha")
    machine.install("alpha")
    requests(machine)

    machine.install("alpha")

    assert requests(machine) == []


@pytest.mark.parametrize("kept", ["manifest.json", "manifest.jws"])
def test_a_kept_manifest_that_does_not_verify_is_fetched_and_laid_out_anew(machine: Machine, kept: str) -> None:
    digest = machine.registry.publish("alpha")
    machine.install("alpha")
    place = machine.layout.manifest(digest) / kept
    place.write_bytes(place.read_bytes()[:-1] + b"?")
    requests(machine)

    done = machine.install("alpha")

    assert f"/v1/manifests/{digest}" in requests(machine)
    assert done.repaired == {"alpha"}
    machine.load("alpha")


def test_a_kept_manifest_of_a_revoked_key_is_refused(machine: Machine) -> None:
    machine.registry.publish("alpha")
    machine.install("alpha")
    machine.registry.revoke_key()

    with machine.unchanged(), pytest.raises(SpmError) as refused:
        machine.install("alpha")

    assert refused.value.reason == "key-revoked"


def test_what_will_be_asked_for_is_asked_for_once_and_no_more(machine: Machine) -> None:
    for name in NAMES:
        machine.registry.publish(name)

    machine.install(*NAMES)

    asked = requests(machine)
    assert len(asked) == len(set(asked))
    machine.install(*NAMES)
    assert requests(machine) == []


def test_the_first_refusal_in_order_is_the_one_that_is_told(machine: Machine) -> None:
    digests = [machine.registry.publish(name) for name in NAMES]
    for digest in digests[1:]:
        machine.registry.documents[f"/v1/manifests/{digest}/manifest.jws"] = b"no token"

    with machine.unchanged(), pytest.raises(SpmError) as refused:
        machine.install(*NAMES)

    assert refused.value.message.startswith("`beta` 1.0.0 is refused: ")

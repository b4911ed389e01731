"""What spm.lock says is believed in nothing: facts, fallbacks and keys are judged anew by who knows them."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from manifests.errors import (
    ArtifactRevoked,
    FallbackRefused,
    KeyRevoked,
    KeyUnknown,
    LimitReached,
    LockDrift,
    SpmError,
    Undecided,
)
from spm_client.workflows.project import require_undrifted
from spm_client.workflows.relock import require_current
from tests.spm_client.adapters.threads import NO_THREAD, let_begin
from tests.spm_client.workflows.team_project import CPU, GPU, TeamProject
from tests.spm_client.workflows.test_lock import CUDA, published, refusal

ACCEPTED = 'gamma = { range = "^1.0", accept-fallback = true }'
WORDS = (
    "gamma 1.0.0 was accepted as a fallback: 1.1.0 has no variant for it: `linux-cuda-sm_86` is built for cuda, "
    "and the target has no cuda device"
)
Plugin = dict[str, Any]


@pytest.fixture
def project(tmp_path: Path) -> TeamProject:
    made = TeamProject(tmp_path)
    made.publish("beta", "1.0.0")
    made.publish("beta", "1.1.0")
    made.publish("alpha", "1.0.0", requires={"beta": "^1.0"})
    made.publish("gamma", "1.0.0")
    made.publish("gamma", "1.1.0", variants=[CUDA])
    made.write('alpha = "^1.0"')
    made.lock()
    return made


def edit(project: TeamProject, change: Callable[[list[Plugin]], None]) -> bytes:
    """Change spm.lock by hand; return what it was."""
    path = project.folder / "spm.lock"
    before = path.read_bytes()
    value = json.loads(before)
    change(value["plugins"])
    path.write_text(json.dumps(value))
    return before


def current(project: TeamProject) -> None:
    require_current(project.open(), project.asker())


def facts(plugins: list[Plugin]) -> None:
    (variant,) = plugins[0]["variants"]
    plugins[0]["type"] = "core"
    plugins[0]["requires"] = {"beta": "*"}
    variant |= {"tag": "evil", "manifest_size": 1, "blobs_size": 7, "keyids": ["0" * 64]}


def test_each_fact_that_was_changed_by_hand_is_told_and_mended(project: TeamProject) -> None:
    before = edit(project, facts)
    alpha = json.loads(before)["plugins"][0]["variants"][0]
    path = f"variants.{alpha['manifest_sha256'][:12]}"

    with project.unchanged():
        refused = refusal(lambda: current(project), LockDrift)
    project.lock()

    assert refused.message == (
        "spm.lock is not what it would be if it were written now:\n"
        "  `alpha` 1.0.0: `requires.beta` is `*` in spm.lock, and would be `^1.0`\n"
        "  `alpha` 1.0.0: `type` is `core` in spm.lock, and would be `ext`\n"
        f"  `alpha` 1.0.0: `{path}.blobs_size` is `7` in spm.lock, and would be `{alpha['blobs_size']}`\n"
        f"  `alpha` 1.0.0: `{path}.keyids` is `{'0' * 64}` in spm.lock, and would be `{project.registry.keyid}`\n"
        f"  `alpha` 1.0.0: `{path}.manifest_size` is `1` in spm.lock, and would be `{alpha['manifest_size']}`\n"
        f"  `alpha` 1.0.0: `{path}.tag` is `evil` in spm.lock, and would be `any`"
    )
    assert (project.folder / "spm.lock").read_bytes() == before


def test_a_plugin_that_nothing_requires_is_a_drift_that_needs_no_network(project: TeamProject) -> None:
    before = edit(project, lambda plugins: plugins.append({**plugins[1], "name": "idle"}))
    project.registry.asked.clear()

    with project.unchanged():
        refused = refusal(lambda: require_undrifted(project.open()), LockDrift)
    assert project.registry.asked == []
    project.lock()

    assert refused.context["differences"] == ["spm.lock has `idle` 1.1.0 for the target `cpu`, and nothing requires it"]
    assert (project.folder / "spm.lock").read_bytes() == before


def test_a_fallback_that_was_made_up_is_a_drift_and_leaves(project: TeamProject) -> None:
    before = edit(project, lambda plugins: plugins[1]["targets"]["cpu"].update(fallback="made up"))

    with project.unchanged():
        refused = refusal(lambda: current(project), LockDrift)
    project.lock()

    assert refused.context["differences"] == [
        "spm.lock records a fallback of `beta` 1.1.0 for the target `cpu`, and spm.toml accepts none of it"
    ]
    assert (project.folder / "spm.lock").read_bytes() == before


def test_a_fallback_that_was_made_up_for_what_may_be_one_is_a_drift_and_leaves(project: TeamProject) -> None:
    project.write('beta = { range = "^1.0", accept-fallback = true }')
    project.lock()
    before = edit(project, lambda plugins: plugins[0]["targets"]["cpu"].update(fallback="made up"))

    with project.unchanged():
        refused = refusal(lambda: current(project), LockDrift)
    project.lock()

    assert refused.context["differences"] == [
        "`beta` 1.1.0: `targets.cpu.fallback` is `made up` in spm.lock, and would be not there"
    ]
    assert (project.folder / "spm.lock").read_bytes() == before


def test_other_words_for_a_fallback_are_a_drift(project: TeamProject) -> None:
    project.write(ACCEPTED)
    project.lock()
    before = edit(project, lambda plugins: plugins[0]["targets"]["cpu"].update(fallback="gamma is fine"))

    with project.unchanged():
        refused = refusal(lambda: current(project), LockDrift)
    project.lock()

    assert refused.context["differences"] == [
        f"`gamma` 1.0.0: `targets.cpu.fallback` is `gamma is fine` in spm.lock, and would be `{WORDS}`"
    ]
    assert (project.folder / "spm.lock").read_bytes() == before


@pytest.mark.parametrize("variants", [[CUDA], [None]])
def test_a_fallback_stays_in_its_words_when_something_newer_comes(project: TeamProject, variants: list[Any]) -> None:
    project.write(ACCEPTED)
    project.lock()
    before = (project.folder / "spm.lock").read_bytes()
    project.publish("gamma", "1.2.0", variants=variants)

    current(project)
    project.lock()

    assert (project.folder / "spm.lock").read_bytes() == before


def test_a_fallback_leaves_when_what_was_passed_over_is_gone(project: TeamProject) -> None:
    project.write(ACCEPTED)
    project.lock()
    project.yank("gamma", "1.1.0", "it never worked")

    refused = refusal(lambda: current(project), LockDrift)
    project.lock()

    assert refused.context["differences"] == [
        f"`gamma` 1.0.0: `targets.cpu.fallback` is `{WORDS}` in spm.lock, and would be not there"
    ]
    assert [pin.fallback for plugin in project.locked.plugins for _, pin in plugin.targets] == [None]


def test_consent_that_is_withdrawn_is_asked_for_again_whatever_the_lock_says(project: TeamProject) -> None:
    project.publish("delta", variants=[CUDA, None])
    old = replace(GPU, devices=(GPU.devices[0], replace(GPU.devices[1], sm="sm_75")))
    project.write('delta = { range = "*", accept-fallback = true }', gpu=old)
    project.lock()
    edit(project, lambda plugins: plugins[0]["targets"]["gpu"].pop("fallback"))
    project.write('delta = "*"', gpu=old)

    with project.unchanged():
        refusal(project.lock, FallbackRefused)


def revoke_manifest(project: TeamProject) -> None:
    (variant,) = project.registry.shards["beta"].releases[1].variants
    project.registry.revoke_manifest(variant.manifest_sha256)


def revoke_key(project: TeamProject) -> None:
    project.registry.revoke_key()


def remove_key(project: TeamProject) -> None:
    conf = project.root / "loader.conf"
    conf.write_text(re.sub(r"\[\[ext\]\].*", "", conf.read_text(), flags=re.DOTALL))


@pytest.mark.parametrize(
    ("change", "kind", "names"),
    [
        (revoke_manifest, ArtifactRevoked, ["beta"]),
        (revoke_key, KeyRevoked, ["alpha", "beta"]),
        (remove_key, KeyUnknown, ["alpha", "beta"]),
    ],
)
def test_what_is_no_longer_trusted_stays_with_a_warning_and_is_not_current(
    project: TeamProject, change: Callable[[TeamProject], None], kind: type[SpmError], names: list[str]
) -> None:
    before = (project.folder / "spm.lock").read_bytes()
    change(project)

    relocked = project.lock()
    with project.unchanged():
        refused = refusal(lambda: current(project), kind)
        upgraded = refusal(lambda: project.lock("beta", is_dry_run=True), kind)
        everything = refusal(lambda: project.lock(freed=None, is_dry_run=True), kind)

    assert [(name, str(version), type(why)) for name, version, why in relocked.distrusted] == [
        (name, {"alpha": "1.0.0", "beta": "1.1.0"}[name], kind) for name in names
    ]
    assert (project.folder / "spm.lock").read_bytes() == before
    assert refused.message == everything.message == str(relocked.distrusted[0][2].message)
    assert upgraded.message.startswith("`beta` 1.1.0 is refused: ")


def test_a_retired_key_keeps_what_it_signed_before(project: TeamProject) -> None:
    before = (project.folder / "spm.lock").read_bytes()
    project.registry.revoke_key(since="2026-06-01T00:00:00Z")

    relocked = project.lock()

    assert (relocked.distrusted, (project.folder / "spm.lock").read_bytes()) == ((), before)


def test_what_is_kept_and_in_good_standing_is_not_fetched_again(project: TeamProject) -> None:
    project.registry.asked.clear()

    project.lock()

    assert [path for path in project.registry.asked if path.startswith("/v1/manifests/")] == []


def test_what_is_locked_beyond_the_bound_is_told_and_not_current(project: TeamProject) -> None:
    published(project, "alpha", v1_0_0="2026-01-01T12:00:00Z")
    published(project, "beta", v1_0_0="2026-01-01T12:00:00Z", v1_1_0="2026-02-01T00:00:00Z")
    project.trust("anew")

    relocked = project.lock(exclude_newer="2026-01-31T23:59:59Z", store="anew")
    with project.unchanged():
        refused = refusal(lambda: require_current(project.open(), project.asker("anew")), LockDrift)

    assert [(name, str(version), at) for name, version, at in relocked.beyond] == [
        ("beta", "1.1.0", "2026-02-01T00:00:00Z")
    ]
    assert refused.context["differences"] == [
        "`beta` 1.1.0 was published at 2026-02-01T00:00:00Z, after the bound 2026-01-31T23:59:59Z"
    ]
    assert relocked.bound_option == " --exclude-newer 2026-01-31T23:59:59Z"
    assert refused.hint == "`spm upgrade beta --exclude-newer 2026-01-31T23:59:59Z` takes what was there then"
    project.lock("beta", exclude_newer="2026-01-31T23:59:59Z", store="anew")
    require_current(project.open(), project.asker("anew"))
    assert project.versions()["beta"] == "1.0.0"


def test_a_bound_of_spm_toml_is_not_spoken_of_as_a_flag(project: TeamProject) -> None:
    project.write('epsilon = "*"', more='\n[resolution]\nexclude-newer = "2026-01-31"\n')
    project.publish("epsilon")

    with project.unchanged():
        refused = refusal(project.lock, Undecided)

    assert "--exclude-newer" not in refused.message + refused.hint
    assert refused.hint == "leave `exclude-newer` in spm.toml away, or ask for a release by its version"


def test_threads_that_cannot_be_started_are_a_limit(project: TeamProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write('alpha = "^1.0"\ngamma = "==1.0.0"')

    let_begin(monkeypatch, 0, "at-once-")

    with project.unchanged():
        refused = refusal(project.lock, LimitReached)

    assert refused.reason == "limit:threads"
    assert (refused.message, refused.hint) == NO_THREAD


def test_an_upgrade_that_would_fall_back_names_itself_in_the_hint(project: TeamProject) -> None:
    project.write(ACCEPTED, cpu=CPU)
    project.lock()
    project.write('gamma = "^1.0"')

    refused = refusal(lambda: project.lock("gamma"), FallbackRefused)
    everything = refusal(lambda: project.lock(freed=None), FallbackRefused)

    told = "accepts that; it is written to spm.toml and shown ever after"
    assert refused.hint == f"`spm upgrade gamma --accept-fallback gamma` {told}"
    assert everything.hint == f"`spm upgrade --accept-fallback gamma` {told}"

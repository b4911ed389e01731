"""The waste traps and device bindings, on this host and on a host that a file describes."""

import json
from pathlib import Path

import pytest

from tests.e2e.commands import Client
from tests.e2e.snapshots import unchanged

pytestmark = pytest.mark.e2e

OPEN_RANGE = "has no upper bound in `seedance_version: >=2.0`, so what it was never tested with may be taken"
UNBATCHED = "has no batch policy, so calls that wait together are run one by one"


@pytest.fixture
def accelerated(client: Client, tmp_path: Path) -> Path:
    """Give the description of this host with two GPUs and a driver."""
    target = client.spm("target", "probe").ok().document
    target["devices"] += [
        {"id": f"cuda:{place}", "name": "NVIDIA H200", "sm": "sm_90", "memory_bytes": 150 << 30} for place in (0, 1)
    ]
    target["driver"] = "580.65"
    path = tmp_path / "target.json"
    path.write_text(json.dumps(target))
    return path


def messages(client: Client, *arguments: str | Path) -> tuple[int, list[tuple[str, str, str]]]:
    answer = client.spm("verify", "--strict", "--report-json", *arguments)
    found = [(trap["trap"], trap["message"], trap["remedy"]) for trap in answer.document["waste_traps"]]
    return answer.code, found


def test_all_three_traps_of_a_wasteful_plugin_are_reported_for_this_host(client: Client) -> None:
    client.spm("install", "idle")

    with unchanged(client.home):
        answer = client.spm("verify", "--strict", "--report-json")

    assert messages(client) == (
        11,
        [
            (
                "affinity-unbound",
                "`idle` 1.0.0 names `npu:7`, which this target does not have",
                "spm install idle==1.0.0 --affinity=cpu",
            ),
            ("range-unbounded", f"`idle` 1.0.0 {OPEN_RANGE}", "spm uninstall idle"),
            ("batch-policy-missing", f"`idle` 1.0.0 {UNBATCHED}", "spm install idle==1.0.0 --batch-policy=adaptive"),
        ],
    )
    assert answer.document["error"] == {
        "exit": 11,
        "reason": "affinity-unbound",
        "message": "3 waste traps in `idle`",
        "hint": "spm install idle==1.0.0 --affinity=cpu",
        "context": {"traps": ["affinity-unbound", "range-unbounded", "batch-policy-missing"]},
    }


def test_the_traps_are_told_but_not_refused_without_strict(client: Client) -> None:
    client.spm("install", "idle")

    answer = client.spm("verify")

    assert answer.code == 0
    assert len(answer.document["waste_traps"]) == 3


def test_a_plugin_that_names_no_device_wastes_a_host_with_several_accelerators_only(
    client: Client, accelerated: Path
) -> None:
    client.spm("install", "free").ok()

    assert messages(client) == (0, [])
    with unchanged(client.home):
        assert messages(client, "--target", accelerated) == (
            11,
            [
                (
                    "affinity-unbound",
                    "`free` 1.0.0 names no device, and this target has several accelerators: cuda:0, cuda:1",
                    f"spm install free==1.0.0 --affinity=cuda:0 --target {accelerated}",
                )
            ],
        )


def test_the_remedy_of_a_trap_mends_it(client: Client, accelerated: Path) -> None:
    client.spm("install", "free").ok()
    _, [(_, _, remedy)] = messages(client, "--target", accelerated)

    client.spm(*remedy.removeprefix("spm ").split()).ok()

    assert messages(client, "--target", accelerated) == (0, [])
    assert client.told("list").ok().out == (
        "NAME  VERSION  CLASS  BOUND TO  BATCH  WANTED BY\nfree  1.0.0    ext    cuda:0    -      you\n"
    )


def test_a_wasteful_plugin_is_not_installed_under_strict(client: Client) -> None:
    with unchanged(client.home):
        refusal = client.spm("install", "idle", "--strict")

    context = refusal.refused(
        11,
        "affinity-unbound",
        "`idle` 1.0.0 names `npu:7`, which this target does not have; "
        f"`idle` 1.0.0 {OPEN_RANGE}; `idle` 1.0.0 {UNBATCHED}",
        "spm install idle==1.0.0 --affinity=cpu",
    )
    assert [trap["trap"] for trap in context["waste_traps"]] == [
        "affinity-unbound",
        "range-unbounded",
        "batch-policy-missing",
    ]


def test_a_binding_to_a_device_that_is_not_there_is_refused(client: Client) -> None:
    with unchanged(client.home):
        refusal = client.spm("install", "beta", "--affinity", "cuda:0")

    context = refusal.refused(
        12,
        "device",
        "`--affinity=cuda:0` cannot be kept: this target has cpu",
        "bind it to a device that is there, or name the right target with `--target`",
    )
    assert context == {"affinity": "cuda:0"}


@pytest.mark.parametrize(
    ("content", "reason", "message"),
    [
        (None, "usage", "the target `{path}` cannot be read: No such file or directory"),
        (
            "",
            "usage",
            "the target `{path}` is not JSON: Expecting value: line 1 column 1 (char 0)",
        ),
    ],
)
def test_a_target_that_cannot_be_read_is_refused(
    client: Client, tmp_path: Path, content: str | None, reason: str, message: str
) -> None:
    path = tmp_path / "target.json"
    if content is not None:
        path.write_text(content)

    with unchanged(client.home):
        refusal = client.spm("verify", "--target", path)

    refusal.refused(2, reason, message.format(path=path))


def test_bindings_of_two_remedies_stand_together_and_can_be_dropped(client: Client) -> None:
    assert client.spm("install", "idle==1.0.0", "--affinity=cpu").code == 0
    assert client.spm("install", "idle==1.0.0", "--batch-policy=adaptive").code == 0
    both = client.told("list").out.splitlines()[1].split()

    assert client.spm("install", "idle", "--unbind").code == 0

    assert both == ["idle", "1.0.0", "ext", "cpu", "adaptive", "you"]
    assert client.told("list").out.splitlines()[1].split() == ["idle", "1.0.0", "ext", "-", "-", "you"]


def test_a_binding_outside_the_signed_affinity_is_refused(client: Client, accelerated: Path) -> None:
    with unchanged(client.home):
        refusal = client.spm("install", "beta", "--affinity=cuda:0", "--target", accelerated)

    context = refusal.refused(
        12,
        "device",
        "`beta` 1.1.0 cannot be bound to `cuda:0`: its author names only `cpu`",
        "bind it to one of those, or ask its publisher for a release that names more",
    )
    assert context == {"affinity": "cuda:0", "devices": ["cuda:0"]}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "--affinity=",
            "'' is not a device: write `cpu`, `cuda`, `cuda:0`, `cuda:sm_86`, `npu`, `npu:0`, `xpu` or `mps`",
        ),
        ("--batch-policy=", "batch_policy is '', not one of `adaptive`, `static`, `none`"),
    ],
)
def test_an_empty_binding_is_refused(client: Client, option: str, message: str) -> None:
    with unchanged(client.home):
        refusal = client.spm("install", "beta", option)

    refusal.refused(2, "usage", message)

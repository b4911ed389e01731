"""Options of an install with the real commands: alone, up to a day, for one architecture, and planned first."""

import json

import pytest

from tests.e2e.commands import Client
from tests.e2e.snapshots import unchanged

pytestmark = pytest.mark.e2e

TOLD = {"action", "variant", "before", "changed", "yanked", "once_yanked"}
"""What the plan says of a plugin beyond what the generation keeps of it."""


def test_the_plan_of_a_dry_run_is_what_the_run_does(client: Client) -> None:
    """Each command is planned, then carried out: new, another release, a damaged tree, a binding, a fallback."""
    commands = [
        ("alpha==1.0.0", "beta==1.0.0"),
        ("alpha", "heavy"),
        ("delta", "--accept-fallback", "delta"),
        ("alpha",),
        ("idle", "--affinity", "cpu"),
        ("beta==1.0.0", "--no-deps"),
    ]
    for command in commands:
        if command == ("alpha",):
            (client.tree("alpha", "2.0.0") / "alpha.py").unlink()
        with unchanged(client.home):
            planned = client.spm("install", *command, "--dry-run")
        done = client.spm("install", *command)

        assert (planned.code, planned.err) == (done.code, done.err) == (0, done.err)
        assert planned.document.pop("dry_run") is True
        assert planned.document | {"dry_run": False} == done.document
        generation = client.store / "generations" / f"{done.document['generation']:06d}.json"
        committed = json.loads(generation.read_text())["plugins"]
        assert committed == [
            {name: value for name, value in one.items() if name not in TOLD} for one in done.document["plugins"]
        ]


def test_the_plan_says_what_is_fetched_from_which_variant_and_who_signed_it(client: Client) -> None:
    client.spm("install", "beta").ok()

    planned = client.told("install", "heavy", "--dry-run").ok().out
    told = client.spm("install", "heavy", "--dry-run").ok().document

    (keyid,) = told["plugins"][1]["keyids"]
    assert planned == (
        f"would be installed heavy 1.0.0 (ext)\n           signed by {keyid[:16]}…\n"
        "3.0 MiB in 2 files would be downloaded; 1 plugin would stay unchanged\n"
    )
    assert told["download"] == {"blobs": 2, "bytes": 3_145_839}
    assert [(one["name"], one["action"], one["variant"]) for one in told["plugins"]] == [
        ("beta", "unchanged", "any"),
        ("heavy", "installed", "any"),
    ]


def test_a_refusal_is_the_same_of_the_plan_and_of_the_run(client: Client) -> None:
    for command in (("delta",), ("alpha", "--no-deps"), ("alpha", "--exclude-newer", "soon"), ("gone",)):
        with unchanged(client.home):
            planned = client.spm("install", *command, "--dry-run")
            done = client.spm("install", *command)

        assert (planned.code, planned.document) == (done.code, done.document)
        assert done.code != 0


def test_what_an_install_alone_would_lack_is_named(client: Client) -> None:
    with unchanged(client.home):
        answer = client.spm("install", "alpha", "--no-deps")

    context = answer.refused(
        10,
        "unsatisfiable",
        "`--no-deps` installs nothing that is required: `alpha` 2.0.0 requires `beta` `^1.0`, which is not installed",
        "leave out `--no-deps`, which installs what is required too, or install that first",
    )
    assert context == {"missing": [{"name": "beta", "range": "^1.0", "installed": None}]}


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            ("--exclude-newer", "soon"),
            "'soon' is neither a day nor a moment",
            "write `--exclude-newer 2026-01-31`, or with time and zone `--exclude-newer 2026-01-31T12:00:00Z`",
        ),
        (("--force-arch=86",), "'86' is not an architecture", "write it as builds do: `--force-arch=sm_86`"),
    ],
)
def test_a_bound_that_is_none_is_refused_before_anything_is_asked(
    client: Client, words: tuple[str, ...], message: str, hint: str
) -> None:
    with unchanged(client.home):
        answer = client.spm("install", "alpha", *words)

    answer.refused(2, "usage", message, hint)


def test_the_json_of_a_run_is_one_document(client: Client) -> None:
    answer = client.spm("install", "beta").ok()

    assert list(json.loads(answer.out)) == [
        "generation",
        "dry_run",
        "plugins",
        "repaired",
        "removed",
        "download",
        "waste_traps",
        "refused",
    ]

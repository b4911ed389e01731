"""spm.toml as a value: what it may say, and every problem at once with its path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.devices import parse_affinity
from manifests.errors import ConfigSyntax, TooBig, TypeMismatch
from manifests.project import MAX_PROJECT_BYTES, Project, read_moment_or_day
from tests.manifests.builders import UNHURRIED, holds_or_refuses, hostile, refused, with_one_hostile_value

WHOLE = """
[project]
name = "speech"
registry = "team.example"

[requirements]
alpha = "^1.0"
audio-encoder = { range = ">=2,<3", pre = true, registry = "other.example", affinity = ["cuda:0", "cpu"], \
batch-policy = "adaptive", accept-fallback = true }

[targets]
workstation = "targets/workstation.json"
laptop = "laptop.json"

[resolution]
exclude-newer = "2026-01-31"
pre = ["beta"]
accept-fallback = ["gamma", "delta"]
"""
LEAST = '[project]\nname = "speech"\n[targets]\nhere = "here.json"\n'


def test_whole_document_is_read() -> None:
    project = Project.from_text(WHOLE)

    assert (project.name, project.registry) == ("speech", "team.example")
    assert project.targets == (("laptop", "laptop.json"), ("workstation", "targets/workstation.json"))
    alpha, encoder = project.requirements
    assert (alpha.name, alpha.to_dict()) == ("alpha", {"range": "^1.0"})
    assert encoder.bindings.affinity == parse_affinity(["cuda:0", "cpu"])
    assert encoder.to_dict() == {
        "range": ">=2,<3",
        "registry": "other.example",
        "pre": True,
        "accept-fallback": True,
        "affinity": ["cuda:0", "cpu"],
        "batch-policy": "adaptive",
    }
    assert project.exclude_newer == "2026-01-31T23:59:59Z"
    assert (sorted(project.pre), sorted(project.accept_fallback)) == (["beta"], ["delta", "gamma"])


def test_a_name_and_a_target_are_enough() -> None:
    project = Project.from_text(LEAST)

    assert (project.requirements, project.registry, project.exclude_newer) == ((), None, None)
    assert project.find("alpha") is None


def test_every_problem_is_told_at_once_with_its_path() -> None:
    text = """
[project]
nam = "speech"
[requirements]
Alpha_One = "^1"
beta = 1
gamma = "1.2"
delta = { range = "*", pre = "yes", size = 1 }
epsilon = { affinity = ["gpu"], batch-policy = "auto" }
[targets]
gpu = "../gpu.json"
GPU = "gpu.json"
[resolution]
exclude-newer = 2026-01-31
pre = ["Beta"]
[tool]
"""

    assert refused(lambda: Project.from_text(text), TypeMismatch) == (
        "spm.toml is refused: `project.name` is missing; "
        "`requirements.Alpha_One`: 'Alpha_One' is not a plugin name: names are lower-case words of a-z and 0-9 joined "
        "by single hyphens, 64 characters at most (write `alpha-one`); "
        "`requirements.beta`: '1' is neither a range in quotes nor a table with `range`; "
        "`requirements.delta.pre`: 'yes' is neither true nor false; "
        "`requirements.delta.size` is not a known member; "
        "`requirements.epsilon.range` is missing; "
        "`requirements.epsilon.affinity`: 'gpu' is not a device: write `cpu`, `cuda`, `cuda:0`, `cuda:sm_86`, `npu`, "
        "`npu:0`, `xpu` or `mps`; "
        "`requirements.epsilon.batch-policy`: batch_policy is 'auto', not one of `adaptive`, `static`, `none`; "
        "`requirements.gamma.range`: the range '1.2' has the bare number `1.2`, which would have to be interpreted "
        "(write `==1.2.0`, `~1.2` or `>=1.2,<2`); "
        "`targets.GPU`: 'GPU' is not a target's name: 1 to 64 of a-z, 0-9, `.`, `_` and `-`; "
        "`targets.gpu`: the path '../gpu.json' is refused: each part is 1 to 200 characters of A-Z a-z 0-9 . _ + - "
        "and is neither `.` nor `..`; "
        "`resolution.exclude-newer`: '2026-01-31' is not a day or a moment of the calendar (write \"2026-01-31\" (to "
        'the end of that day, UTC) or "2026-01-31T12:00:00Z", in quotes); '
        "`resolution.pre`: 'Beta' is not a plugin name: names are lower-case words of a-z and 0-9 joined by single "
        "hyphens, 64 characters at most (write `beta`); "
        "`project.nam` is not a known member; `tool` is not a known member"
    )


def test_a_project_without_a_target_is_told_how_to_get_one() -> None:
    assert refused(lambda: Project.from_text('[project]\nname = "a"\n'), TypeMismatch) == (
        'spm.toml is refused: `targets` names none: write `NAME = "FILE.json"`, as `spm target probe` makes FILE'
    )


def test_what_is_no_toml_is_refused() -> None:
    assert refused(lambda: Project.from_text("[project\n"), ConfigSyntax) == (
        "spm.toml is not TOML: Expected ']' at the end of a table declaration (at line 1, column 9)"
    )


def test_bounds_are_kept() -> None:
    many = "".join(f'a{place} = "*"\n' for place in range(1025))

    assert refused(lambda: Project.from_text("#" * (MAX_PROJECT_BYTES + 1)), TooBig) == (
        "spm.toml has more than the 1048576 characters allowed"
    )
    assert "`requirements` is not a table of at most 1024 members" in refused(
        lambda: Project.from_text(f"{LEAST}[requirements]\n{many}"), TypeMismatch
    )


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31", "2026-01-31T23:59:59Z"),
        ("2024-02-29", "2024-02-29T23:59:59Z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
    ],
)
def test_a_day_means_its_last_second(text: str, moment: str) -> None:
    assert read_moment_or_day(text) == moment


@pytest.mark.parametrize("text", ["2026-02-29", "2026-1-1", "yesterday", "2026-01-31T12:00:00+01:00", "", 3, None])
def test_another_spelling_of_a_day_is_refused(text: object) -> None:
    assert refused(lambda: read_moment_or_day(text)) == (f"{str(text)[:40]!r} is not a day or a moment of the calendar")


@pytest.mark.property
@UNHURRIED
@given(
    with_one_hostile_value(
        {
            "project": {"name": "speech", "registry": "team.example"},
            "requirements": {"alpha": "^1", "beta": {"range": "*", "pre": True, "affinity": ["cpu"]}},
            "targets": {"here": "here.json"},
            "resolution": {"exclude-newer": "2026-01-31", "pre": ["beta"]},
        }
    )
    | st.dictionaries(st.sampled_from(["project", "requirements", "targets", "resolution"]), hostile)
)
def test_a_hostile_document_is_read_or_refused_in_short(value: object) -> None:
    holds_or_refuses(lambda: Project.from_dict(value))


@pytest.mark.parametrize("number", ["1" * 5000, "0x" + "f" * 5000, "9223372036854775808"])
def test_a_number_without_end_is_refused(number: str) -> None:
    assert refused(lambda: Project.from_text(f"x = [{{a = {number}}}]\n"), ConfigSyntax) == (
        "spm.toml is not TOML: it has an integer of more than 64 bits"
    )

"""What a misspelt name may have meant, of what is installed; no registry is asked."""

from typing import Any

import pytest

from manifests.errors import NotFound
from spm_client.workflows.near import listed, nearest_of, not_installed, suggesting_installed

INSTALLED = ("mel", "log-mel", "video-mixer")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("mell", ("mel",)),
        ("logmel", ("log-mel", "mel")),
        ("video-miser", ("video-mixer",)),
        ("mel", ()),
        ("attention", ()),
    ],
)
def test_the_nearest_installed_names_come_first(name: str, near: tuple[str, ...]) -> None:
    assert nearest_of(name, INSTALLED) == near


def test_names_are_listed_as_a_question_lists_them() -> None:
    assert listed(("a", "b", "c")) == "`a`, `b` or `c`"


@pytest.mark.parametrize(
    ("name", "hint", "context"),
    [
        ("mell", "did you mean `mel`?", {"name": "mell", "near": ["mel"]}),
        ("attention", "`spm list` shows what is", {"name": "attention"}),
    ],
)
def test_what_is_not_installed_is_refused_with_what_is_near(name: str, hint: str, context: dict[str, object]) -> None:
    refusal = not_installed(name, INSTALLED)

    assert (refusal.message, refusal.hint) == (f"`{name}` is not installed", hint)
    assert refusal.context == context


@pytest.mark.parametrize(
    ("hint", "context", "expected"),
    [
        ("install it", {"plugin": "mell"}, "did you mean `mel`?"),
        ("check the spelling", {"name": "mell", "registry": "team.example"}, "did you mean `mel`?"),
        ("see `spm info mell`", {}, "see `spm info mell`; or did you mean `mel`?"),
        ("", {}, "did you mean `mel`?"),
        ("check the spelling", {"name": "other"}, "check the spelling"),
        ("did you mean `bell`?", {"name": "mell", "near": ["bell"]}, "did you mean `bell`?"),
    ],
)
def test_a_refusal_of_a_misspelt_name_says_which_installed_ones_are_near(
    hint: str, context: dict[str, Any], expected: str
) -> None:
    refusal = NotFound("it is not there", hint=hint, **context)

    with pytest.raises(NotFound), suggesting_installed("mell", lambda: INSTALLED):
        raise refusal

    assert refusal.hint == expected


def test_what_is_installed_is_not_read_where_nothing_is_refused() -> None:
    def read() -> list[str]:
        raise AssertionError

    with suggesting_installed("mell", read):
        pass

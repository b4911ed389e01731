"""The grammar of names, and names that could be taken for each other."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.errors import UsageError
from manifests.names import confusable_key, fold, parse_name
from tests.manifests.builders import UNHURRIED, names, refused


@pytest.mark.parametrize("text", ["a", "0", "log-mel", "a1-b2-3", "a" * 64])
def test_lower_case_words_joined_by_hyphens_are_a_name(text: str) -> None:
    assert parse_name(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "-a", "a-", "a--b", "Log", "a_b", "a.b", "a b", "a\n", "\na", "é", "a\u0301", "٣", "²", "a/b", "..", "a\x00"],
)
def test_other_spelling_is_refused_with_its_text(text: str) -> None:
    expected = (
        f"{text!r} is not a plugin name: names are lower-case words of a-z and 0-9 joined by single hyphens, "
        "64 characters at most"
    )

    assert refused(lambda: parse_name(text), UsageError) == expected


@pytest.mark.parametrize("value", [None, True, 7, ["a"], {"a": 1}, b"a"])
def test_what_is_no_text_is_no_name(value: str) -> None:
    assert refused(lambda: parse_name(value), UsageError).startswith(f"{value!r} is not a plugin name: ")


def test_long_text_is_cut_in_message_and_context() -> None:
    with pytest.raises(UsageError) as caught:
        parse_name("a" * 1_000_000)

    assert len(caught.value.message) < 250
    assert caught.value.context == {"name": "a" * 65}


@pytest.mark.parametrize(("query", "name"), [("Log_Mel", "log-mel"), ("log.mel", "log-mel"), ("A1", "a1")])
def test_query_folds_case_underscores_and_dots(query: str, name: str) -> None:
    assert fold(query) == name


@pytest.mark.parametrize(
    ("one", "other"),
    [("log-mel", "logmel"), ("log-mel", "l0g-mel"), ("fill", "f1ll"), ("fill", "fiil"), ("s5", "ss"), ("a-b", "ab")],
)
def test_names_that_look_alike_share_a_key(one: str, other: str) -> None:
    assert confusable_key(one) == confusable_key(other)


@pytest.mark.parametrize(("one", "other"), [("log-mel", "log-mal"), ("a", "b"), ("ab1", "ab2")])
def test_names_that_look_different_have_their_own_key(one: str, other: str) -> None:
    assert confusable_key(one) != confusable_key(other)


@pytest.mark.property
@UNHURRIED
@given(names)
def test_name_is_its_own_fold(name: str) -> None:
    assert fold(name) == parse_name(name)


@pytest.mark.property
@UNHURRIED
@given(st.text(max_size=70))
def test_any_text_is_a_name_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert parse_name(text).isascii()

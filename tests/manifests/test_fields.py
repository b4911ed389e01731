"""Reading documents: every problem at once, each with its path, none of unbounded length."""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given

from manifests import fields
from manifests.errors import TypeMismatch, UsageError
from manifests.fields import Fields
from tests.manifests.builders import UNHURRIED, holds_or_refuses, hostile, refused


def read(value: Any) -> None:
    with fields.document("the thing") as problems:
        reader = Fields(value, "", problems)
        reader.required("name", fields.text)
        reader.optional("size", fields.whole(0, 9))
        reader.optional("parts", fields.many(fields.nested(lambda part: part.required("id", fields.sha256)), 2))
        reader.close()


def test_all_problems_come_at_once_with_their_paths() -> None:
    value = {"size": 10, "parts": [{"id": "ab" * 32}, {"id": "x", "more": 1}], "nmae": "a"}

    with pytest.raises(TypeMismatch) as caught:
        read(value)

    assert caught.value.message == (
        "the thing is refused: `name` is missing; `size`: '10' is not a whole number from 0 to 9; "
        "`parts`: item 1: `id`: 'x' is not a SHA-256 digest of 64 lower-case hex digits, `more` is not a known member; "
        "`nmae` is not a known member"
    )
    assert len(caught.value.context["problems"]) == 4


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "`the document` is not a table; `name` is missing"),
        (None, "`the document` is not a table; `name` is missing"),
        ({"name": None}, "`name`: 'None' is not plain text of 1 to 4096 characters"),
        ({"name": ""}, "`name`: '' is not plain text of 1 to 4096 characters"),
        ({"name": "a\x1b[2J"}, "`name`: 'a\\x1b[2J' is not plain text of 1 to 4096 characters"),
        ({"name": "a\x9b2J"}, "`name`: 'a\\x9b2J' is not plain text of 1 to 4096 characters"),
        ({"name": "a\u202eb"}, "`name`: 'a\\u202eb' is not plain text of 1 to 4096 characters"),
        ({"name": "a\u2028b"}, "`name`: 'a\\u2028b' is not plain text of 1 to 4096 characters"),
        ({"name": "a\ud800"}, "`name`: 'a\\ud800' is not plain text of 1 to 4096 characters"),
        ({"name": "é", "size": True}, "`size`: 'True' is not a whole number from 0 to 9"),
        ({"name": "é", "size": 1.0}, "`size`: '1.0' is not a whole number from 0 to 9"),
        ({"name": "é", "parts": {}}, "`parts`: '{}' is not a list of at most 2 items"),
        ({"name": "é", "parts": [{}, {}, {}]}, "`parts`: '[{}, {}, {}]' is not a list of at most 2 items"),
        ({"name": "é", "parts": [[]]}, "`parts`: '[]' is not a table"),
        ({"name": "é", "a\x1b\n": 1}, "`a\\x1b\\n` is not a known member"),
        ({"name": "é", 1: 1}, "`1` is not a known member"),
    ],
)
def test_problem_is_told(value: Any, message: str) -> None:
    assert refused(lambda: read(value), TypeMismatch) == f"the thing is refused: {message}"


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def is_text(letter: str) -> bool:
    with suppress(UsageError):
        return fields.text(letter) == letter
    return False


def test_each_character_is_text_but_those_that_steer_a_terminal() -> None:
    wrong = [hex(ord(letter)) for letter in map(chr, range(0x110000)) if is_text(letter) == bool(CONTROL.match(letter))]

    assert wrong == []


def test_message_is_bounded() -> None:
    value = {f"{place:06}{'x' * 5000}": 1 for place in range(1000)} | {"name": "y" * 5000}

    with pytest.raises(TypeMismatch) as caught:
        read(value)

    assert len(caught.value.message) < 8000
    assert caught.value.message.endswith("; and 937 more")
    assert len(caught.value.context["problems"]) == 65


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00Z",
        "2024-02-29T23:59:59Z",
        "2000-02-29T00:00:00Z",
        "2026-12-31T12:00:00Z",
        "2026-04-30T00:00:00Z",
    ],
)
def test_moment_of_the_calendar_is_kept(text: str) -> None:
    assert fields.moment(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "0000-01-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-19-39T29:59:59Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T12:00:60Z",
        "2026-01-31T12:00:00",
        "2026-01-31T12:00:00+00:00",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00:00.5Z",
        "٢٠٢٦-01-31T12:00:00Z",
        "never",
    ],
)
def test_moment_that_is_not_is_refused(text: str) -> None:
    assert (
        refused(lambda: fields.moment(text), UsageError) == f"{text!r} is not a UTC time such as 2026-01-31T12:00:00Z"
    )


def test_pattern_must_match_the_whole_text() -> None:
    reader = fields.matching("a|b+", "a letter")

    assert reader("bb") == "bb"
    values: tuple[Any, ...] = ("ab", "a\n", "", None, ["a"])
    for value in values:
        assert refused(partial(reader, value), UsageError).startswith(f"{str(value)!r} is not ")


@pytest.mark.property
@UNHURRIED
@given(hostile)
def test_any_value_is_read_or_refused(value: Any) -> None:
    readers: tuple[Callable[[Any], object], ...] = (
        fields.text,
        fields.sha256,
        fields.moment,
        fields.boolean,
        fields.whole(0, 1),
        fields.one_of("a"),
        fields.many(fields.text),
        fields.matching("a", "a letter"),
        fields.nested(lambda inner: inner.optional("a", fields.text)),
    )
    for reader in readers:
        holds_or_refuses(partial(reader, value))

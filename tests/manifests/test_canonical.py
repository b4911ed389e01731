"""RFC 8785 bytes: what is written reads back the same, and nothing else is read."""

import json
import time
from collections import OrderedDict
from contextlib import suppress
from enum import StrEnum
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from manifests.canonical import MAX_DEPTH, canonical_bytes, parse_strict
from manifests.errors import ContentError, NotCanonical, TooBig
from tests.manifests.builders import UNHURRIED, refused

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values, max_size=4)


def parse(data: bytes, max_bytes: int = 1 << 20) -> dict[str, Any]:
    return parse_strict(data, what="the thing", max_bytes=max_bytes)


def nested(depth: int) -> bytes:
    return b'{"a":' + b"[" * depth + b"]" * depth + b"}"


@pytest.mark.property
@UNHURRIED
@given(objects)
def test_written_bytes_read_back_and_are_stable(value: dict[str, Any]) -> None:
    data = canonical_bytes(value)

    assert parse(data) == value
    assert canonical_bytes(parse(data)) == data
    assert json.loads(data) == value


@pytest.mark.property
@UNHURRIED
@given(objects)
def test_order_of_members_does_not_matter(value: dict[str, Any]) -> None:
    assert canonical_bytes(dict(reversed(value.items()))) == canonical_bytes(value)


@pytest.mark.property
@UNHURRIED
@given(objects)
def test_written_bytes_are_those_of_rfc8785(value: dict[str, Any]) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


class Word(StrEnum):
    ONE = "one"


@pytest.mark.parametrize(
    "value",
    [
        {"".join(map(chr, range(128))): "".join(map(chr, range(0x800)))},
        {"a": ("b", ["c", ()], {}), "b": None, "c": [True, False]},
        {"a": 2**53 - 1, "b": -(2**53) + 1, "c": -0, "d": True},
        {"\ud7ff": 1, "\ue000": 2, "\U00010000": 3, "z": 4, "é": 5, "": 6},
        {"word": Word.ONE, Word.ONE: 1},
        OrderedDict(b=OrderedDict(d=1, c=2), a=3),
    ],
)
def test_odd_values_are_written_as_rfc8785_does(value: dict[str, Any]) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("name", [True, 1, 0.5, None])
def test_a_member_s_name_is_text(name: object) -> None:
    assert refused(lambda: canonical_bytes({"a": {name: 1}}), ContentError) == (
        "the document cannot be written as canonical JSON: object keys must be strings"
    )


def test_members_are_sorted_by_utf16_units_and_text_is_not_escaped_without_need() -> None:
    value = {"\ufb33": 1, "\U0001f600": 2, "b": "é\n\u2028", "a": []}

    assert canonical_bytes(value) == '{"a":[],"b":"é\\n\u2028","\U0001f600":2,"\ufb33":1}'.encode()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, 0.5]}, "the document.a[1] is the float 0.5; documents hold integers and text only"),
        ({"a": float("nan")}, "the document.a is the float nan; documents hold integers and text only"),
        (
            {"a": 2**53},
            "the document cannot be written as canonical JSON: "
            "9007199254740992 exceeds safe integer domain for JSON floats",
        ),
        ({"a": {1}}, "the document cannot be written as canonical JSON: unsupported type: <class 'set'>"),
        ({1: "a"}, "the document cannot be written as canonical JSON: object keys must be strings"),
        ({"a": "\ud800"}, "the document cannot be written as canonical JSON: input contains non-UTF-8 codepoints"),
    ],
)
def test_what_a_document_cannot_hold_is_not_written(value: object, message: str) -> None:
    assert refused(lambda: canonical_bytes(value), ContentError) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "the thing is not a JSON object"),
        (b'"a"', "the thing is not a JSON object"),
        (b"null", "the thing is not a JSON object"),
        (b"", "the thing is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (
            b"\xef\xbb\xbf{}",
            "the thing is not JSON: Unexpected UTF-8 BOM (decode using utf-8-sig): line 1 column 1 (char 0)",
        ),
        (
            b"\xff\xfe{\x00}\x00",
            "the thing is not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
        (b'{"a":1,"a":1}', "the thing has the member 'a' twice"),
        (b'{"b":{"a":1,"\\u0061":2}}', "the thing has the member 'a' twice"),
        (b'{"a":1.0}', "the thing has the number '1.0'; only integers are allowed"),
        (b'{"a":1e3}', "the thing has the number '1e3'; only integers are allowed"),
        (b'{"a":NaN}', "the thing has the number 'NaN'; only integers are allowed"),
        (b'{"a":-Infinity}', "the thing has the number '-Infinity'; only integers are allowed"),
        (b'{"a":-0}', "the thing is not in RFC 8785 canonical form"),
        (b'{"a": 1}', "the thing is not in RFC 8785 canonical form"),
        (b'{"a":1}\n', "the thing is not in RFC 8785 canonical form"),
        (b'{"b":1,"a":1}', "the thing is not in RFC 8785 canonical form"),
        (b'{"a":"\\u00e9"}', "the thing is not in RFC 8785 canonical form"),
        (b'{"a":"\\/"}', "the thing is not in RFC 8785 canonical form"),
        (b'{"a":1}{}', "the thing is not JSON: Extra data: line 1 column 8 (char 7)"),
        (b'{"a":01}', "the thing is not JSON: Expecting ',' delimiter: line 1 column 7 (char 6)"),
        (
            b'{"a":"\\ud800"}',
            "the thing is not canonical JSON: the document cannot be written as canonical JSON: "
            "input contains non-UTF-8 codepoints",
        ),
        (
            b'{"a":9007199254740992}',
            "the thing is not canonical JSON: the document cannot be written as canonical JSON: "
            "9007199254740992 exceeds safe integer domain for JSON floats",
        ),
        (
            nested(MAX_DEPTH + 1),
            "the thing is not canonical JSON: the document.a" + "[0]" * 22 + " is nested deeper than 32 levels",
        ),
        (
            nested(100_000),
            "the thing is not JSON: maximum recursion depth exceeded while decoding a JSON array from a unicode string",
        ),
    ],
)
def test_other_bytes_are_refused(data: bytes, message: str) -> None:
    assert refused(lambda: parse(data), NotCanonical)[:300] == message


def test_deepest_document_is_read() -> None:
    assert parse(nested(MAX_DEPTH))["a"] != []


def test_number_of_many_digits_is_refused() -> None:
    assert refused(lambda: parse(b'{"a":' + b"9" * 5000 + b"}"), NotCanonical).startswith(
        "the thing is not JSON: Exceeds"
    )


def test_bytes_beyond_the_bound_are_not_parsed() -> None:
    assert refused(lambda: parse(b"[" * 11, max_bytes=10), TooBig) == "the thing has 11 bytes, more than the 10 allowed"


def test_long_names_are_cut_in_messages() -> None:
    name = b"k" * 100_000

    assert len(refused(lambda: parse(b'{"%b":1,"%b":1}' % (name, name)), NotCanonical)) < 200
    assert len(refused(lambda: parse(b'{"%b":%b}' % (name, b"[" * 40 + b"]" * 40)), NotCanonical)) < 300


def test_member_written_twice_among_very_many_is_found_in_linear_time() -> None:
    members = b",".join(b'"%06d":0' % place for place in range(90_000))
    started = time.process_time()

    message = refused(lambda: parse(b"{" + members + b',"089999":0}'), NotCanonical)

    assert message == "the thing has the member '089999' twice"
    assert time.process_time() - started < 5


@pytest.mark.property
@UNHURRIED
@given(st.binary(max_size=60) | st.text(st.sampled_from('{}[]":,0123eE.-ab\\ufnt '), max_size=60).map(str.encode))
def test_any_bytes_are_canonical_or_refused(data: bytes) -> None:
    with suppress(NotCanonical):
        assert canonical_bytes(parse(data)) == data

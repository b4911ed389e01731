"""Ranges mean what npm's mean, a bare number is refused, and pre-releases come in only where they are named."""

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version as PackagingVersion

from manifests.errors import UsageError
from manifests.ranges import Range
from manifests.versions import Version, pep440_sort_key
from tests.manifests import npm_ranges, packaging_ranges
from tests.manifests.builders import UNHURRIED, range_texts, ranges, refused, versions

VECTORS = Path(__file__).parents[3] / "shared" / "vectors" / "resolver" / "semver_ranges_include.json"

RELEASES = [".".join(map(str, numbers)) for numbers in product((0, 1, 2), (0, 1, 2, 3), (0, 1, 2, 4))]
UNIVERSE = RELEASES + [f"{release}-{label}" for release in RELEASES for label in ("dev.0", "alpha.1", "rc.1", "rc.2")]
HUGE = "999999999.999999999.999999999"

OPERATORS = [">=", "<=", ">", "<", "=", "==", "!=", "^", "~", "~="]
NUMBERS = ["0", "1", "0.0", "0.1", "1.0", "1.2", "0.0.0", "0.0.1", "0.1.2", "1.0.0", "1.2.1", "2.3.4"]
PARTIALS = [*NUMBERS, "1.2.1-dev.0", "1.2.1-rc.1", "0.0.1-alpha.1", "1.x", "0.1.*", "X", "*", "1.x.2", "1.2.1+cpu"]


def found(text: str, *, pre: bool = False) -> list[str]:
    parsed = Range.parse(text)
    return [version for version in UNIVERSE if parsed.contains(Version.parse(version), pre=pre)]


def expected(text: str, *, pre: bool = False) -> list[str]:
    return [version for version in UNIVERSE if npm_ranges.contains(text, version, pre=pre)]


def single_comparators() -> Iterator[str]:
    for operator, written in product(OPERATORS, PARTIALS):
        if operator == "~=" and written in {"0", "1", "1.x", "X", "*", "1.x.2"}:
            continue
        yield operator + written


@pytest.mark.parametrize("text", [*single_comparators(), "*", "x", "1.x", "1.2.x", "1.x.2", "0.0.*"])
def test_comparator_means_what_npm_says(text: str) -> None:
    assert found(text) == expected(text)
    assert found(text, pre=True) == expected(text, pre=True)


@pytest.mark.parametrize(
    ("low", "high"), list(product(["0", "0.1", "1.0.0", "1.2.1-rc.1", "x"], ["1", "1.2", "1.2.1", "2.x", "*"]))
)
def test_hyphen_range_means_what_npm_says(low: str, high: str) -> None:
    assert found(f"{low} - {high}") == expected(f"{low} - {high}")


@pytest.mark.property
@UNHURRIED
@given(
    st.lists(
        st.lists(st.sampled_from(list(single_comparators())), min_size=1, max_size=3).flatmap(
            lambda parts: st.sampled_from([" ".join(parts), ",".join(parts), ", ".join(parts)])
        ),
        min_size=1,
        max_size=3,
    ).map("||".join)
)
def test_any_range_means_what_npm_says(text: str) -> None:
    assert found(text) == expected(text)
    assert Range.parse(text).has_upper_bound == (not npm_ranges.contains(text, HUGE))


def test_ranges_of_node_semver_match() -> None:
    if not VECTORS.exists():
        pytest.skip("semver_ranges_include.json is not beside this checkout")
    cases = json.loads(VECTORS.read_bytes())

    for case in cases:
        if case["expect"] == "match":
            assert Range.parse(case["range"]).contains(Version.parse(case["version"])), case
        else:
            assert "has the bare number" in refused(partial(Range.parse, case["range"]), UsageError), case
    assert len(cases) == 79


@pytest.mark.parametrize(
    ("text", "version", "fact"),
    [
        (">=1.0.0", "2.0.0-rc.1", False),
        (">=2.0.0-rc.1", "2.0.0-rc.2", True),
        (">=2.0.0-rc.1", "2.0.0-dev.9", False),
        (">=2.0.0-rc.1", "2.1.0-rc.1", False),
        (">=2.0.0-rc.1", "2.1.0", True),
        (">=1.0.0 || ==2.0.0-rc.1", "2.0.0-rc.1", True),
        (">=1.0.0 || ==2.0.0-rc.1", "2.0.0-rc.2", False),
        ("<2.0.0", "2.0.0-rc.1", False),
        ("<2", "2.0.0-dev.0", False),
        ("<2.0.0-rc.2", "2.0.0-rc.1", True),
        (">=1.0.0 !=2.0.0-rc.1", "2.0.0-rc.2", False),
        (">=2.0.0-rc.1 <2.0.0", "2.0.0-rc.2", True),
        (">=2.0.0-rc.1 || <2.0.0", "2.0.0-dev.0", False),
        ("*", "1.0.0-rc.1", False),
    ],
)
def test_prerelease_is_in_only_where_its_alternative_asks_for_one_of_the_same_release(
    text: str, version: str, *, fact: bool
) -> None:
    assert Range.parse(text).contains(Version.parse(version)) is fact


def test_prerelease_on_request_stays_within_the_interval() -> None:
    wanted = Range.parse("^1.2.0")

    assert wanted.contains(Version.parse("1.3.0-rc.1"), pre=True)
    assert not wanted.contains(Version.parse("1.2.0-rc.1"), pre=True)
    assert not wanted.contains(Version.parse("2.0.0-dev.0"), pre=True)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("<1.2.0", False),
        ("<1.2.0+cpu", False),
        ("!=1.2.0-rc.2 <1.2.0", False),
        ("<=1.2.0", True),
        ("<1.2.0-rc.2", True),
        (">=1.2.0-alpha.1 <1.2.0", True),
        (">=1.2.0-alpha.1 || <1.2.0", True),
        ("<1.2.1", True),
    ],
)
def test_version_below_a_release_is_no_prerelease_of_it_unless_one_is_named(text: str, *, fact: bool) -> None:
    assert Range.parse(text).contains(Version.parse("1.2.0-rc.1"), pre=True) is fact


@pytest.mark.parametrize(
    ("text", "number", "hint"),
    [
        ("1", "1", "write `==1.0.0`, `~1` or `>=1,<2`"),
        ("1.2", "1.2", "write `==1.2.0`, `~1.2` or `>=1.2,<2`"),
        ("1.2.3", "1.2.3", "write `==1.2.3`, `~1.2` or `>=1.2,<2`"),
        (">=1.0 2.3.4", "2.3.4", "write `==2.3.4`, `~2.3` or `>=2.3,<3`"),
        ("^1 || 1.2.3-rc.1", "1.2.3-rc.1", "write `==1.2.3`, `~1.2` or `>=1.2,<2`"),
        ("1.2.3+linux", "1.2.3+linux", "write `==1.2.3`, `~1.2` or `>=1.2,<2`"),
    ],
)
def test_bare_number_is_refused_with_what_to_write(text: str, number: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        Range.parse(text)

    assert caught.value.message == (
        f"the range {text!r} has the bare number `{number}`, which would have to be interpreted"
    )
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("latest", "latest"),
        (">=1.0,", ">=1.0,"),
        (",>=1.0", ",>=1.0"),
        (">=1.0,,<2", ",<2"),
        (">=1.0<2", ">=1.0<2"),
        (">=1.0 && <2", "&& <2"),
        ("=>1.0", "=>1.0"),
        ("=== 1.0.0", "=== 1.0.0"),
        (">=v1.0", ">=v1.0"),
        (">=01.0", ">=01.0"),
        (">=1.0.0.0", ">=1.0.0.0"),
        (">=1.0.0-gamma.1", ">=1.0.0-gamma.1"),
        (">=1.0\n", ">=1.0"),
        (">=1.0\u2003<2.0", ">=1.0\u2003<2.0"),
        (">=1.0\t<2.0", ">=1.0\t<2.0"),
        (">=1.٣", ">=1.٣"),
        (">=1000000000", ">=1000000000"),
        ("^1.0 | ^2.0", "| ^2.0"),
        (">=1.0.0 -2.0.0", "-2.0.0"),
        (">=", ">="),
    ],
)
def test_what_is_no_comparator_is_refused(text: str, rest: str) -> None:
    assert refused(lambda: Range.parse(text), UsageError) == (
        f"{text!r} is not a range: {rest!r} is not a comparator such as "
        "`>=1.2,<2`, `^1.2`, `~1.2`, `==1.2.3` or `1.2.x`"
    )


def test_compatible_release_of_one_number_is_refused() -> None:
    assert refused(lambda: Range.parse("~=1"), UsageError) == (
        "'~=1' is not a range: `~=` needs at least two numbers, as in `~=1.2`"
    )


@pytest.mark.parametrize("text", ["", " ", "   "])
def test_empty_range_is_refused(text: str) -> None:
    assert refused(lambda: Range.parse(text), UsageError) == "an empty range says nothing: write `*` for any version"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "'None'"),
        (True, "'True'"),
        (2, "'2'"),
        ([], "'[]'"),
        ({"a": 1}, "\"{'a': 1}\""),
        ("1" * 257, repr("1" * 40)),
    ],
)
def test_what_is_no_short_text_is_no_range(value: str, shown: str) -> None:
    assert refused(lambda: Range.parse(value), UsageError) == f"a range is text of at most 256 characters, not {shown}"


def test_comparators_are_bounded_in_number() -> None:
    assert Range.parse(" ".join(["!=1.2"] * 32)).has_upper_bound is False
    assert "is not a comparator" in refused(lambda: Range.parse(" ".join(["!=1.2"] * 33)), UsageError)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        (">=1.0", False),
        (">=1.0,<2", True),
        ("<=2", True),
        ("*", False),
        ("x", False),
        (">=*", False),
        ("<=*", False),
        ("<*", True),
        ("!=1.0.0", False),
        ("!=*", True),
        (">=1.0 !=2.x", False),
        ("^1.0 || ^2.0", True),
        ("^1.0 || >=3", False),
        ("<1 || >=2", False),
        ("^1.0 ||", False),
        (">=3 <2", True),
        (">=3 <2 || ^1.0", True),
        ("==1.2.3", True),
        ("1.x", True),
        ("1.0.0 - 2.0.0", True),
        ("1.0.0 - x", False),
        ("~=1.2", True),
        (">1.2.3", False),
        ("^999999999", True),
    ],
)
def test_upper_bound_is_told(text: str, *, fact: bool) -> None:
    assert Range.parse(text).has_upper_bound is fact


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("==1.2.3", "1.2.3"),
        ("= 1.2.3", "1.2.3"),
        (" ==1.2.3-rc.1 ", "1.2.3-rc.1"),
        ("==1.2.3+cpu", "1.2.3+cpu"),
        ("==1.2", None),
        ("==1.2.x", None),
        ("==1.2.3 ==1.2.3", None),
        ("==1.2.3 || ==1.2.4", None),
        (">=1.2.3", None),
        ("!=1.2.3", None),
        ("~=1.2.3", None),
        ("*", None),
    ],
)
def test_exact_is_the_version_of_a_range_that_names_one(text: str, version: str | None) -> None:
    exact = Range.parse(text).exact

    assert (None if exact is None else str(exact)) == version


BETWEEN = [
    f"{release}{suffix}"
    for release in ("0.0.0", "0.0.1", "1.2", "1.2.3", "2.0")
    for suffix in ("", "+cpu", ".dev0", "a0.dev1", "a1.post2", "rc1.dev3", "rc1", ".post1", ".post1.dev0", ".4rc1")
]


@pytest.mark.property
@UNHURRIED
@given(range_texts)
def test_a_range_spans_what_packaging_has_in_its_interval(text: str) -> None:
    interval, parsed = packaging_ranges.interval(text), Range.parse(text)

    spanned = {version: parsed.spans(pep440_sort_key(version) or ()) for version in BETWEEN}

    assert spanned == {
        version: interval.contains(PackagingVersion(version).public, prereleases=True) for version in BETWEEN
    }


@pytest.mark.property
@UNHURRIED
@given(range_texts, versions)
def test_a_range_contains_what_packaging_has_in_its_interval(text: str, version: Version) -> None:
    interval, packaged = packaging_ranges.interval(text), PackagingVersion(version.text).public

    assert Range.parse(text).contains(version, pre=True) == interval.contains(packaged, prereleases=True)


@pytest.mark.property
@UNHURRIED
@given(range_texts, range_texts)
def test_ranges_intersect_where_packaging_s_intervals_do(one: str, other: str) -> None:
    common = packaging_ranges.interval(one) & packaging_ranges.interval(other)

    assert Range.parse(one).intersects(Range.parse(other)) is not common.is_empty


@pytest.mark.property
@UNHURRIED
@given(ranges, ranges)
def test_ranges_with_a_common_version_intersect(one: Range, other: Range) -> None:
    common = [
        version
        for version in map(Version.parse, UNIVERSE)
        if one.contains(version, pre=True) and other.contains(version, pre=True)
    ]

    assert one.intersects(other) == other.intersects(one)
    assert one.intersects(other) or not common


@pytest.mark.parametrize(
    ("one", "other", "fact"),
    [
        ("^1.0", "^2.0", False),
        ("^1.0", ">=1.5", True),
        ("<1.0.0", ">=1.0.0", False),
        ("<=1.0.0", ">=1.0.0", True),
        ("==1.0.0", "!=1.0.0", False),
        (">=3 <2", "*", False),
        ("<1.0", ">=1.0.0-rc.1", False),
        ("<1.0.0", ">=1.0.0-rc.1", False),
        ("<1.0.0-rc.2", ">=1.0.0-rc.1", True),
        (">=1.0.0-rc.1 <1.0.0", ">=1.0.0-rc.1", True),
        ("<=1.0.0", "==1.0.0-rc.1", True),
        ("<2", ">=2.0.0-dev.0", False),
    ],
)
def test_intersection_is_told(one: str, other: str, *, fact: bool) -> None:
    assert Range.parse(one).intersects(Range.parse(other)) is fact


@pytest.mark.property
@UNHURRIED
@given(range_texts)
def test_parsing_the_text_of_a_range_gives_it_back(text: str) -> None:
    parsed = Range.parse(text)

    assert Range.parse(parsed.text) == parsed
    assert hash(Range.parse(str(parsed))) == hash(parsed)


@pytest.mark.property
@UNHURRIED
@given(st.text(st.sampled_from("0123.x*<>=~^!|, -rc+"), max_size=40) | st.text(max_size=20))
def test_any_text_is_a_range_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert Range.parse(text).text == text

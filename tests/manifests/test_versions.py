"""SemVer spelling, the order of `packaging`, and what `+build` does not do."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version as PackagingVersion

from manifests.errors import UsageError
from manifests.versions import Version, pep440_sort_key
from tests.manifests.builders import UNHURRIED, refused, version_texts, versions

few = st.integers(0, 3)
labelled = st.sampled_from(["", "-dev.0", "-dev.2", "-alpha.0", "-alpha.1", "-beta.3", "-rc.0", "-rc.2"])


def packaged(version: Version) -> PackagingVersion:
    return PackagingVersion(PackagingVersion(version.text).public)


@pytest.mark.parametrize(
    "text", ["0.0.0", "1.2.3", "2.10.0", "1.0.0-alpha.0", "1.0.0-rc.12", "1.0.0-dev.1+linux.x86-64", "1.0.0+001"]
)
def test_version_keeps_its_text(text: str) -> None:
    assert str(Version.parse(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "v1.2.3",
        "01.2.3",
        "1.02.3",
        "1.2.3-rc",
        "1.2.3-rc1",
        "1.2.3rc1",
        "1.2.3-rc.01",
        "1.2.3-gamma.1",
        "1.2.3-RC.1",
        "1.2.3-rc.1.2",
        "1.2.3+",
        "1.2.3+a..b",
        "1.2.3+a_b",
        "1.2.3\n",
        " 1.2.3",
        "1.2.3+a\n",
        "1.2.٣",
        "1.2.²",
        "-1.2.3",
        "1.2.1000000000",
        "1!1.2.3",
        "1.2.3.post1",
        "*",
    ],
)
def test_other_spelling_is_refused_with_its_text(text: str) -> None:
    expected = (
        f"{text!r} is not a version: write `X.Y.Z`, with `-alpha.N`, `-beta.N`, `-rc.N` or `-dev.N` for a pre-release"
    )

    assert refused(lambda: Version.parse(text), UsageError) == expected


@pytest.mark.parametrize("value", [None, True, 2, ["1.0.0"], {}, b"1.0.0"])
def test_what_is_no_text_is_no_version(value: str) -> None:
    assert refused(lambda: Version.parse(value), UsageError).startswith(f"{value!r} is not a version: ")


def test_long_text_is_cut() -> None:
    assert len(refused(lambda: Version.parse("1.2." + "3" * 100_000), UsageError)) < 250


def test_order_is_that_of_packaging() -> None:
    ordered = [
        "0.9.9",
        "1.0.0-dev.0",
        "1.0.0-dev.2",
        "1.0.0-alpha.1",
        "1.0.0-beta.1",
        "1.0.0-rc.2",
        "1.0.0-rc.10",
        "1.0.0",
        "1.0.1-alpha.1",
        "1.9.0",
        "1.10.0",
        "999999999.0.0",
    ]

    assert [str(version) for version in sorted(map(Version.parse, reversed(ordered)))] == ordered


def test_build_part_has_no_part_in_equality_or_order() -> None:
    one, other = Version.parse("1.0.0+cpu"), Version.parse("1.0.0+cuda")

    assert one == other
    assert hash(one) == hash(other)
    assert not one < other
    assert one <= other
    assert one.text != other.text


@pytest.mark.parametrize(("text", "fact"), [("1.0.0", False), ("1.0.0-dev.1", True), ("1.0.0-rc.1+x", True)])
def test_prerelease_is_told(text: str, *, fact: bool) -> None:
    assert Version.parse(text).is_prerelease is fact


def test_version_is_not_comparable_with_text() -> None:
    assert Version.parse("1.0.0") != "1.0.0"
    with pytest.raises(TypeError):
        assert Version.parse("1.0.0") < "1.0.1"


@pytest.mark.property
@UNHURRIED
@given(version_texts())
def test_parsing_the_text_of_a_version_gives_it_back(text: str) -> None:
    version = Version.parse(text)

    assert Version.parse(str(version)) == version
    assert str(version) == text


@pytest.mark.property
@UNHURRIED
@given(versions, versions)
def test_order_is_that_of_packaging_for_any_two(one: Version, other: Version) -> None:
    ours, theirs = packaged(one), packaged(other)

    assert (one < other) == (one.sort_key < other.sort_key) == (ours < theirs)
    assert (one == other) == (one.sort_key == other.sort_key) == (ours == theirs)


@st.composite
def pep440_texts(draw: st.DrawFn) -> str:
    numbers = st.integers(0, 3)
    release = ".".join(str(draw(numbers)) for _ in range(draw(st.integers(1, 4))))
    pre = draw(st.sampled_from(["", "a{}", "b{}", "rc{}"]))
    post, dev = draw(st.sampled_from(["", ".post{}"])), draw(st.sampled_from(["", ".dev{}"]))
    local = draw(st.sampled_from(["", "+cu126", "+cpu.1"]))
    return release + "".join(part.format(draw(numbers)) for part in (pre, post, dev)) + local


@pytest.mark.property
@settings(UNHURRIED, max_examples=600)
@given(pep440_texts(), st.builds("{}.{}.{}{}".format, few, few, few, labelled))
def test_python_s_spelling_stands_among_releases_where_packaging_puts_it(text: str, release: str) -> None:
    theirs, version = PackagingVersion(PackagingVersion(text).public), Version.parse(release)
    ours = packaged(version)

    key = pep440_sort_key(text)

    assert key is not None
    assert (key < version.sort_key) == (theirs < ours)
    assert (key == version.sort_key) == (theirs == ours)


@pytest.mark.parametrize("text", ["", "x", "2.13.0-", "1!2.0", "2.x"])
def test_what_counts_otherwise_stands_nowhere(text: str) -> None:
    assert pep440_sort_key(text) is None


@pytest.mark.property
@UNHURRIED
@given(versions, versions, versions)
def test_order_is_total(one: Version, two: Version, three: Version) -> None:
    assert [one < two, one == two, one > two].count(True) == 1
    assert (one <= two) == (not two < one)
    assert not (one <= two and two <= three) or one <= three
    assert one != two or hash(one) == hash(two)


@pytest.mark.property
@UNHURRIED
@given(versions)
def test_prerelease_is_below_its_release(version: Version) -> None:
    release = Version.parse(".".join(map(str, version.release)))

    assert version <= release
    assert version.is_prerelease == (version < release)


@pytest.mark.property
@UNHURRIED
@given(st.text(st.sampled_from("0123456789.-+rcx "), max_size=70))
def test_any_text_is_a_version_or_refused(text: str) -> None:
    with suppress(UsageError):
        assert Version.parse(text).text == text

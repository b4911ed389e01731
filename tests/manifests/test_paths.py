"""Paths that a file table may hold, and those that would be one file."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.errors import PathRefused
from manifests.paths import check_distinct, check_path
from tests.manifests.builders import UNHURRIED, refused


@pytest.mark.parametrize(
    "path",
    ["a", "a/b/c.py", ".hidden", "a/..b", "..a/b", "a+b_c-d.1", "-rf", "x" * 200, "/".join(["x" * 200] * 5)],
)
def test_path_is_kept(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "a//b",
        "a/",
        ".",
        "..",
        "a/../b",
        "../a",
        "a/./b",
        "a\\b",
        "c:a",
        "a b",
        "a\n",
        "a/b\n",
        "a\x00",
        "é",
        "e\u0301",
        "a\u202eb",
        "٣",
        "~",
        "a*",
        "x" * 201,
    ],
)
def test_path_that_is_not_plain_is_refused(path: str) -> None:
    with pytest.raises(PathRefused) as caught:
        check_path(path)

    assert caught.value.message == (
        f"the path {path[:120]!r} is refused: each part is 1 to 200 characters of A-Z a-z 0-9 . _ + - "
        "and is neither `.` nor `..`"
    )
    assert caught.value.context == {"path": path}


def test_long_path_is_refused_and_cut() -> None:
    with pytest.raises(PathRefused) as caught:
        check_path("a/" * 100_000 + "a")

    assert len(caught.value.message) < 300
    assert len(caught.value.context["path"]) == 1024


@pytest.mark.parametrize("value", [None, True, 7, ["a"], {"a": 1}])
def test_what_is_no_text_is_no_path(value: str) -> None:
    assert refused(lambda: check_path(value), PathRefused).startswith(f"the path {str(value)!r} is refused: ")


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["a", "a"], "the paths 'a' and 'a' are one file where case is folded"),
        (["Readme", "README"], "the paths 'Readme' and 'README' are one file where case is folded"),
        (["a/B", "A/b"], "the paths 'a/B' and 'A/b' are one file where case is folded"),
        (["a", "a/b"], "the path 'a' is both a file and a folder of 'a/b'"),
        (["a/b/c/d", "A/B"], "the path 'A/B' is both a file and a folder of 'a/b/c/d'"),
    ],
)
def test_paths_that_collide_are_refused(paths: list[str], message: str) -> None:
    assert refused(lambda: check_distinct(paths), PathRefused) == message


def test_paths_beside_each_other_are_kept() -> None:
    check_distinct(["a/b", "a/c", "a.b", "ab", "a-b/c"])


@pytest.mark.property
@UNHURRIED
@given(st.text(st.sampled_from("ab./\\-+_ \n~"), max_size=20))
def test_kept_path_stays_inside(path: str) -> None:
    try:
        check_path(path)
    except PathRefused:
        return

    assert not path.startswith("/")
    assert not {"", ".", ".."} & set(path.split("/"))

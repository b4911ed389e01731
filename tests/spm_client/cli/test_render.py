"""Text for people: columns, sizes and a progress line that is silent where it is not wanted."""

import pytest

from spm_client.render import ProgressLine, count, size, table


def test_columns_are_as_wide_as_they_need_to_be() -> None:
    assert table(("NAME", "V"), [("log-mel", "1.0.0"), ("a", "-")]) == "NAME     V\nlog-mel  1.0.0\na        -"


def test_a_table_without_rows_is_its_header() -> None:
    assert table(("NAME", "VERSION"), []) == "NAME  VERSION"


def test_a_row_of_another_length_is_a_mistake() -> None:
    with pytest.raises((ValueError, IndexError)):
        table(("NAME", "VERSION"), [("log-mel",)])


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (1 << 20, "1.0 MiB"),
        (5 << 30, "5.0 GiB"),
        (5 << 40, "5120.0 GiB"),
    ],
)
def test_sizes_are_as_people_read_them(count: int, text: str) -> None:
    assert size(count) == text


def test_progress_is_one_line_that_ends_at_its_total(capsys: pytest.CaptureFixture[str]) -> None:
    advance = ProgressLine(is_wanted=True)("Downloading", 2048)
    advance(1024)
    advance(1024)

    assert capsys.readouterr().err == (
        "\rDownloading [############------------] 1.0 KiB of 2.0 KiB "
        "\rDownloading [########################] 2.0 KiB of 2.0 KiB \n"
    )


def test_progress_that_is_not_wanted_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    ProgressLine(is_wanted=False)("Downloading", 1)(1)

    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")


@pytest.mark.parametrize(("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files")])
def test_a_number_agrees_with_its_noun(number: int, text: str) -> None:
    assert count(number, "file") == text

"""Text for people: columns, sizes and a progress line that is silent where it is not wanted."""

import fcntl
import io
import os
import struct
import termios

import pytest

from spm_client.meter import Meter, columns
from spm_client.progress import Advance, phase
from spm_client.render import ProgressLine, count, fitted, size, table, terminal_width, warn


def test_columns_are_as_wide_as_they_need_to_be() -> None:
    assert table(("NAME", "V"), [("log-mel", "1.0.0"), ("a", "-")]) == "NAME     V\nlog-mel  1.0.0\na        -"


def test_a_table_without_rows_is_its_header() -> None:
    assert table(("NAME", "VERSION"), []) == "NAME  VERSION"


def test_a_row_of_another_length_is_a_mistake() -> None:
    with pytest.raises((ValueError, IndexError)):
        table(("NAME", "VERSION"), [("log-mel",)])


HEADER = ("NAME", "CLASS", "WANTED BY", "FROM")
ROWS = [("mel", "ext", "you, video-mixer, audio-encoder", "px.example"), ("a", "core", "you", "-")]


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (
            None,
            "NAME  CLASS  WANTED BY                        FROM\n"
            "mel   ext    you, video-mixer, audio-encoder  px.example\n"
            "a     core   you                              -",
        ),
        (
            40,
            "NAME  CLASS  WANTED BY      FROM\n"
            "mel   ext    you,           px.example\n"
            "             video-mixer,\n"
            "             audio-encoder\n"
            "a     core   you            -",
        ),
        (
            33,
            "NAME  WANTED BY      FROM\n"
            "mel   you,           px.example\n"
            "      video-mixer,\n"
            "      audio-encoder\n"
            "a     you            -",
        ),
        (
            5,
            "NAME  WANTED BY      FROM\n"
            "mel   you,           px.example\n"
            "      video-mixer,\n"
            "      audio-encoder\n"
            "a     you            -",
        ),
    ],
)
def test_a_table_is_fitted_to_its_terminal(width: int | None, text: str) -> None:
    assert fitted(HEADER, ROWS, width, wrapped="WANTED BY", spare=("BATCH", "CLASS"), least=12) == text


@pytest.mark.parametrize(
    ("named", "width"), [("72", 72), ("0", None), ("", None), ("-3", None), ("wide", None), ("9" * 4000, 999_999)]
)
def test_a_width_is_named_by_columns(monkeypatch: pytest.MonkeyPatch, named: str, width: int | None) -> None:
    monkeypatch.setenv("COLUMNS", named)
    monkeypatch.setattr("sys.stdout", io.StringIO())

    assert terminal_width() == width


def test_a_terminal_tells_its_own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 66, 0, 0))
    monkeypatch.delenv("COLUMNS", raising=False)

    with open(follower, "w") as terminal, open(leader):
        monkeypatch.setattr("sys.stdout", terminal)
        assert terminal_width() == 66


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


def test_progress_that_is_not_wanted_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProgressLine(is_wanted=False)

    progress("Downloading", 1)(1)
    with phase(progress, "Resolving", noun="plugin") as advance:
        advance(1)

    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "")


def test_a_finished_transfer_leaves_nothing_on_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    advance = ProgressLine(is_wanted=True)("Downloading", 2048)
    advance(1024)
    advance(1024)

    line = "Downloading  [------------------------]  0 B of 2.0 KiB"
    assert capsys.readouterr().err == f"\r{line}\r{' ' * len(line)}\r"


def test_a_phase_is_over_with_its_block_whatever_ends_it(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProgressLine(is_wanted=True)

    with pytest.raises(KeyError), phase(progress, "Resolving", noun="plugin"):
        raise KeyError

    assert capsys.readouterr().err == "\rResolving ...\r             \r"


def test_a_message_takes_the_place_of_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    advance = ProgressLine(is_wanted=True)("Downloading", 1 << 20)
    advance(5)

    warn("error[digest]: it is another file")
    warn("  hint: run it again")

    line = "Downloading  [------------------------]  0 B of 1.0 MiB"
    assert capsys.readouterr().err == (
        f"\r{line}\r{' ' * len(line)}\rerror[digest]: it is another file\n  hint: run it again\n"
    )


def test_whoever_knows_only_labels_and_totals_is_told_of_phases_too() -> None:
    told: list[object] = []

    def progress(label: str, total: int, /) -> Advance:
        told.append((label, total))
        return told.append

    with phase(progress, "Verifying", 3, noun="manifest") as advance:
        advance(2)

    assert told == [("Verifying", 3), 2]


def test_a_terminal_that_has_gone_fails_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sys.stderr", Gone())

    ProgressLine(is_wanted=True)("Downloading", 10)(10)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def metered(width: int, steps: list[tuple[float, int]], *, total: int = 40 << 20, noun: str = "") -> str | None:
    """Return the last line of a phase in which so much more was done at each moment."""
    clock, line = Clock(), None
    meter = Meter("Downloading", total, noun, clock=clock, width=lambda: width)
    for seconds, more in steps:
        clock.now = 100.0 + seconds
        line = meter.advance(more)
    return line


MOMENTS = [(0.0, 0), (1.0, 4 << 20), (2.0, 4 << 20)]


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (100, "Downloading  [####--------------------]  8.0 MiB of 40.0 MiB  4.0 MiB/s  8 s left"),
        (80, "Downloading  [##--------]  8.0 MiB of 40.0 MiB  4.0 MiB/s  8 s left"),
        (60, "Downloading  8.0 MiB of 40.0 MiB  4.0 MiB/s  8 s left"),
        (50, "Downloading  8.0 MiB of 40.0 MiB  8 s left"),
        (40, "Downloading 8.0 MiB of 40.0 MiB"),
        (20, "Downloading 8.0 MiB"),
        (1, ""),
    ],
)
def test_a_line_fits_its_terminal(width: int, line: str) -> None:
    assert metered(width, MOMENTS) == line


@pytest.mark.parametrize(
    ("steps", "total", "noun", "line"),
    [
        ([(0.0, 0)], 0, "plugin", "Downloading ..."),
        ([(0.0, 1)], 0, "plugin", "Downloading 1 plugin"),
        ([(0.0, 12)], 0, "plugin", "Downloading 12 plugins"),
        ([(0.0, 2048)], 0, "", "Downloading 2.0 KiB"),
        ([(0.0, 1)], 4, "plugin", "Downloading  [######------------------]  1 of 4 plugins"),
        ([(0.0, 0), (0.05, 10)], 100, "", None),
        ([(0.0, 0), (2.0, 0)], 100, "", "Downloading  [------------------------]  0 B of 100 B  0 B/s  stalled"),
        ([(0.0, 50), (2.0, -50)], 100, "", "Downloading  [------------------------]  0 B of 100 B  0 B/s  stalled"),
        ([(0.0, 500)], 100, "", "Downloading  [########################]  100 B of 100 B"),
        ([(0.0, -5)], 100, "", "Downloading  [------------------------]  0 B of 100 B"),
        (
            [(0.0, 0), (10.0, 1 << 20)],
            1 << 30,
            "",
            "Downloading  [------------------------]  1.0 MiB of 1.0 GiB  102.4 KiB/s  3 h left",
        ),
        (
            [(0.0, 0), (10.0, 1 << 20)],
            100 << 20,
            "",
            "Downloading  [------------------------]  1.0 MiB of 100.0 MiB  102.4 KiB/s  16 min left",
        ),
    ],
)
def test_a_line_says_no_more_than_is_known(
    steps: list[tuple[float, int]], total: int, noun: str, line: str | None
) -> None:
    assert metered(100, steps, total=total, noun=noun) == line


def test_a_label_of_others_steers_no_terminal() -> None:
    assert Meter("\x1b[2J\nx", 0, "plugin", width=lambda: 80).advance(1) == "�[2J x 1 plugin"


def test_the_width_is_a_guess_where_no_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())

    assert columns() == 80


@pytest.mark.parametrize(("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files")])
def test_a_number_agrees_with_its_noun(number: int, text: str) -> None:
    assert count(number, "file") == text

"""Passphrases from a descriptor: one a line, however they arrive, and never one that was not given."""

import os
import threading
import time
from pathlib import Path

import pytest

from keys.passphrase import Passphrases
from manifests.errors import UsageError


def test_each_passphrase_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_bytes(b"first\nsecond\r\nthird")

    with (tmp_path / "secrets").open("rb") as file:
        passphrases = Passphrases(file.fileno())
        given = [passphrases.read("?") for _ in range(3)]

    assert given == [b"first", b"second", b"third"]


def test_lines_that_come_in_pieces_are_put_together() -> None:
    reading, writing = os.pipe()

    def write() -> None:
        for piece in (b"fir", b"st\nsec", b"ond\n"):
            os.write(writing, piece)
            time.sleep(0.01)
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    passphrases = Passphrases(reading)
    given = [passphrases.read("?"), passphrases.read("?")]
    writer.join()
    os.close(reading)

    assert given == [b"first", b"second"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"first\n", "the passphrase is empty"),
        (b"first\n\nthird\n", "the passphrase is empty"),
        (b"first\n" + b"x" * 1024 + b"\n", "the passphrase has more than the 1023 bytes allowed"),
    ],
)
def test_a_line_that_is_no_passphrase_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "secrets").write_bytes(data)

    with (tmp_path / "secrets").open("rb") as file:
        passphrases = Passphrases(file.fileno())
        passphrases.read("?")
        with pytest.raises(UsageError) as caught:
            passphrases.read("?")

    assert caught.value.message == message

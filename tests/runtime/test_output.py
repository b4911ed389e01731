"""What a worker prints: the last of it is kept, and shown so that a terminal is safe."""

import os
import subprocess
import sys

import pytest

from runtime.output import KEPT_BYTES, Tail, excerpt, printable


def test_all_that_was_printed_before_is_in_the_text_however_small_the_pieces() -> None:
    script = "import os\nfor n in range(100): os.write(1, b'%d\\n' % n)\nos.write(2, b'.')\nos.read(0, 1)"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        tail = Tail(process.stdout)
        assert process.stderr is not None
        process.stderr.read(1)

        text = tail.text()

        process.kill()
        tail.close()
    assert text == "".join(f"{n}\n" for n in range(100))


def test_only_the_last_is_kept() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as stream:
        tail = Tail(stream)
        with open(writing, "wb", buffering=0) as file:
            file.write(b"a" * KEPT_BYTES)
            file.write(b"b" * (KEPT_BYTES - 1))
        tail.drained()

        assert tail.text() == "a" + "b" * (KEPT_BYTES - 1)
        tail.close()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\tand ü", "two\nlines\tand ü"),
        ("\x1b[2Jgone\r\x07", "\\x1b[2Jgone\\r\\x07"),
        ("\u202egnp.exe \x9b31m \ud800", "\\u202egnp.exe \\x9b31m \\ud800"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_excerpt_is_the_last_lines_and_says_what_it_leaves_out() -> None:
    assert excerpt("") == []
    assert excerpt("\n \n") == []
    assert excerpt("a\n\nb\n") == ["a", "", "b"]
    assert excerpt("x" * 501) == ["x" * 500 + "..."]
    assert excerpt("\n".join(map(str, range(50)))) == ["(10 lines before these)", *map(str, range(10, 50))]

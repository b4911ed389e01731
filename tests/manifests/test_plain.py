"""Text of others on a terminal: nothing in it moves the cursor, hides letters or turns their order."""

import pytest

from manifests.plain import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x1b[31mred", "\ufffd[2J\ufffd[31mred"),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("\x9b2J", "\ufffd2J"),
        ("good\rbad\b\x7f\0", "good\ufffdbad\ufffd\ufffd\ufffd"),
        ("\u202eevil\u2066\u200b\u2028", "\ufffdevil\ufffd\ufffd\ufffd"),
        ("\ud800", "\ufffd"),
        ("one\n\ttwo", "one\n two"),
        ("größe 模型 \u3000\u00a0… ›ab‹", "größe 模型 \u3000\u00a0… ›ab‹"),
    ],
)
def test_what_steers_a_terminal_is_replaced_and_all_else_stays(text: str, shown: str) -> None:
    assert plain(text) == shown

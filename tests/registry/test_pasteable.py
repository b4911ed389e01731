"""Hints that can be pasted: every command of `spm-registry` in them says where the registry is."""

import argparse
from pathlib import Path

import pytest

from registry.pasteable import pasteable

HERE = argparse.Namespace(root=Path("/srv/our spm"))
COPY = argparse.Namespace(root=None, draft=Path("stick"))


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("see `spm-registry root show`", HERE, "see `spm-registry root show --root '/srv/our spm'`"),
        ("`spm-registry root sign ana.key`", COPY, "`spm-registry root sign ana.key --draft stick`"),
        ("`spm-registry root discard`", COPY, "`spm-registry root discard --root DIR`"),
        ("`spm-registry key list`, then", None, "`spm-registry key list --root DIR`, then"),
        ("`spm-registry root show --root x`", HERE, "`spm-registry root show --root x`"),
        ("`spm-registry root init --help` shows", HERE, "`spm-registry root init --help` shows"),
        ("make one with `spm keys new`", HERE, "make one with `spm keys new`"),
    ],
)
def test_a_command_in_a_hint_says_where(text: str, options: argparse.Namespace | None, expected: str) -> None:
    assert pasteable(text, options) == expected

"""Passphrases from a terminal or a file descriptor, never from an argument or the environment."""

import argparse
import getpass
import os
import sys

from manifests.errors import UsageError

MAX_PASSPHRASE = 1023
"""The most that OpenSSL takes."""


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-fd", metavar="N", type=int, help="read the passphrase from file descriptor N (default: ask)"
    )


def read(descriptor: int | None, prompt: str, *, is_new: bool = False) -> bytes:
    """Return a passphrase.

    Raises: UsageError when there is neither a terminal nor a descriptor, or two tries differ.
    """
    if descriptor is not None:
        given = _first_line(descriptor)
    elif sys.stdin.isatty():
        given = _asked(prompt)
        if is_new and _asked("Again: ") != given:
            raise UsageError("the two passphrases differ; no key was made")
    else:
        or_none = ", or `--no-passphrase` to leave the key unencrypted" if is_new else ""
        raise UsageError(
            "a passphrase is needed and there is no terminal to ask on", hint=f"use `--passphrase-fd N`{or_none}"
        )
    if not given:
        raise UsageError("the passphrase is empty")
    if len(given) > MAX_PASSPHRASE:
        raise UsageError(f"the passphrase has more than the {MAX_PASSPHRASE} bytes allowed")
    return given


def _first_line(descriptor: int) -> bytes:
    """Return what stands before the first line end; a pipe may bring it in pieces."""
    data = b""
    try:
        while b"\n" not in data and len(data) <= MAX_PASSPHRASE + 1:
            if not (piece := os.read(descriptor, MAX_PASSPHRASE)):
                break
            data += piece
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no descriptor"
        raise UsageError(f"file descriptor {descriptor} cannot be read: {why}") from error
    return data.partition(b"\n")[0].removesuffix(b"\r")


def _asked(prompt: str) -> bytes:
    try:
        return getpass.getpass(prompt).encode()
    except EOFError as error:
        raise UsageError("no passphrase was given") from error

"""Passphrases from a terminal or a file descriptor, never from an argument or the environment."""

import argparse
import getpass
import os
import sys

from manifests.errors import UsageError

MAX_PASSPHRASE = 1024


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passphrase-fd", metavar="N", type=int, help="read the passphrase from file descriptor N (default: ask)"
    )


def read(descriptor: int | None, prompt: str, *, is_new: bool = False) -> bytes:
    """Return a passphrase.

    Raises: UsageError when there is neither a terminal nor a descriptor, or two tries differ.
    """
    if descriptor is not None:
        try:
            given = os.read(descriptor, MAX_PASSPHRASE).strip(b"\r\n")
        except OSError as error:
            raise UsageError(f"file descriptor {descriptor} cannot be read: {os.strerror(error.errno or 0)}") from error
    elif sys.stdin.isatty():
        given = getpass.getpass(prompt).encode()
        if is_new and getpass.getpass("Again: ").encode() != given:
            raise UsageError("the two passphrases differ; no key was made")
    else:
        raise UsageError("a passphrase is needed and there is no terminal to ask on", hint="use `--passphrase-fd N`")
    if not given:
        raise UsageError("the passphrase is empty")
    return given

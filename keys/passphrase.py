"""Passphrases from a terminal or a file descriptor, never from an argument or the environment. Opens no key."""

import getpass
import os
import sys

from manifests.errors import UsageError

MAX_PASSPHRASE = 1023
"""The most that OpenSSL takes."""


class Passphrases:
    """Where passphrases come from: one after the other; on a descriptor, each is a line."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self._rest = b""

    def read(self, prompt: str, *, is_new: bool = False) -> bytes:
        """Return the next passphrase.

        Raises: UsageError when there is neither a terminal nor a descriptor, or two tries differ.
        """
        given = self._given(prompt, is_new=is_new)
        if not given:
            raise UsageError("the passphrase is empty")
        if len(given) > MAX_PASSPHRASE:
            raise UsageError(f"the passphrase has more than the {MAX_PASSPHRASE} bytes allowed")
        return given

    def _given(self, prompt: str, *, is_new: bool) -> bytes:
        if self._descriptor is not None:
            return self._next_line(self._descriptor)
        if not sys.stdin.isatty():
            or_none = ", or `--no-passphrase` to leave the key unencrypted" if is_new else ""
            raise UsageError(
                "a passphrase is needed and there is no terminal to ask on", hint=f"use `--passphrase-fd N`{or_none}"
            )
        given = _asked(prompt)
        if is_new and _asked("Again: ") != given:
            raise UsageError("the two passphrases differ; no key was made")
        return given

    def _next_line(self, descriptor: int) -> bytes:
        """Return what stands before the next line end; a pipe may bring it in pieces."""
        data = self._rest
        try:
            while b"\n" not in data and len(data) <= MAX_PASSPHRASE + 1:
                if not (piece := os.read(descriptor, MAX_PASSPHRASE)):
                    break
                data += piece
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no descriptor"
            raise UsageError(f"file descriptor {descriptor} cannot be read: {why}") from error
        line, _, self._rest = data.partition(b"\n")
        return line.removesuffix(b"\r")


def read(descriptor: int | None, prompt: str, *, is_new: bool = False) -> bytes:
    """Return the one passphrase that a command needs.

    Raises: as `Passphrases.read`.
    """
    return Passphrases(descriptor).read(prompt, is_new=is_new)


def _asked(prompt: str) -> bytes:
    try:
        return getpass.getpass(prompt).encode()
    except EOFError as error:
        raise UsageError("no passphrase was given") from error

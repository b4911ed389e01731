"""Commands named in hints, made ready to paste: each gets the folder that the person gave. Runs none."""

import argparse
import re
import shlex

_COMMAND = re.compile(r"`spm-registry (?:root|keyring|key|token|loader-conf) [^`]+`")
_OF_A_COPY = re.compile(r"`spm-registry root (?:sign|show)\b")
_PLACED = re.compile(r" --(?:root|draft|help)\b")


def pasteable(text: str, options: argparse.Namespace | None) -> str:
    """Return a text whose commands of `spm-registry` say where the registry is, as far as that is known."""
    return _COMMAND.sub(lambda found: _placed(found[0], options), text)


def _placed(command: str, options: argparse.Namespace | None) -> str:
    if _PLACED.search(command):
        return command
    root, draft = getattr(options, "root", None), getattr(options, "draft", None)
    if root is None and draft is not None and _OF_A_COPY.match(command):
        return f"{command[:-1]} --draft {shlex.quote(str(draft))}`"
    return f"{command[:-1]} --root {'DIR' if root is None else shlex.quote(str(root))}`"

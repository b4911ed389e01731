"""What a command says: results on stdout, notes about them on stderr, in the order in which they were said."""

import argparse
import json
import sys
from typing import Any

from manifests.plain import plain
from registry.pasteable import pasteable


def show(text: str) -> None:
    """Print a result."""
    print(plain(text))


def show_json(value: dict[str, Any]) -> None:
    """Print a result as one JSON object."""
    print(json.dumps(value))


def note(text: str, options: argparse.Namespace | None = None) -> None:
    """Tell a person something about what was shown; with `options`, the commands in it are ready to paste."""
    # Where both go to one file, a note must not overtake what it speaks of.
    sys.stdout.flush()
    print(plain(text if options is None else pasteable(text, options)), file=sys.stderr)

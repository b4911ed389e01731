"""What a command says: results on stdout, notes about them on stderr, in the order in which they were said."""

import json
import sys
from typing import Any


def show(text: str) -> None:
    """Print a result."""
    print(text)


def show_json(value: dict[str, Any]) -> None:
    """Print a result as one JSON object."""
    print(json.dumps(value, ensure_ascii=False))


def note(text: str) -> None:
    """Tell a person something about what was shown."""
    # Where both go to one file, a note must not overtake what it speaks of.
    sys.stdout.flush()
    print(text, file=sys.stderr)

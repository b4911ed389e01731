"""runs.jsonl: one line for each worker that started: what ran, on what, behind which walls. Never read back here."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RUNS_FILE = "runs.jsonl"
WRITTEN = "written"
NOT_WRITABLE = "not writable"


def append(root: Path, record: dict[str, Any]) -> str:
    """Append a record to the store's `runs.jsonl` and return what became of it: `written` or `not writable`."""
    line = json.dumps({"_type": "spm.run/1", **record}, separators=(",", ":")) + "\n"
    try:
        # One write of one line in append mode: hosts that start workers at once do not mix theirs.
        descriptor = os.open(
            root / RUNS_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644
        )
    except OSError:
        return NOT_WRITABLE
    with open(descriptor, "wb", buffering=0) as file:
        try:
            written = file.write(line.encode())
        except OSError:
            return NOT_WRITABLE
    return WRITTEN if written == len(line.encode()) else NOT_WRITABLE


def timestamp(at: float) -> str:
    """Return seconds since 1970 as an RFC 3339 UTC time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

"""The registry's log: one JSON object a line, to stderr. Chooses nothing to log."""

import json
import logging
import sys
from datetime import UTC, datetime


class JsonLines(logging.Formatter):
    """One record on one line, a traceback included."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        value: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        value |= getattr(record, "facts", {})
        if record.exc_info:
            value["trace"] = self.formatException(record.exc_info)
        return json.dumps(value, ensure_ascii=False, default=str)


def log_to_stderr() -> None:
    """Send everything from warnings up to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)

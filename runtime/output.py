"""What a worker prints, read for as long as it prints. Keeps the last of it and believes none."""

import os
import select
import threading
from typing import IO

KEPT_BYTES = 8 << 10
WAIT_SECONDS = 10.0
SHOWN_LINES = 40
SHOWN_LETTERS = 500

_CHUNK = 4 << 10
_PIPE_BYTES = 64 << 10


class Tail:
    """Reads what a worker prints for as long as it prints, and keeps the last of it."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._lock = threading.Lock()
        self._kept = bytearray()
        os.set_blocking(stream.fileno(), False)
        self._thread = threading.Thread(target=self._drain, name="spm-worker-output", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return the last of what was printed until now."""
        with self._lock:
            self._take()
            return self._kept.decode(errors="replace")

    def drained(self) -> None:
        """Wait, a little, for what an ended worker printed last."""
        self._thread.join(1.0)

    def close(self) -> None:
        self._thread.join(WAIT_SECONDS)
        self._stream.close()

    def _drain(self) -> None:
        waiting = select.poll()
        waiting.register(self._stream, select.POLLIN)
        is_open = True
        while is_open:
            waiting.poll()
            with self._lock:
                is_open = self._take()

    def _take(self) -> bool:
        """Take what is there, a full pipe at most, and tell whether more may come."""
        for _ in range(_PIPE_BYTES // _CHUNK):
            data = self._stream.read(_CHUNK)
            if not data:
                # None: nothing now; no bytes: nothing ever again.
                return data is None
            self._kept += data
            del self._kept[:-KEPT_BYTES]
        return True


def printable(text: str) -> str:
    """Return text from a plugin as a terminal may show it: control characters but line breaks and tabs escaped."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else letter.encode("unicode_escape").decode()
        for letter in text
    )


def excerpt(text: str) -> list[str]:
    """Return the last lines of a plugin's text as a terminal may show them, and how many were left out."""
    lines = printable(text.rstrip("\n")).split("\n") if text.strip() else []
    shown = [line if len(line) <= SHOWN_LETTERS else line[:SHOWN_LETTERS] + "..." for line in lines[-SHOWN_LINES:]]
    return [f"({len(lines) - SHOWN_LINES} lines before these)", *shown] if lines[SHOWN_LINES:] else shown

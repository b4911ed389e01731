"""What a worker prints, read for as long as it prints. Keeps the last of it and believes none."""

import threading
from collections import deque
from typing import IO

KEPT_BYTES = 8 << 10
WAIT_SECONDS = 10.0

_CHUNK = 4 << 10


class Tail:
    """Reads what a worker prints for as long as it prints, and keeps the last of it."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._kept: deque[bytes] = deque(maxlen=KEPT_BYTES // _CHUNK)
        self._thread = threading.Thread(target=self._drain, name="spm-worker-output", daemon=True)
        self._thread.start()

    def text(self) -> str:
        return b"".join(self._kept).decode(errors="replace")[-KEPT_BYTES:]

    def drained(self) -> None:
        """Wait, a little, for what an ended worker printed last."""
        self._thread.join(1.0)

    def close(self) -> None:
        self._thread.join(WAIT_SECONDS)
        self._stream.close()

    def _drain(self) -> None:
        while data := self._stream.read(_CHUNK):
            self._kept.append(data)

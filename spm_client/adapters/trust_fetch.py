"""The `Fetch` of `keys.trust` over a source: what is held is not sent again, and all of it together has a deadline."""

import time
from collections.abc import Callable

from manifests.errors import RegistryTimeout
from spm_client.adapters.source import Source

TOTAL_SECONDS = 600.0
"""For all signed metadata and shards of one command; one document has its own, shorter time."""
_TIMESTAMP = "timestamp.json"


class TrustFetch:
    """Answers with what `held` has under a path, else with what the source sends. Believes neither."""

    def __init__(self, source: Source, timestamp: bytes | None, held: Callable[[str], bytes | None]) -> None:
        self._source = source
        self._timestamp = timestamp
        self._held = held
        self._deadline = time.monotonic() + TOTAL_SECONDS

    def __call__(self, path: str, max_bytes: int) -> bytes:
        if (found := self._held(path)) is not None:
            return found
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise RegistryTimeout(
                f"the registry's signed index took more than {TOTAL_SECONDS:.0f} s and was given up",
                hint="run the command again when the network is better",
                path=path,
            )
        timestamp = self._timestamp if path == _TIMESTAMP else None
        return self._source.metadata(path, max_bytes=max_bytes, held=timestamp, seconds=left)

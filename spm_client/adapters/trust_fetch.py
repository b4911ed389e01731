"""The `Fetch` of `keys.trust` over a source: what is held is not sent again, and all of it together has a deadline."""

import time
from collections.abc import Callable, Iterable

from manifests.errors import RegistryTimeout, SpmError
from spm_client.adapters.at_once import at_once
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
        self._ahead: dict[tuple[str, int], bytes | SpmError] = {}
        self._deadline = time.monotonic() + TOTAL_SECONDS

    @property
    def waiting(self) -> int:
        """Return the bytes of all that was fetched ahead and not asked for yet."""
        return sum(len(answer) for answer in self._ahead.values() if isinstance(answer, bytes))

    def ahead(self, files: Iterable[tuple[str, int]]) -> None:
        """Fetch what will be asked for next, several at once: paths with the bytes allowed. An answer is used once."""
        missing = []
        for file in dict.fromkeys(files):
            if file not in self._ahead and (found := self._held(file[0])) is not None:
                self._ahead[file] = found
            elif file not in self._ahead:
                missing.append(file)
        if len(missing) > 1:
            with at_once(self._answer, missing) as answers:
                for file, answer in zip(missing, answers, strict=True):
                    self._ahead[file] = answer.result()

    def _answer(self, file: tuple[str, int]) -> bytes | SpmError:
        try:
            return self(*file)
        except SpmError as error:
            return error

    def __call__(self, path: str, max_bytes: int) -> bytes:
        if (answer := self._ahead.pop((path, max_bytes), None)) is not None:
            if isinstance(answer, SpmError):
                raise answer
            return answer
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

"""Fetching signed metadata: what is held is not asked for, `timestamp.json` only if it changed, and all in one time."""

from collections.abc import Iterator

import pytest

from manifests.errors import RegistryTimeout
from spm_client.adapters import trust_fetch
from spm_client.adapters.trust_fetch import TrustFetch


class Recorded:
    """A source that has everything, and writes down what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, bytes | None]] = []
        self.seconds: list[float] = []

    def document(self, path: str, *, max_bytes: int) -> bytes:
        raise AssertionError(path)

    def metadata(self, path: str, *, max_bytes: int, held: bytes | None = None, seconds: float | None = None) -> bytes:
        self.asked.append((path, max_bytes, held))
        self.seconds.append(seconds or 0.0)
        return b"sent"

    def blob(self, sha256: str, *, size: int) -> Iterator[bytes]:
        raise AssertionError(sha256)


def test_only_the_timestamp_is_asked_for_conditionally() -> None:
    source = Recorded()
    fetch = TrustFetch(source, b"held", lambda path: b"kept" if path == "targets/x" else None)

    found = [fetch(path, 10) for path in ("2.root.json", "timestamp.json", "targets/x")]

    assert found == [b"sent", b"sent", b"kept"]
    assert source.asked == [("2.root.json", 10, None), ("timestamp.json", 10, b"held")]
    assert all(0 < seconds <= trust_fetch.TOTAL_SECONDS for seconds in source.seconds)


def test_all_metadata_of_a_command_has_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust_fetch, "TOTAL_SECONDS", 0.0)
    source = Recorded()

    with pytest.raises(RegistryTimeout) as refused:
        TrustFetch(source, None, lambda _: None)("timestamp.json", 10)

    assert refused.value.message == "the registry's signed index took more than 0 s and was given up"
    assert refused.value.hint == "run the command again when the network is better"
    assert source.asked == []

"""Fetching signed metadata: what is held is not asked for, `timestamp.json` only if it changed, and all in one time."""

from collections.abc import Iterator
from threading import Lock
from time import sleep

import pytest

from manifests.errors import NotFound, RegistryTimeout
from spm_client.adapters import at_once, trust_fetch
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

    def blob(self, sha256: str, *, size: int, offset: int = 0) -> Iterator[bytes]:
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


class Broken(Recorded):
    """A source that refuses one path."""

    def metadata(self, path: str, *, max_bytes: int, held: bytes | None = None, seconds: float | None = None) -> bytes:
        sent = super().metadata(path, max_bytes=max_bytes, held=held, seconds=seconds)
        if path == "b":
            raise NotFound("there is no b")
        return sent


def test_what_was_fetched_ahead_is_answered_once_and_then_asked_for_again() -> None:
    source = Recorded()
    fetch = TrustFetch(source, None, lambda path: b"kept" if path == "c" else None)

    fetch.ahead([("a", 10), ("b", 20), ("c", 30), ("a", 10)])

    assert fetch.waiting == 12
    assert sorted(source.asked) == [("a", 10, None), ("b", 20, None)]
    assert [fetch("a", 10), fetch("b", 20), fetch("c", 30)] == [b"sent", b"sent", b"kept"]
    assert len(source.asked) == 2
    assert fetch.waiting == 0
    assert fetch("a", 10) == b"sent"
    assert len(source.asked) == 3


def test_what_was_fetched_ahead_within_other_bytes_is_no_answer() -> None:
    source = Recorded()
    fetch = TrustFetch(source, None, lambda _: None)
    fetch.ahead([("a", 10), ("b", 20)])

    fetch("a", 11)

    assert source.asked[-1] == ("a", 11, None)


def test_one_file_alone_is_not_fetched_ahead() -> None:
    source = Recorded()

    TrustFetch(source, None, lambda _: None).ahead([("a", 10)])

    assert source.asked == []


def test_a_refusal_ahead_is_raised_where_the_file_is_asked_for() -> None:
    source = Broken()
    fetch = TrustFetch(source, None, lambda _: None)
    fetch.ahead([("a", 10), ("b", 10)])

    assert fetch("a", 10) == b"sent"
    with pytest.raises(NotFound) as refused:
        fetch("b", 10)

    assert refused.value.message == "there is no b"
    assert len(source.asked) == 2


def test_no_more_than_eight_are_fetched_at_once() -> None:
    class Slow(Recorded):
        now, most, lock = 0, 0, Lock()

        def metadata(
            self, path: str, *, max_bytes: int, held: bytes | None = None, seconds: float | None = None
        ) -> bytes:
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)
            sleep(0.01)
            with self.lock:
                self.now -= 1
            return super().metadata(path, max_bytes=max_bytes, held=held, seconds=seconds)

    source = Slow()

    TrustFetch(source, None, lambda _: None).ahead((f"{number}", 10) for number in range(40))

    assert len(source.asked) == 40
    assert 1 < source.most <= at_once.PARALLEL

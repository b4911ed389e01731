"""Servers that send a byte now and then, where a read time-out never strikes: each is given up at the deadline."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from manifests.errors import RegistryTimeout
from spm_client.adapters import deadline, wire
from spm_client.adapters.http import RegistryClient

Serve = Callable[[bytes, bytes], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that serves a beginning and then a piece every 20 ms, and gives the URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    is_done = threading.Event()

    def start(beginning: bytes, piece: bytes) -> str:
        def drip() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(beginning)
                    while not is_done.wait(0.02):
                        connection.sendall(piece)

        threads.append(threading.Thread(target=drip))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    threads: list[threading.Thread] = []
    yield start
    is_done.set()
    listener.close()
    for thread in threads:
        thread.join(timeout=5)


@pytest.mark.parametrize(
    ("beginning", "piece", "message"),
    [
        (b"HTTP/1.1 200 OK\r\nX-A: ", b"a", "the registry at `{url}` did not answer in time"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "the registry at `{url}` did not answer in time"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x", "`{url}/x` was too slow and was given up"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", b"x", "`{url}/x` was too slow and was given up"),
        (b"HTTP/1.0 200 OK\r\n\r\n", b"x", "`{url}/x` was too slow and was given up"),
    ],
    ids=["header", "continue", "chunk-extension", "length", "until-close"],
)
def test_a_server_that_drips_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, beginning: bytes, piece: bytes, message: str
) -> None:
    monkeypatch.setattr(deadline, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(wire, "TOTAL_SECONDS", 0.3)
    url = serve(beginning, piece)
    began = time.monotonic()

    with RegistryClient(url) as client, pytest.raises(RegistryTimeout) as refused:
        client.document("/x", max_bytes=1 << 20)

    assert refused.value.message == message.format(url=url)
    assert time.monotonic() - began < 5

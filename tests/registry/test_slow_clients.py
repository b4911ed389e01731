"""Clients that send slowly, or much at once: what they may hold of a registry really served, and for how long."""

import json
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from registry.api.release_routes import MAX_YANKERS
from registry.api.upload_routes import MAX_OPENERS, MAX_SENDERS
from registry.services.policy import Role
from tests.registry.served import Answer, ask, first_line, start, stop
from tests.registry.team import FILES, Clock, Team, digest, found_registry, join_team, manifest_of

pytestmark = pytest.mark.e2e

WORKERS = 2
DATA = FILES["weights.bin"]


@dataclass
class Served:
    """A running registry with one release."""

    team: Team
    pid: int
    port: int

    def ask(self, method: str, path: str, body: bytes = b"", token: str | None = None) -> Answer:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return ask(f"http://127.0.0.1:{self.port}", method, path, body, **headers)

    def stall(self, count: int, method: str, path: str, token: str, length: int) -> list[socket.socket]:
        """Open connections that each declare a body and send one byte of it."""
        lines = (f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", f"Content-Length: {length}")
        connections = [socket.create_connection(("127.0.0.1", self.port), timeout=40) for _ in range(count)]
        for connection in connections:
            connection.sendall("\r\n".join((*lines, "", "x")).encode())
        return connections

    def seconds_to_read(self) -> float:
        started = time.monotonic()
        for path in ("/healthz", "/v1/index/audio-encoder.json", "/v1/registry") * 3:
            assert self.ask("GET", path).status == 200
        return time.monotonic() - started

    def resident_bytes(self) -> int:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        pages = [int(Path(f"/proc/{child}/statm").read_text().split()[1]) for child in children]
        return sum(pages) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve one registry for all tests of this file."""
    folder = tmp_path_factory.mktemp("slow")
    admin = found_registry(folder / "registry", folder / "keys", int(time.time()))
    team = join_team(folder / "registry", folder / "keys", admin, Clock(int(time.time())))
    team.publish(admin, manifest_of())
    process = start(team.root, "--bind", "127.0.0.1:0", "--workers", str(WORKERS))
    found = re.search(r"http://127\.0\.0\.1:([0-9]+)", first_line(process))
    assert found is not None
    yield Served(team=team, pid=process.pid, port=int(found[1]))
    code, errors = stop(process)
    team.site.database.close()
    assert (code, errors) == (0, "")


def _status(connection: socket.socket) -> int:
    """Return the status of the one answer, after which the server closes the connection."""
    with connection, connection.makefile("rb") as answer:
        return int(answer.read().split()[1])


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/uploads", 403),
        ("PUT", f"/v1/uploads/{'0' * 32}/blobs/{'0' * 64}", 403),
        ("DELETE", "/v1/plugins/audio-encoder/1.0.0/yank", 403),
        ("GET", "/v1/whoami", 200),
        ("GET", "/v1/nothing", 404),
    ],
)
def test_a_body_that_nobody_wants_is_awaited_only_for_a_moment(
    served: Served, method: str, path: str, status: int
) -> None:
    reader = served.team.token("rita", Role.READER)
    started = time.monotonic()
    stalled = served.stall(300, method, path, reader, 8_000_000)

    took = served.seconds_to_read()
    statuses = {_status(connection) for connection in stalled}

    assert statuses == {status}
    assert took < 5
    assert time.monotonic() - started < 20


def test_who_may_publish_holds_some_places_for_a_time(served: Served) -> None:
    admin = served.team.admin
    upload = served.team.submit(admin, manifest_of(version="1.4.0")).get_json()["upload"]
    stalled = {
        what: served.stall(200, method, path, admin, length)
        for what, method, path, length in (
            ("opener", "POST", "/v1/uploads", 8_000_000),
            ("yanker", "POST", "/v1/plugins/audio-encoder/1.0.0/yank", 1000),
            ("sender", "PUT", f"/v1/uploads/{upload}/blobs/{digest(DATA)}", len(DATA)),
        )
    }

    took = served.seconds_to_read()
    busy = [served.ask("POST", "/v1/uploads", b"{}", admin) for _ in range(8)]
    statuses = {what: Counter(map(_status, connections)) for what, connections in stalled.items()}

    assert took < 5
    assert {(answer.status, answer.headers["retry-after"]) for answer in busy} == {(503, "2")}
    assert json.loads(busy[0].data)["detail"] == f"this registry is busy with {MAX_OPENERS} publishes that begin"
    given_up = {what: count.pop(408) for what, count in statuses.items()}
    assert given_up == {
        "opener": WORKERS * MAX_OPENERS,
        "yanker": WORKERS * MAX_YANKERS,
        "sender": WORKERS * MAX_SENDERS,
    }
    assert {what: set(count) for what, count in statuses.items()} == {what: {503} for what in statuses}
    assert served.ask("POST", "/v1/uploads", b"{}", admin).status == 400


def test_a_body_that_came_too_slowly_is_told_so(served: Served) -> None:
    (connection,) = served.stall(1, "POST", "/v1/uploads", served.team.admin, 1000)

    with connection, connection.makefile("rb") as answer:
        head, _, body = answer.read().partition(b"\r\n\r\n")

    assert head.split(b"\r\n")[0] == b"HTTP/1.1 408 Request Timeout"
    assert b"connection: close" in head.lower()
    told = json.loads(body)
    assert (told["type"], told["detail"]) == (
        "slow-body",
        "the request body came too slowly and was given up after 1 bytes",
    )


def test_large_requests_at_once_take_no_memory_beyond_their_places(served: Served) -> None:
    size = 8 << 20
    body = (b'{"manifests":[' + b"0," * size)[: size - 2] + b"]}"
    before = peak = served.resident_bytes()

    with ThreadPoolExecutor(100) as pool:
        answers = [pool.submit(_publish, served, body) for _ in range(100)]
        while not all(answer.done() for answer in answers):
            peak = max(peak, served.resident_bytes())
            time.sleep(0.05)

    assert {answer.result() for answer in answers} <= {400, 503, None}
    # A body, and once more while it is put together.
    assert peak - before < 2 * WORKERS * MAX_OPENERS * size


def _publish(served: Served, body: bytes) -> int | None:
    """Return the status, or None where the server did not want the whole body and the answer was lost with it."""
    try:
        return served.ask("POST", "/v1/uploads", body, served.team.admin).status
    except OSError:
        return None

"""A registry really served, as its own process, asked over real sockets."""

import http.client
import json
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tuf.ngclient import Updater

from tests.registry.served import Answer, ask, first_line, start, stop
from tests.registry.team import Clock, Team, digest, entry_of, found_registry, join_team, manifest_of

pytestmark = pytest.mark.e2e

BIG = random.Random(1).randbytes(12 << 20)
FILES = {"audio_encoder.py": b"def create(context):\n    return abs\n", "weights.bin": BIG}


@dataclass
class Served:
    """A running registry, and how to ask it."""

    team: Team
    process: subprocess.Popen[str]
    line: str
    port: int

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body, named)
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def write(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.ask(method, path, body, Authorization=f"Bearer {self.team.admin}", **headers)

    def open_upload(self, version: str) -> str:
        manifest = manifest_of(FILES, version=version).to_bytes()
        body = json.dumps({"manifests": [entry_of(manifest, self.team.ext.sign(manifest))]})
        return str(json.loads(self.write("POST", "/v1/uploads", body).data)["upload"])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve one registry with two workers for all tests of this file."""
    folder = tmp_path_factory.mktemp("served")
    admin = found_registry(folder / "registry", folder / "keys", int(time.time()))
    team = join_team(folder / "registry", folder / "keys", admin, Clock(int(time.time())))
    process = start(team.root, "--bind", "127.0.0.1:0", "--workers", "2")
    line = first_line(process)
    found = re.search(r"http://127\.0\.0\.1:([0-9]+)", line)
    assert found is not None, process.stderr.read() if process.stderr else line
    yield Served(team=team, process=process, line=line, port=int(found[1]))
    code, errors = stop(process)
    team.site.database.close()
    assert (code, errors) == (0, "")


def test_it_says_one_line_once_it_listens(served: Served) -> None:
    where = f"from {served.team.root} at http://127.0.0.1:{served.port}"
    there = "; loader.conf sends clients to http://127.0.0.1:8080"

    assert served.line == f"Serving the registry `team.local` {where} (2 workers){there}; Ctrl-C stops it\n"
    assert served.ask("GET", "/healthz").status == 200


def test_a_port_that_is_taken_is_refused(served: Served) -> None:
    process = start(served.team.root, "--bind", f"127.0.0.1:{served.port}")

    out, err = process.communicate(timeout=20)

    assert (process.returncode, out) == (31, "")
    assert err == (
        f"error[bind]: cannot listen on 127.0.0.1:{served.port}: Address already in use\n"
        "  hint: stop what listens there, or choose another address with `--bind`\n"
    )


def test_a_release_goes_in_by_parts_and_comes_out_whole(served: Served) -> None:
    upload = served.open_upload("1.0.0")
    path = f"/v1/uploads/{upload}/blobs/{digest(BIG)}"
    small = FILES["audio_encoder.py"]
    served.write("PUT", f"/v1/uploads/{upload}/blobs/{digest(small)}", small)

    for first in range(0, len(BIG), 5 << 20):
        part = BIG[first : first + (5 << 20)]
        content_range = f"bytes {first}-{first + len(part) - 1}/{len(BIG)}"
        assert served.write("PUT", path, part, Content_Range=content_range).status == 200
    committed = served.write("POST", f"/v1/uploads/{upload}/commit")

    assert committed.status == 201
    whole = served.ask("GET", f"/v1/blobs/{digest(BIG)}")
    assert (whole.status, whole.data == BIG) == (200, True)
    part_of_it = served.ask("GET", f"/v1/blobs/{digest(BIG)}", Range="bytes=5000000-9000000")
    assert (part_of_it.status, part_of_it.data == BIG[5000000:9000001]) == (206, True)
    head = served.ask("HEAD", f"/v1/blobs/{digest(BIG)}")
    assert (head.status, head.headers["content-length"], head.data) == (200, str(len(BIG)), b"")


def test_an_unchanged_index_is_not_sent_again(served: Served) -> None:
    first = served.ask("GET", "/v1/index/audio-encoder.json")

    again = served.ask("GET", "/v1/index/audio-encoder.json", If_None_Match=first.headers["etag"])

    assert (first.status, again.status, again.data) == (200, 304, b"")


def test_python_tufs_own_client_accepts_what_is_served(served: Served, tmp_path: Path) -> None:
    served.team.publish(served.team.admin, manifest_of(version="0.9.0"))
    base = f"http://127.0.0.1:{served.port}/v1/tuf/"
    root = served.ask("GET", "/v1/tuf/1.root.json").data
    (tmp_path / "targets").mkdir()

    updater = Updater(str(tmp_path), base, str(tmp_path / "targets"), f"{base}targets/", bootstrap=root)
    updater.refresh()
    found = updater.get_targetinfo("index/audio-encoder.json")

    assert found is not None
    shard = Path(updater.download_target(found)).read_bytes()
    assert shard == served.ask("GET", "/v1/index/audio-encoder.json").data
    assert updater.get_targetinfo("index/unknown.json") is None


def test_every_worker_sees_a_change_at_once(served: Served) -> None:
    path = "/v1/plugins/audio-encoder/1.0.0/yank"
    for number in range(5):
        served.write("POST", path, json.dumps({"reason": f"reason {number}"}))
        seen = {served.ask("GET", "/v1/index/audio-encoder.json").data.count(b"reason %d" % number) for _ in range(8)}
        assert seen == {1}
    served.write("DELETE", path)


def test_a_cut_connection_leaves_what_had_come(served: Served) -> None:
    stranger = random.Random(2).randbytes(4 << 20)
    manifest = manifest_of({"weights.bin": stranger}, version="1.2.0").to_bytes()
    body = json.dumps({"manifests": [entry_of(manifest, served.team.ext.sign(manifest))]})
    upload = str(json.loads(served.write("POST", "/v1/uploads", body).data)["upload"])
    path = f"/v1/uploads/{upload}/blobs/{digest(stranger)}"
    lines = (f"PUT {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {served.team.admin}", "Content-Length: 4194304")
    head = "\r\n".join((*lines, "", ""))

    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(head.encode() + stranger[: 1 << 20])
        _until(lambda: served.write("HEAD", path).headers["upload-offset"] != "0")
        busy = served.write("PUT", path, b"x", Content_Range="bytes 0-0/4194304")
    _until(lambda: served.write("HEAD", path).headers["upload-offset"] == str(1 << 20))
    # The server may need a moment to notice the cut; until then the file is busy.
    _until(lambda: _send_rest(served, path, stranger, 1 << 20).status == 200)

    assert json.loads(busy.data)["type"] == "upload-busy"
    assert served.write("HEAD", path).headers["upload-offset"] == "4194304"


def _send_rest(served: Served, path: str, data: bytes, first: int) -> Answer:
    return served.write("PUT", path, data[first:], Content_Range=f"bytes {first}-{len(data) - 1}/{len(data)}")


def _until(claim: Any) -> None:
    deadline = time.monotonic() + 10
    while not claim():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.02)


def test_a_refused_large_body_is_still_answered(served: Served) -> None:
    upload = served.open_upload("1.3.0")

    wrong = served.write("PUT", f"/v1/uploads/{upload}/blobs/{'0' * 64}", bytes(6 << 20))
    unknown = served.ask("POST", "/v1/uploads", bytes(100_000))

    assert (wrong.status, unknown.status) == (404, 401)


def test_a_chunked_body_is_refused(served: Served) -> None:
    answer = served.write("POST", "/v1/uploads", iter([b"{}"]))

    assert (answer.status, json.loads(answer.data)["type"]) == (411, "length-required")


def test_stalled_downloads_keep_nobody_from_reading(served: Served) -> None:
    request = f"GET /v1/blobs/{digest(BIG)} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    stalled = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(400)]
    for connection in stalled:
        connection.sendall(request)
    time.sleep(0.3)

    started = time.monotonic()
    statuses = {served.ask("GET", path).status for path in ("/healthz", "/v1/index/audio-encoder.json") for _ in "abcd"}
    took = time.monotonic() - started
    for connection in stalled:
        connection.close()

    assert statuses == {200}
    assert took < 5
    _until(lambda: all(served.ask("GET", f"/v1/blobs/{digest(BIG)}").status == 200 for _ in range(6)))


def test_many_readers_and_a_writer_at_once(served: Served) -> None:
    def read(number: int) -> int:
        paths = ("/v1/index/audio-encoder.json", f"/v1/blobs/{digest(FILES['audio_encoder.py'])}", "/v1/registry")
        return served.ask("GET", paths[number % 3]).status

    def write(number: int) -> int:
        path = "/v1/plugins/audio-encoder/1.0.0/yank"
        return served.write("POST", path, json.dumps({"reason": f"round {number}"})).status

    with ThreadPoolExecutor(8) as pool:
        reads = list(pool.map(read, range(120)))
        writes = list(pool.map(write, range(20)))

    assert (set(reads), set(writes)) == ({200}, {200})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(team: Team, number: signal.Signals) -> None:
    process = start(team.root, "--bind", "127.0.0.1:0", "--json")
    told = json.loads(first_line(process))
    process.send_signal(number)

    _, errors = process.communicate(timeout=20)

    assert (process.returncode, errors) == (0, "")
    assert (told["id"], told["pid"], told["workers"]) == ("team.local", process.pid, 1)
    assert told["root"] == str(team.root)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(told["url"].rpartition(":")[2])))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_registry_has_all_in_its_database_file(team: Team, number: signal.Signals) -> None:
    process = start(team.root, "--bind", "127.0.0.1:0", "--json")
    url = json.loads(first_line(process))["url"]
    team.publish(team.admin, manifest_of())
    team.site.database.close()
    path, body = "/v1/plugins/audio-encoder/1.0.0/yank", json.dumps({"reason": "gone"}).encode()
    yanked = ask(url, "POST", path, body, Authorization=f"Bearer {team.admin}")

    process.send_signal(number)
    _, errors = process.communicate(timeout=20)

    assert (yanked.status, process.returncode, errors) == (200, 0, "")
    assert not (team.root / "registry.db-wal").exists()
    with closing(sqlite3.connect(f"file:{team.root}/registry.db?immutable=1", uri=True)) as alone:
        assert alone.execute("SELECT name, version, yanked FROM releases").fetchall() == [
            ("audio-encoder", "1.0.0", "gone")
        ]


def test_a_missing_uploads_folder_is_made_anew(team: Team) -> None:
    (team.root / "uploads").rmdir()

    process = start(team.root, "--bind", "127.0.0.1:0", "--json")
    first_line(process)

    assert (team.root / "uploads").stat().st_mode & 0o777 == 0o700
    assert stop(process) == (0, "")


def test_requests_are_logged_where_that_is_asked_for(team: Team) -> None:
    process = start(team.root, "--bind", "127.0.0.1:0", "--json", "--log-requests")
    url = json.loads(first_line(process))["url"]
    ask(url, "GET", "/v1/registry", Authorization=f"Bearer {team.admin}")

    code, errors = stop(process)

    (line,) = (json.loads(line) for line in errors.splitlines() if "/v1/registry" in line)
    assert code == 0
    assert (line["level"], line["logger"]) == ("info", "granian.access")
    assert re.fullmatch(r"127\.0\.0\.1 GET /v1/registry 200 [0-9.]+ ms", line["message"])
    assert team.admin not in errors


def test_workers_do_not_outlive_a_killed_parent(team: Team) -> None:
    process = start(team.root, "--bind", "127.0.0.1:0", "--json")
    port = int(json.loads(first_line(process))["url"].rpartition(":")[2])
    os.kill(process.pid, signal.SIGKILL)

    process.wait(timeout=20)

    def refuses() -> bool:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            return True
        return False

    _until(refuses)
    process.communicate()

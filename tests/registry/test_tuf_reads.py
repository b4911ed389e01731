"""The signed index over HTTP: immutable but for the timestamp, which is renewed for whoever asks, once."""

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client, TestResponse

from registry.api.fast_reads import FastReads
from registry.services.fresh_timestamp import RETRY_SECONDS
from registry.services.online_key import new_online_pem, newest_online_key
from registry.services.reading import Reader
from registry.services.signed_index import moment
from registry.storage.database import Database
from registry.storage.site import Site, new_site
from tests.registry.roots import HandMadeRoot, keyring_document, publish
from tests.registry.team import Clock, digest, problem
from tests.registry.tuf_client import TufClient

START = 1_800_000_000
HALF_A_DAY = 43_200
TIMESTAMP = "/v1/tuf/timestamp.json"
IMMUTABLE = "public, max-age=31536000, immutable"


def _nobody(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    raise AssertionError("this is the read path's own")


@dataclass
class Worker:
    """One process of the registry: its own connections, its own memory."""

    site: Site
    clock: Clock
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = Client(FastReads(_nobody, Reader(self.site, self.clock)))

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.client.get(path, headers={name.replace("_", "-"): text for name, text in headers.items()})

    def ask(self, path: str) -> tuple[int, bytes]:
        answer = self.get(path)
        return answer.status_code, answer.data

    def version(self) -> int:
        answer = self.get(TIMESTAMP)
        assert answer.status_code == 200, answer.text
        version: int = answer.get_json()["signed"]["version"]
        return version


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    """Give a worker over a registry with a root and one plugin, and a standing clock."""
    with new_site(tmp_path / "registry", new_online_pem()) as site:
        with site.database.writing() as records:
            records.add_registry("team.local", START)
        HandMadeRoot(site, START, bits=2).found()
        publish(site, "log-mel", "first", START)
        yield Worker(site, Clock(START))
        site.database.close()


@pytest.fixture
def second(worker: Worker) -> Iterator[Worker]:
    """Give another worker of the same registry."""
    site = replace(worker.site, database=Database.at(worker.site.root / "registry.db"))
    yield Worker(site, worker.clock)
    site.database.close()


def test_python_tufs_own_client_accepts_what_is_served(worker: Worker, tmp_path: Path) -> None:
    root = worker.get("/v1/tuf/1.root.json").data

    client = TufClient(tmp_path / "client", worker.ask, root, moment(START))

    assert client.target("index/log-mel.json") == worker.get("/v1/index/log-mel.json").data
    assert client.target("keyring.json") == keyring_document()
    assert client.target("index/unknown.json") is None


def test_the_timestamp_is_checked_each_time_by_its_entity_tag(worker: Worker) -> None:
    first = worker.get(TIMESTAMP)
    second = worker.get(TIMESTAMP, If_None_Match=first.headers["ETag"])

    assert (first.status_code, first.headers["Content-Type"]) == (200, "application/json")
    assert first.headers["Cache-Control"] == second.headers["Cache-Control"] == "no-cache"
    assert first.headers["ETag"] == second.headers["ETag"] == f'"{digest(first.data)}"'
    assert (second.status_code, second.data) == (304, b"")


def test_everything_else_never_changes(worker: Worker) -> None:
    shard, keyring = worker.get("/v1/index/log-mel.json").data, keyring_document()
    paths = [f"/v1/tuf/1.{role}.json" for role in ("root", "snapshot", "targets", "bin-0", "bin-1")]
    paths += [
        f"/v1/tuf/targets/{digest(keyring)}.keyring.json",
        f"/v1/tuf/targets/index/{digest(shard)}.log-mel.json",
    ]

    for path in paths:
        answer = worker.get(path)
        again = worker.get(path, If_None_Match=answer.headers["ETag"])
        assert (answer.status_code, again.status_code) == (200, 304), path
        assert answer.headers["Cache-Control"] == again.headers["Cache-Control"] == IMMUTABLE
        assert answer.headers["ETag"] == f'"{digest(answer.data)}"'
        assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("2.root.json", "this registry has no version 2 of its root"),
        ("9.snapshot.json", "this registry has no version 9 of its snapshot"),
        ("1.bin-4.json", "this registry has no version 1 of its bin-4"),
        (f"targets/{'0' * 64}.keyring.json", f"this registry has no keyring sha256:{'0' * 64}"),
        (
            f"targets/index/{'0' * 64}.log-mel.json",
            f"this registry has no index of `log-mel` with sha256:{'0' * 64}",
        ),
        ("root.json", "there is nothing at `/v1/tuf/root.json`"),
        ("1.timestamp.json", "there is nothing at `/v1/tuf/1.timestamp.json`"),
        ("01.root.json", "there is nothing at `/v1/tuf/01.root.json`"),
        ("1.keyring.json", "there is nothing at `/v1/tuf/1.keyring.json`"),
        ("../secret", "there is nothing at `/v1/tuf/../secret`"),
        (f"targets/{'0' * 64}.secret", f"there is nothing at `/v1/tuf/targets/{'0' * 64}.secret`"),
    ],
)
def test_what_is_not_there_is_not_found_and_not_remembered(worker: Worker, path: str, message: str) -> None:
    answer = worker.get(f"/v1/tuf/{path}")

    assert (answer.status_code, problem(answer)["type"], problem(answer)["detail"]) == (404, "not-found", message)
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_registry_without_a_root_has_no_signed_index(tmp_path: Path) -> None:
    with new_site(tmp_path / "registry", new_online_pem()) as site:
        with site.database.writing() as records:
            records.add_registry("team.local", START)

        answer = Worker(site, Clock(START)).get(TIMESTAMP)

        assert (answer.status_code, problem(answer)["detail"]) == (404, "this registry has no signed index yet")
        site.database.close()


def test_a_publish_by_another_worker_is_seen_at_once(worker: Worker, second: Worker) -> None:
    before = worker.version(), second.version()

    publish(worker.site, "log-mel", "second", START)

    assert before == (2, 2)
    assert (worker.version(), second.version()) == (3, 3)


def test_a_newer_root_is_found_at_once(worker: Worker, second: Worker) -> None:
    before = second.get("/v1/tuf/2.root.json").status_code
    root, online = HandMadeRoot(worker.site, START, bits=2), newest_online_key(worker.site)

    root.replace(root.files(2, online, keyring_document(2)), START)

    assert (before, second.get("/v1/tuf/2.root.json").status_code) == (404, 200)


def test_the_timestamp_is_renewed_once_it_has_lived_half_its_life(worker: Worker) -> None:
    seen = []

    for moved in (0, HALF_A_DAY - 1, 1, 0, HALF_A_DAY - 1, 1):
        worker.clock.now += moved
        seen.append(worker.version())

    assert seen == [2, 2, 3, 3, 3, 4]


def test_many_who_ask_at_once_renew_it_once(worker: Worker, second: Worker) -> None:
    worker.clock.now += HALF_A_DAY
    seen: list[int] = []

    def ask(one: Worker) -> None:
        seen.append(one.version())

    threads = [threading.Thread(target=ask, args=(one,)) for one in (worker, second) * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(seen) <= {2, 3}
    assert len(seen) == 16
    assert (worker.version(), second.version()) == (3, 3)


def test_a_locked_database_does_not_turn_a_good_timestamp_into_an_error(
    worker: Worker, second: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    worker.clock.now += HALF_A_DAY

    with caplog.at_level(logging.ERROR, "registry"), second.site.database.writing():
        while_locked = worker.version()
        again = worker.version()
    worker.clock.now += RETRY_SECONDS
    after = worker.version()

    assert (while_locked, again, after) == (2, 2, 3)
    assert [record.getMessage() for record in caplog.records] == [
        f"the index could not be renewed; its timestamp is good until {START + 2 * HALF_A_DAY}"
    ]


def test_what_cannot_be_renewed_is_served_while_it_is_good(worker: Worker, caplog: pytest.LogCaptureFixture) -> None:
    worker.site.online_key.write_bytes(new_online_pem())
    worker.clock.now += 2 * HALF_A_DAY - 1

    with caplog.at_level(logging.ERROR, "registry"):
        good = worker.get(TIMESTAMP)
        worker.clock.now += 1
        over = worker.get(TIMESTAMP)

    assert (good.status_code, over.status_code) == (200, 500)
    assert problem(over)["detail"] == "the registry failed while answering; its log says more"
    assert "does not hold the online key" in str(caplog.records[-1].__dict__["facts"])


def test_a_worker_that_only_reads_needs_neither_tuf_nor_cryptography(worker: Worker) -> None:
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from registry.app import create_app\n"
        "from registry.storage.site import open_site\n"
        f"client = create_app(open_site(Path(sys.argv[1])), lambda: {START}).test_client()\n"
        f"print(client.get('{TIMESTAMP}').status_code, client.get('/v1/tuf/1.root.json').status_code)\n"
        "print([name for name in ('tuf', 'securesystemslib', 'cryptography') if name in sys.modules])"
    )
    (worker.site.root / "loader.conf").touch()

    words = [sys.executable, "-c", script, str(worker.site.root)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)

    assert done.stdout == "200 200\n[]\n"

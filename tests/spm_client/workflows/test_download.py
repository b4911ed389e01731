"""Downloads over real connections that are cut at every place: what has come is not asked for again, nor mixed up."""

import errno
import hashlib
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from manifests.errors import BadResponse, DigestMismatch, LimitReached, RegistryTimeout, SizeMismatch, SpmError
from manifests.manifest import Manifest
from manifests.parts import FileEntry
from spm_client.adapters import wire
from spm_client.adapters.http import RegistryClient
from spm_client.adapters.source import ConnectionFailed, TransferCut
from spm_client.progress import Advance
from spm_client.store.blobs import adopt
from spm_client.store.layout import Layout
from spm_client.store.partial import WORTH_KEEPING
from spm_client.store.staging import staging
from spm_client.workflows import download as download_module
from spm_client.workflows import fetch_blob
from spm_client.workflows.download import Blobs, fetch_missing, find_blobs
from tests.e2e.snapshots import snapshot
from tests.fakes.answering_server import AnsweringServer, in_turn, send, serve_blob
from tests.fakes.simulated_registry import SimulatedRegistry
from tests.spm_client.adapters.threads import NO_THREAD, let_begin
from tests.spm_client.workflows.bundles import Pair, publish_files

DATA = random.Random(4).randbytes(1 << 20)
SHA256 = hashlib.sha256(DATA).hexdigest()
OTHER = random.Random(5).randbytes(300_000)
CUT = len(DATA) // 2
AGAIN = "run the command again"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "store")


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as running:
        running.answer = serve_blob(DATA)
        yield running


@pytest.fixture(autouse=True)
def _quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_blob, "FIRST_PAUSE", 0.01)


@pytest.fixture
def _told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a command end at its first cut, as at its last."""
    monkeypatch.setattr(fetch_blob, "MAX_CUTS", 0)


once = pytest.mark.usefixtures("_told_at_once")


def manifest(*files: bytes) -> Manifest:
    made = SimulatedRegistry()
    entries = (
        FileEntry(path=f"file-{number}", size=len(data), sha256=hashlib.sha256(data).hexdigest(), mode="r")
        for number, data in enumerate(files)
    )
    return made._manifest("x", "1.0.0", {}, (), {"files": tuple(entries)})


class Told:
    """A progress that keeps what it was told."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.total = 0

    def __call__(self, label: str, total: int, /) -> Advance:
        assert label == "Downloading"
        self.total = total
        return self.counts.append


def fetched(layout: Layout, server: AnsweringServer, *files: bytes, told: Told | None = None) -> dict[str, bytes]:
    """Run a command that downloads files and takes them in; return them by digest."""
    blobs = find_blobs([manifest(*files)], layout)
    with RegistryClient(server.url) as client, staging(layout) as scratch:
        places = fetch_missing(blobs, layout, scratch, client, told or Told())
        for digest, place in places.items():
            if place != layout.blob(digest):
                adopt(layout, digest, place)
    return {digest: layout.blob(digest).read_bytes() for digest in places}


def parts(layout: Layout) -> dict[str, int]:
    folder = layout.root / "partial"
    return {path.name[:64]: path.stat().st_size for path in folder.iterdir()} if folder.is_dir() else {}


def ranges(server: AnsweringServer) -> list[str | None]:
    return [headers.get("range") for _, _, headers, _ in server.seen]


def refused(kind: type[SpmError], call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(SpmError) as caught:
        call()
    assert type(caught.value) is kind
    return caught.value.message, caught.value.hint


def cut_once(layout: Layout, server: AnsweringServer, at: int = CUT) -> None:
    """Let a command be cut at a byte; what came of the blob stays."""
    server.answer = serve_blob(DATA, until=at)
    told = refused(TransferCut, lambda: fetched(layout, server, DATA))
    assert told == (f"`{server.url}/v1/blobs/{SHA256}` was cut off before its end", AGAIN)
    server.seen.clear()
    server.answer = serve_blob(DATA)


# A host that lets few threads begin, or none


@pytest.mark.parametrize("count", [2, 3])
def test_fewer_threads_fetch_all_of_it(
    layout: Layout, server: AnsweringServer, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    files = {hashlib.sha256(data).hexdigest(): data for data in (b"%d" % number for number in range(20))}
    server.answer = lambda request: serve_blob(files[request.path.rpartition("/")[2]])(request)
    let_begin(monkeypatch, count, "download-")

    assert fetched(layout, server, *files.values()) == files


def test_without_a_thread_it_is_refused_and_nothing_is_left(
    layout: Layout, server: AnsweringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout.root.mkdir()
    before = snapshot(layout.root)
    let_begin(monkeypatch, 0, "download-")

    told = refused(LimitReached, lambda: fetched(layout, server, DATA))

    assert told == NO_THREAD
    assert snapshot(layout.root) == before
    assert server.seen == []


# The next command


@once
@pytest.mark.parametrize("tenth", range(10))
def test_after_a_cut_at_any_tenth_only_the_rest_is_asked_for(
    layout: Layout, server: AnsweringServer, tenth: int
) -> None:
    at = len(DATA) * tenth // 10
    cut_once(layout, server, at)
    assert parts(layout) == ({SHA256: at} if at else {})
    told = Told()

    assert fetched(layout, server, DATA, told=told) == {SHA256: DATA}

    assert ranges(server) == ([f"bytes={at}-"] if at else [None])
    assert (told.counts[0], sum(told.counts), told.total) == (at, len(DATA), len(DATA))
    assert not (layout.root / "partial").exists()
    assert not layout.tmp.exists()


@once
def test_a_part_that_is_not_worth_it_is_not_kept(layout: Layout, server: AnsweringServer) -> None:
    layout.root.mkdir()
    before = snapshot(layout.root)

    cut_once(layout, server, WORTH_KEEPING - 1)

    assert snapshot(layout.root) == before


@once
def test_a_whole_file_beside_a_cut_one_is_not_asked_for_again(layout: Layout, server: AnsweringServer) -> None:
    blobs = {f"/v1/blobs/{hashlib.sha256(data).hexdigest()}": data for data in (DATA, OTHER)}
    done = threading.Event()

    def cut_the_big_one(handler: BaseHTTPRequestHandler) -> None:
        data = blobs[handler.path]
        if data is DATA:
            done.wait(5)
            time.sleep(0.2)
            serve_blob(DATA, until=CUT)(handler)
        else:
            serve_blob(data)(handler)
            done.set()

    server.answer = cut_the_big_one
    refused(TransferCut, lambda: fetched(layout, server, DATA, OTHER))
    assert parts(layout) == {SHA256: CUT, hashlib.sha256(OTHER).hexdigest(): len(OTHER)}
    server.seen.clear()
    server.answer = lambda handler: serve_blob(blobs[handler.path])(handler)

    assert set(fetched(layout, server, DATA, OTHER).values()) == {DATA, OTHER}

    assert [(path[-64:], headers["range"]) for _, path, headers, _ in server.seen] == [(SHA256, f"bytes={CUT}-")]


@once
def test_a_registry_without_ranges_is_asked_once(layout: Layout, server: AnsweringServer) -> None:
    cut_once(layout, server)
    server.answer = serve_blob(DATA, has_ranges=False)

    assert fetched(layout, server, DATA) == {SHA256: DATA}
    assert len(server.seen) == 1


@once
def test_a_registry_that_calls_the_rest_unsatisfiable_is_asked_for_all(layout: Layout, server: AnsweringServer) -> None:
    cut_once(layout, server)
    server.answer = in_turn(send(416, b""), serve_blob(DATA))

    assert fetched(layout, server, DATA) == {SHA256: DATA}
    assert ranges(server) == [f"bytes={CUT}-", None]


def damage(layout: Layout, place: int = 0) -> None:
    (path,) = (layout.root / "partial").iterdir()
    with path.open("r+b") as file:
        file.seek(place)
        file.write(bytes([DATA[place] ^ 1]))


@once
@pytest.mark.parametrize("at", [CUT, len(DATA)], ids=["part", "whole"])
def test_a_part_that_was_damaged_is_thrown_away_and_all_fetched_anew(
    layout: Layout, server: AnsweringServer, at: int
) -> None:
    cut_once(layout, server)
    (path,) = (layout.root / "partial").iterdir()
    path.write_bytes(DATA[:at])
    damage(layout, 1000)
    told = Told()

    assert fetched(layout, server, DATA, told=told) == {SHA256: DATA}

    assert ranges(server) == ([f"bytes={CUT}-", None] if at == CUT else [None])
    assert sum(told.counts) == len(DATA)


@once
def test_a_file_that_is_wrong_in_one_piece_too_is_refused_and_nothing_of_it_stays(
    layout: Layout, server: AnsweringServer
) -> None:
    cut_once(layout, server)
    altered = DATA[:-1] + bytes([DATA[-1] ^ 1])
    server.answer = serve_blob(altered)

    message, hint = refused(DigestMismatch, lambda: fetched(layout, server, DATA))

    assert message == (
        f"`file-0` of `x` 1.0.0 has the digest sha256:{hashlib.sha256(altered).hexdigest()}, "
        f"but the signed manifest says sha256:{SHA256}; nothing was installed"
    )
    assert hint == "what the registry serves is not what the author signed: ask its administrator"
    assert ranges(server) == [f"bytes={CUT}-", None]
    assert list(layout.root.iterdir()) == []


@once
@pytest.mark.parametrize(
    ("served", "shown"), [(DATA + b"!", f"more than {len(DATA)}"), (DATA[:-1], str(len(DATA) - 1))], ids=["+1", "-1"]
)
def test_a_file_of_another_size_is_refused_and_nothing_of_it_stays(
    layout: Layout, server: AnsweringServer, served: bytes, shown: str
) -> None:
    cut_once(layout, server)
    server.answer = in_turn(send(416, b""), serve_blob(served))

    message, _ = refused(SizeMismatch, lambda: fetched(layout, server, DATA))

    assert message == (
        f"`file-0` of `x` 1.0.0 came with {shown} bytes, but the signed manifest says {len(DATA)}; "
        "nothing was installed"
    )
    assert list(layout.root.iterdir()) == []


@once
def test_a_whole_file_among_the_parts_is_adopted_without_a_request(layout: Layout, server: AnsweringServer) -> None:
    cut_once(layout, server)
    (path,) = (layout.root / "partial").iterdir()
    path.write_bytes(DATA)
    path.chmod(0o444)

    assert fetched(layout, server, DATA) == {SHA256: DATA}

    assert server.seen == []
    assert layout.blob(SHA256).stat().st_mode & 0o777 == 0o444


@once
def test_two_commands_at_once_go_on_with_one_part_and_never_write_into_one_file(
    layout: Layout, server: AnsweringServer
) -> None:
    cut_once(layout, server)
    both = threading.Barrier(2, timeout=5)

    def together(handler: BaseHTTPRequestHandler) -> None:
        both.wait()
        serve_blob(DATA)(handler)

    server.answer = together
    found: list[dict[str, bytes]] = []
    threads = [threading.Thread(target=lambda: found.append(fetched(layout, server, DATA))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [{SHA256: DATA}] * 2
    assert sorted(ranges(server), key=str) == [None, f"bytes={CUT}-"]
    assert not (layout.root / "partial").exists()


# Within one command


def test_a_cut_transfer_is_taken_up_where_it_ended(layout: Layout, server: AnsweringServer) -> None:
    server.answer = in_turn(serve_blob(DATA, until=1000), serve_blob(DATA, until=CUT), serve_blob(DATA))
    told = Told()

    assert fetched(layout, server, DATA, told=told) == {SHA256: DATA}

    assert ranges(server) == [None, "bytes=1000-", f"bytes={CUT}-"]
    assert sum(told.counts) == len(DATA)


def test_a_small_file_is_taken_up_again_too(layout: Layout, server: AnsweringServer) -> None:
    server.answer = in_turn(serve_blob(b"small", until=2), serve_blob(b"small"))

    assert list(fetched(layout, server, b"small").values()) == [b"small"]
    assert ranges(server) == [None, "bytes=2-"]


def test_a_transfer_that_is_cut_ever_again_is_given_up_and_its_part_stays(
    layout: Layout, server: AnsweringServer
) -> None:
    def a_little(handler: BaseHTTPRequestHandler) -> None:
        at = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        serve_blob(DATA, until=at + 10_000)(handler)

    server.answer = a_little

    told = refused(TransferCut, lambda: fetched(layout, server, DATA))

    assert told == (f"`{server.url}/v1/blobs/{SHA256}` was cut off before its end", AGAIN)
    assert len(server.seen) == 1 + fetch_blob.MAX_CUTS == 9
    assert parts(layout) == {SHA256: 90_000}


def test_a_transfer_that_brings_nothing_is_given_up_sooner(layout: Layout, server: AnsweringServer) -> None:
    server.answer = serve_blob(DATA, until=CUT)

    refused(TransferCut, lambda: fetched(layout, server, DATA))

    assert ranges(server) == [None] + [f"bytes={CUT}-"] * (1 + fetch_blob.MAX_IN_VAIN)


def test_a_registry_that_is_started_anew_in_the_middle_is_waited_for(layout: Layout, server: AnsweringServer) -> None:
    def hang_up(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True

    server.answer = in_turn(serve_blob(DATA, until=CUT), hang_up, hang_up, serve_blob(DATA))

    assert fetched(layout, server, DATA) == {SHA256: DATA}
    assert ranges(server) == [None] + [f"bytes={CUT}-"] * 3


def test_a_registry_that_is_down_from_the_start_is_told_at_once(layout: Layout) -> None:
    with AnsweringServer() as gone:
        pass

    message, _ = refused(ConnectionFailed, lambda: fetched(layout, gone, DATA))

    assert message == f"the registry at `{gone.url}` cannot be reached: Connection refused"


def test_what_comes_too_slowly_is_not_taken_up_again(
    layout: Layout, server: AnsweringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "READ_SECONDS", 0.3)
    monkeypatch.setattr(wire, "MINIMUM_RATE", len(DATA))

    def slowly(handler: BaseHTTPRequestHandler) -> None:
        send(200, DATA[:70_000], length=len(DATA))(handler)
        for piece in (b"x", b"y"):
            time.sleep(0.2)
            handler.wfile.write(piece)

    server.answer = slowly

    refused(TransferCut, lambda: fetched(layout, server, DATA))

    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [500, 502, 404])
def test_what_a_registry_says_in_the_middle_is_told_at_once(
    layout: Layout, server: AnsweringServer, status: int
) -> None:
    server.answer = in_turn(serve_blob(DATA, until=CUT), send(status, b""))

    refused(BadResponse, lambda: fetched(layout, server, DATA))

    assert len(server.seen) == 2
    assert parts(layout) == {SHA256: CUT}


def test_a_blob_that_the_registry_changes_in_the_middle_is_fetched_anew_in_one_piece(
    layout: Layout, server: AnsweringServer
) -> None:
    other = OTHER + bytes(len(DATA) - len(OTHER))
    server.answer = in_turn(serve_blob(other, until=CUT), serve_blob(DATA))

    assert fetched(layout, server, DATA) == {SHA256: DATA}
    assert ranges(server) == [None, f"bytes={CUT}-", None]


# Several at once, and how they end


def test_no_download_goes_on_after_a_refusal(layout: Layout, server: AnsweringServer) -> None:
    small = b"altered"

    def endless(handler: BaseHTTPRequestHandler) -> None:
        if handler.path.endswith(SHA256):
            send(200, length=len(DATA))(handler)
            handler.close_connection = False
            while True:
                handler.wfile.write(DATA[:100])
                time.sleep(0.01)
        time.sleep(0.1)
        serve_blob(b"ALTERED")(handler)

    server.answer = endless
    began = time.monotonic()

    refused(DigestMismatch, lambda: fetched(layout, server, DATA, small))

    assert time.monotonic() - began < 3
    assert list(layout.root.iterdir()) == []


def test_a_refusal_does_not_wait_for_a_network_that_is_silent(
    layout: Layout, server: AnsweringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download_module, "GRACE_SECONDS", 0.2)
    released = threading.Event()

    def silent(handler: BaseHTTPRequestHandler) -> None:
        if handler.path.endswith(SHA256):
            released.wait(10)
            handler.close_connection = True
        else:
            send(500, b"")(handler)

    server.answer = silent
    began = time.monotonic()

    refused(BadResponse, lambda: fetched(layout, server, DATA, b"small"))

    assert time.monotonic() - began < 5
    released.set()


def test_of_two_refusals_at_once_one_is_told(layout: Layout, server: AnsweringServer) -> None:
    both = threading.Barrier(2, timeout=5)

    def altered(handler: BaseHTTPRequestHandler) -> None:
        both.wait()
        serve_blob(b"ALTERED")(handler)

    server.answer = altered

    message, _ = refused(DigestMismatch, lambda: fetched(layout, server, b"altered", b"changed"))

    assert message.startswith(("`file-0` of `x` 1.0.0 has the digest ", "`file-1` of `x` 1.0.0 has the digest "))


@once
def test_a_full_disk_leaves_nothing_half(
    layout: Layout, server: AnsweringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_once(layout, server)
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(layout.root / "partial")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        fetched(layout, server, DATA)

    assert list(layout.root.iterdir()) == []


@once
def test_a_disk_that_fills_up_in_the_middle_leaves_nothing_half(
    layout: Layout, server: AnsweringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def fill(descriptor: int, data: bytes) -> int:
        if "/partial/" in os.readlink(f"/proc/self/fd/{descriptor}") and os.fstat(descriptor).st_size > CUT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: WORTH_KEEPING - 1])

    monkeypatch.setattr(os, "write", fill)
    with pytest.raises(OSError, match="No space left"):
        fetched(layout, server, DATA)

    assert list(layout.root.iterdir()) == []


def test_a_file_that_the_store_holds_is_not_asked_for(layout: Layout, server: AnsweringServer) -> None:
    fetched(layout, server, DATA)
    server.seen.clear()

    blobs = find_blobs([manifest(DATA, OTHER)], layout)

    assert blobs == Blobs(held={SHA256: layout.blob(SHA256)}, missing=blobs.missing)
    assert (list(blobs.missing), blobs.size) == ([hashlib.sha256(OTHER).hexdigest()], len(OTHER))
    assert fetched(layout, server, DATA) == {SHA256: DATA}
    assert server.seen == []


def test_a_time_out_before_the_first_byte_is_told_at_once(
    layout: Layout, server: AnsweringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "READ_SECONDS", 0.2)

    def late(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.5)
        handler.close_connection = True

    server.answer = late

    refused(RegistryTimeout, lambda: fetched(layout, server, DATA))

    assert len(server.seen) == 1


@pytest.mark.parametrize("is_damaged", [False, True], ids=["sound", "damaged"])
def test_a_part_from_a_registry_is_gone_on_with_from_a_bundle(tmp_path: Path, is_damaged: bool) -> None:
    pair = Pair(tmp_path)
    publish_files(pair.registry, "big", {"weights.bin": DATA})
    pair.there.export(pair.bundle, "big")
    folder = pair.here.root / "partial"
    folder.mkdir()
    (folder / f"{SHA256}.dead").write_bytes(DATA[:CUT])
    if is_damaged:
        damage(pair.here.layout)

    pair.here.take(pair.bundle)

    assert pair.here.layout.blob(SHA256).read_bytes() == DATA
    assert not folder.exists()

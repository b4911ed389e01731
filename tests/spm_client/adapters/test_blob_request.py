"""Asking for a blob, or for what is missing of it, wherever a registry says that it lies; no byte is mixed up."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from manifests.errors import BadResponse, NotFound, RegistryUnreachable, SpmError
from spm_client.adapters import wire
from spm_client.adapters.blob_request import _target
from spm_client.adapters.http import RegistryClient
from spm_client.adapters.source import ConnectionFailed, TransferCut, TransferStalled
from tests.fakes.answering_server import Answer, AnsweringServer, in_turn, send, serve_blob

DATA = bytes(range(256)) * 40
SHA256 = hashlib.sha256(DATA).hexdigest()
PATH = f"/v1/blobs/{SHA256}"
WHERE = "a blob's redirect leads to an address with https, or with http from http, and without a user's name"


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with AnsweringServer() as running:
        running.answer = serve_blob(DATA)
        yield running


@pytest.fixture
def client(server: AnsweringServer) -> Iterator[RegistryClient]:
    with RegistryClient(server.url, token="spm_secret") as opened:
        yield opened


def blob(client: RegistryClient, offset: int = 0) -> bytes:
    return b"".join(client.blob(SHA256, size=len(DATA), offset=offset))


def ranges(server: AnsweringServer) -> list[str | None]:
    return [headers.get("range") for _, _, headers, _ in server.seen]


def refusal(client: RegistryClient, offset: int = 0) -> SpmError:
    with pytest.raises(SpmError) as caught:
        blob(client, offset)
    return caught.value


@pytest.mark.parametrize("offset", [1, 5000, len(DATA) - 1])
def test_only_the_rest_is_asked_for(server: AnsweringServer, client: RegistryClient, offset: int) -> None:
    assert blob(client, offset) == DATA[offset:]
    assert ranges(server) == [f"bytes={offset}-"]
    assert server.seen[0][2]["accept-encoding"] == "identity"


def test_all_of_it_is_asked_for_without_a_range(server: AnsweringServer, client: RegistryClient) -> None:
    assert blob(client) == DATA
    assert ranges(server) == [None]


def test_a_registry_without_ranges_sends_all_and_what_is_there_is_passed_over(
    server: AnsweringServer, client: RegistryClient
) -> None:
    server.answer = serve_blob(DATA, has_ranges=False)

    assert blob(client, 5000) == DATA[5000:]
    assert len(server.seen) == 1


def part(span: str, body: bytes = DATA[5000:]) -> Answer:
    return send(206, body, Content_Range=span)


@pytest.mark.parametrize(
    "first",
    [
        send(416, b"no", Content_Range=f"bytes */{len(DATA)}"),
        part(f"bytes 4999-{len(DATA) - 1}/{len(DATA)}", DATA[4999:]),
        part(f"bytes 5000-5009/{len(DATA)}", DATA[5000:5010]),
        part(f"bytes 5000-{len(DATA) - 1}/{len(DATA) + 1}"),
        part(f"bytes 5000-{len(DATA) - 1}"),
        part("bytes x"),
        send(206, DATA[5000:]),
        send(206, DATA[5000:], Content_Type="multipart/byteranges; boundary=x"),
    ],
    ids=["416", "before", "short", "another-total", "no-total", "nonsense", "no-header", "multipart"],
)
def test_an_answer_that_is_not_the_rest_is_put_aside_and_all_is_asked_for_once(
    server: AnsweringServer, client: RegistryClient, first: Answer
) -> None:
    server.answer = in_turn(first, serve_blob(DATA))

    assert blob(client, 5000) == DATA[5000:]
    assert ranges(server) == ["bytes=5000-", None]


def test_a_total_that_is_not_told_is_no_contradiction(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = part(f"bytes 5000-{len(DATA) - 1}/*")

    assert blob(client, 5000) == DATA[5000:]
    assert len(server.seen) == 1


def test_a_blob_that_is_shorter_than_what_is_there_ends_at_once(
    server: AnsweringServer, client: RegistryClient
) -> None:
    server.answer = in_turn(send(416, b""), send(200, DATA[:100]))

    assert blob(client, 5000) == b""


@pytest.mark.parametrize("offset", [0, 5000])
def test_an_endless_rest_ends_one_byte_after_the_size(
    server: AnsweringServer, client: RegistryClient, offset: int
) -> None:
    longer = DATA + bytes(1 << 20)
    server.answer = send(206, longer[offset:], Content_Range=f"bytes {offset}-{len(DATA) - 1}/{len(DATA)}")

    assert blob(client, offset) == longer[offset : len(DATA) + 1]


def test_a_cut_is_told_apart_so_that_it_can_be_taken_up_again(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = serve_blob(DATA, until=6000)
    came: list[bytes] = []

    with pytest.raises(TransferCut) as cut:
        came.extend(client.blob(SHA256, size=len(DATA), offset=5000))

    assert b"".join(came) == DATA[5000:6000]
    assert (cut.value.message, cut.value.hint) == (
        f"`{server.url}{PATH}` was cut off before its end",
        "run the command again",
    )


def test_silence_in_the_middle_is_told_apart_too(server: AnsweringServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fall_silent(handler: object) -> None:
        send(200, DATA[:10], length=len(DATA))(handler)  # type: ignore[arg-type]
        time.sleep(1.5)

    monkeypatch.setattr(wire, "READ_SECONDS", 1.0)
    server.answer = fall_silent

    with RegistryClient(server.url) as client, pytest.raises(TransferStalled) as stalled:
        blob(client)

    assert (stalled.value.message, stalled.value.hint, stalled.value.reason) == (
        f"`{server.url}{PATH}` sent nothing for 1 seconds",
        "run the command again",
        "timeout",
    )


# Redirects


def test_a_blob_is_fetched_from_where_the_registry_points(server: AnsweringServer, client: RegistryClient) -> None:
    with AnsweringServer() as store:
        store.answer = serve_blob(DATA)
        server.answer = send(307, Location=f"{store.url}/bucket/object?X-Signature=secret")

        assert blob(client, 5000) == DATA[5000:]

        ((method, path, headers, _),) = store.seen
    assert (method, path, headers["range"]) == ("GET", "/bucket/object?X-Signature=secret", "bytes=5000-")
    assert {"authorization", "cookie", "referer"} & headers.keys() == set()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_every_kind_of_redirect_is_followed_also_to_a_place_beside(
    server: AnsweringServer, client: RegistryClient, status: int
) -> None:
    server.answer = in_turn(send(status, b"elsewhere", Location="../elsewhere"), serve_blob(DATA))

    assert blob(client) == DATA
    assert [path for _, path, _, _ in server.seen] == [PATH, "/v1/elsewhere"]


def test_two_redirects_are_followed_and_no_third(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = in_turn(send(302, Location="/a"), send(302, Location="/b"), serve_blob(DATA))
    assert blob(client) == DATA

    server.answer = send(302, Location="/again")
    server.seen.clear()
    refused = refusal(client)

    assert (type(refused), refused.message, refused.hint) == (
        BadResponse,
        f"`{server.url}{PATH}` points to another place, and so on, more than 2 times",
        "ask the registry's administrator",
    )
    assert len(server.seen) == 3


@pytest.mark.parametrize(
    "location",
    ["ftp://127.0.0.1/x", "file:///etc/passwd", "http://user:password@127.0.0.1/x", "http://[::1"],
)
def test_a_redirect_to_what_is_no_plain_address_is_refused(
    server: AnsweringServer, client: RegistryClient, location: str
) -> None:
    server.answer = send(302, Location=location + "?key=secret")

    refused = refusal(client)

    assert (type(refused), refused.message, refused.hint) == (
        BadResponse,
        f"`{server.url}{PATH}` points to {location!r}, where spm does not go",
        WHERE,
    )
    assert len(server.seen) == 1


def test_a_redirect_from_https_to_http_is_refused() -> None:
    with pytest.raises(BadResponse) as refused:
        _target("https://registry.example/v1/blobs/x", "http://127.0.0.1/x?key=secret")

    assert refused.value.message == (
        "`https://registry.example/v1/blobs/x` points to 'http://127.0.0.1/x', where spm does not go"
    )
    assert _target("http://registry.example/a", "https://store.example/x?key=1") == "https://store.example/x?key=1"


def test_what_an_object_store_refuses_is_told_without_the_key_to_it(
    server: AnsweringServer, client: RegistryClient
) -> None:
    with AnsweringServer() as store:
        store.answer = send(403, b"<Error/>", Content_Type="application/xml")
        server.answer = send(302, Location=f"{store.url}/object?X-Signature=secret")

        refused = refusal(client)

        assert refused.message == f"`{store.url}/object` answered 403 without saying why"
    assert "secret" not in str(refused.to_dict())


def test_an_object_store_that_is_down_is_not_the_registry(server: AnsweringServer, client: RegistryClient) -> None:
    with AnsweringServer() as store:
        url = store.url
    server.answer = send(302, Location=f"{url}/object?X-Signature=secret")

    refused = refusal(client)

    assert (type(refused), refused.message) == (
        ConnectionFailed,
        f"`{url}/object`, to which the registry points, cannot be reached: Connection refused",
    )


# A registry that is too busy just now

BUSY = send(503, b"", Retry_After="0")


@pytest.mark.parametrize(
    "read",
    [
        lambda client: client.document("/x", max_bytes=len(DATA)),
        lambda client: client.metadata("x", max_bytes=len(DATA)),
        blob,
    ],
    ids=["document", "metadata", "blob"],
)
def test_a_read_is_asked_again_where_the_registry_names_a_time(
    server: AnsweringServer, client: RegistryClient, read: Callable[[RegistryClient], bytes]
) -> None:
    server.answer = in_turn(BUSY, BUSY, BUSY, serve_blob(DATA))

    assert read(client) == DATA
    assert len(server.seen) == 4


def test_a_registry_that_stays_busy_is_told_after_three_more_tries(
    server: AnsweringServer, client: RegistryClient
) -> None:
    server.answer = send(503, b"", Retry_After="0")

    assert refusal(client).message == f"`{server.url}{PATH}` answered 503 without saying why"
    assert len(server.seen) == 4


@pytest.mark.parametrize("after", ["", "11", "Wed, 21 Oct 2026 07:28:00 GMT", "-1", "1.5", "99999"])
def test_a_time_that_is_none_or_too_long_is_not_waited_for(
    server: AnsweringServer, client: RegistryClient, after: str
) -> None:
    server.answer = send(503, b"", Retry_After=after) if after else send(503)

    assert refusal(client).exit_code == RegistryUnreachable.exit_code
    assert len(server.seen) == 1


def test_a_time_beyond_the_callers_own_is_not_waited_for(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = send(503, b"", Retry_After="9")

    with pytest.raises(BadResponse):
        client.metadata("x", max_bytes=10, seconds=5.0)

    assert len(server.seen) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 504])
def test_no_other_failure_is_asked_again(server: AnsweringServer, client: RegistryClient, status: int) -> None:
    server.answer = send(status, b"", Retry_After="0")

    refusal(client)

    assert len(server.seen) == 1


def test_a_write_is_never_sent_again(server: AnsweringServer, client: RegistryClient) -> None:
    server.answer = BUSY

    with pytest.raises(BadResponse):
        client.call("POST", "/v1/uploads", {})

    assert len(server.seen) == 1


def test_a_blob_that_is_not_there_is_what_the_registry_says(server: AnsweringServer, client: RegistryClient) -> None:
    body = b'{"type": "not-found", "detail": "there is no such blob"}'
    server.answer = send(404, body, Content_Type="application/problem+json")

    assert type(refusal(client, 5000)) is NotFound


def test_one_thread_watches_all_requests_and_ends_with_the_client(server: AnsweringServer) -> None:
    def watching() -> int:
        return sum(thread.name.startswith("deadlines") for thread in threading.enumerate())

    before = watching()
    with RegistryClient(server.url) as client:
        for _ in range(3):
            blob(client)
        assert watching() == before + 1

    ends = time.monotonic() + 5
    while watching() > before and time.monotonic() < ends:
        time.sleep(0.01)
    assert watching() == before

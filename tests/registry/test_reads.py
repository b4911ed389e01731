"""Reading: entity tags, ranges and caching as RFC 9110 has them, and never a stale index."""

import pytest

from manifests.parts import PluginType
from registry.api.answers import MAX_AT_ONCE
from registry.api.conditions import RangeNotSatisfiable, Span, matches, span_of
from registry.services.bounded_cache import BoundedCache
from tests.registry.team import FILES, Team, digest, manifest_of, problem

DATA = FILES["weights.bin"]
BLOB = f"/v1/blobs/{digest(DATA)}"
INDEX = "/v1/index/audio-encoder.json"
IMMUTABLE = "public, max-age=31536000, immutable"


@pytest.fixture
def published(team: Team) -> Team:
    team.publish(team.admin, manifest_of())
    return team


@pytest.mark.parametrize(
    ("header", "size", "expected"),
    [
        ("bytes=0-99", 1000, Span(first=0, last=99)),
        ("bytes=0-0", 1, Span(first=0, last=0)),
        ("bytes=990-2000", 1000, Span(first=990, last=999)),
        ("bytes=990-", 1000, Span(first=990, last=999)),
        ("bytes=-10", 1000, Span(first=990, last=999)),
        ("bytes=-5000", 1000, Span(first=0, last=999)),
        ("bytes=0-9,20-29", 1000, None),
        ("bytes=9-0", 1000, None),
        ("bytes=-", 1000, None),
        ("bytes=a-b", 1000, None),
        ("lines=0-9", 1000, None),
        ("", 1000, None),
    ],
)
def test_a_range_is_read(header: str, size: int, expected: Span | None) -> None:
    assert span_of(header, size) == expected


@pytest.mark.parametrize(("header", "size"), [("bytes=1000-", 1000), ("bytes=-0", 1000), ("bytes=0-", 0)])
def test_a_range_beyond_the_end_cannot_be_had(header: str, size: int) -> None:
    with pytest.raises(RangeNotSatisfiable):
        span_of(header, size)


@pytest.mark.parametrize(
    ("header", "expected"),
    [('"a"', True), ('W/"a"', True), ('"b", "a"', True), ("*", True), ('"b"', False), ("", False), ("a", False)],
)
def test_an_entity_tag_is_matched(header: str, expected: bool) -> None:
    assert matches(header, '"a"') is expected


def test_an_index_is_checked_each_time_by_its_entity_tag(published: Team) -> None:
    first = published.ask("GET", INDEX)
    second = published.ask("GET", INDEX, headers={"If-None-Match": first.headers["ETag"]})

    assert first.headers["Cache-Control"] == second.headers["Cache-Control"] == "no-cache"
    assert first.headers["Content-Type"] == "application/json"
    assert (second.status_code, second.data) == (304, b"")
    assert second.headers["ETag"] == first.headers["ETag"] == f'"{digest(first.data)}"'


def test_an_index_is_never_stale(published: Team) -> None:
    seen = []

    for version in ("1.1.0", "1.2.0"):
        seen.append(published.ask("GET", INDEX).data.count(b'"version"'))
        published.publish(published.admin, manifest_of(version=version))
    seen.append(published.ask("GET", INDEX).data.count(b'"version"'))

    assert seen == [1, 2, 3]


def test_a_name_that_comes_later_is_seen_at_once(team: Team) -> None:
    before = team.ask("GET", INDEX).status_code
    team.publish(team.admin, manifest_of())

    assert (before, team.ask("GET", INDEX).status_code) == (404, 200)


def test_a_blob_never_changes(published: Team) -> None:
    whole = published.ask("GET", BLOB)

    assert (whole.status_code, whole.data) == (200, DATA)
    assert whole.headers["ETag"] == f'"{digest(DATA)}"'
    assert whole.headers["Cache-Control"] == IMMUTABLE
    assert whole.headers["Accept-Ranges"] == "bytes"
    assert whole.headers["X-Content-Type-Options"] == "nosniff"
    assert whole.headers["Content-Length"] == "2048"


def test_a_range_of_a_blob_is_sent_alone(published: Team) -> None:
    part = published.ask("GET", BLOB, headers={"Range": "bytes=1000-1099"})

    assert (part.status_code, part.data) == (206, DATA[1000:1100])
    assert part.headers["Content-Range"] == "bytes 1000-1099/2048"
    assert part.headers["Content-Length"] == "100"


def test_a_range_beyond_a_blob_is_refused(published: Team) -> None:
    answer = published.ask("GET", BLOB, headers={"Range": "bytes=2048-"})

    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == "bytes */2048"
    body = problem(answer)
    assert (body["type"], body["detail"]) == ("range", "the range lies outside the 2048 bytes there are")


@pytest.mark.parametrize(("tag", "status"), [(f'"{digest(DATA)}"', 206), ('"another"', 200)])
def test_a_range_holds_only_for_the_named_bytes(published: Team, tag: str, status: int) -> None:
    answer = published.ask("GET", BLOB, headers={"Range": "bytes=0-9", "If-Range": tag})

    assert answer.status_code == status


@pytest.mark.parametrize("path", [BLOB, INDEX])
def test_head_says_what_get_would(published: Team, path: str) -> None:
    head, get = published.ask("HEAD", path), published.ask("GET", path)

    assert (head.status_code, head.data) == (200, b"")
    assert dict(head.headers) == dict(get.headers)


def test_a_large_blob_comes_in_bounded_chunks(team: Team) -> None:
    files = {"audio_encoder.py": b"x", "weights.bin": bytes(range(256)) * (MAX_AT_ONCE // 128)}
    team.publish(team.admin, manifest_of(files), files=files)

    answer = team.ask("GET", f"/v1/blobs/{digest(files['weights.bin'])}", buffered=False)
    chunks = list(answer.iter_encoded())
    answer.close()

    assert b"".join(chunks) == files["weights.bin"]
    assert max(len(chunk) for chunk in chunks) == 256 << 10


@pytest.mark.parametrize(
    "path",
    [
        "/v1/blobs/",
        "/v1/blobs/../../secret",
        "/v1/blobs/" + "0" * 63,
        "/v1/blobs/" + "A" * 64,
        "/v1/index/..%2fsecret.json",
        "/v1/index/Log_Mel.json",
        "/v1/index/" + "a" * 65 + ".json",
        "/v1/manifests/" + "0" * 64 + "/manifest.sig.x",
        "/v1/blobs/" + "0" * 64,
        "/v1/manifests/" + "0" * 64,
        "/v1/manifests/" + "0" * 64 + "/manifest.jws",
    ],
)
def test_what_is_not_there_is_not_found(published: Team, path: str) -> None:
    answer = published.ask("GET", path)

    assert (answer.status_code, problem(answer)["type"]) == (404, "not-found")


def test_a_core_release_is_read_by_its_signature_files(team: Team) -> None:
    manifest = manifest_of(name="fused-gelu", type=PluginType.CORE)
    team.publish(team.admin, manifest)
    path = f"/v1/manifests/{digest(manifest.to_bytes())}"

    signature = team.ask("GET", f"{path}/manifest.sig.{team.core.public.keyid}")

    assert (signature.status_code, signature.data[:1]) == (200, b"\x30")
    assert signature.headers["Cache-Control"] == IMMUTABLE
    assert team.ask("GET", f"{path}/manifest.jws").status_code == 404


def test_the_registry_says_who_it_is(published: Team) -> None:
    assert published.ask("GET", "/v1/registry").get_json() == {
        "_type": "spm.registry/1",
        "id": "team.local",
        "serial": 1,
    }
    assert published.ask("GET", "/healthz").get_json() == {"status": "ok"}


def test_a_cache_forgets_what_was_used_least() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(10, len)
    cache.put("a", b"12345")
    cache.put("b", b"12345")
    cache.get("a")

    cache.put("c", b"123")

    assert [cache.get(key) for key in "abc"] == [b"12345", None, b"123"]


def test_a_cache_holds_nothing_larger_than_itself() -> None:
    cache: BoundedCache[str, bytes] = BoundedCache(10, len)

    cache.put("a", b"12345678901")

    assert cache.get("a") is None

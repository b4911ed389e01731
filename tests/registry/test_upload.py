"""Uploads: sent in parts, taken up again, never mixed up, and committed whole or not at all."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from manifests.manifest import Manifest
from registry.services.publishing import LEASE_SECONDS, MAX_OPEN_BYTES, MAX_OPEN_UPLOADS
from tests.registry.team import FILES, Team, digest, file_table, manifest_of, problem

DATA = FILES["weights.bin"]
SHA = digest(DATA)


@pytest.fixture
def upload(team: Team) -> str:
    opened = team.submit(team.admin, manifest_of())
    return str(opened.get_json()["upload"])


def _put(team: Team, upload: str, data: bytes, content_range: str | None = None, sha256: str = SHA) -> TestResponse:
    headers: Mapping[str, str] = {} if content_range is None else {"Content-Range": content_range}
    return team.ask("PUT", f"/v1/uploads/{upload}/blobs/{sha256}", team.admin, data=data, headers=headers)


def _offset(team: Team, upload: str) -> str:
    return team.ask("HEAD", f"/v1/uploads/{upload}/blobs/{SHA}", team.admin).headers["Upload-Offset"]


def _commit(team: Team, upload: str, token: str | None = None) -> TestResponse:
    return team.ask("POST", f"/v1/uploads/{upload}/commit", token or team.admin)


def test_a_new_upload_lacks_every_file(team: Team) -> None:
    opened = team.submit(team.admin, manifest_of())

    assert opened.status_code == 201
    assert set(opened.get_json()) == {"upload", "missing"}
    assert opened.get_json()["missing"] == sorted(digest(data) for data in FILES.values())


def test_a_file_comes_in_parts(team: Team, upload: str) -> None:
    offsets = [_offset(team, upload)]
    for first in range(0, 2048, 1000):
        part = DATA[first : first + 1000]
        sent = _put(team, upload, part, f"bytes {first}-{first + len(part) - 1}/2048")
        assert sent.status_code == 200
        offsets.append(_offset(team, upload))

    assert offsets == ["0", "1000", "2000", "2048"]
    assert sent.get_json() == {"offset": 2048, "complete": True}


def test_a_part_at_the_wrong_place_is_refused_with_the_right_one(team: Team, upload: str) -> None:
    _put(team, upload, DATA[:1000], "bytes 0-999/2048")
    before = team.state()

    answer = _put(team, upload, DATA[500:600], "bytes 500-599/2048")

    assert answer.status_code == 409
    body = problem(answer)
    assert body["type"] == "offset"
    assert body["detail"] == f"file {SHA} has 1000 bytes here, and the request starts at 500"
    assert (body["hint"], body["context"]) == ("go on from byte 1000", {"offset": 1000})
    assert team.state() == before


def test_a_whole_file_replaces_a_part_of_it(team: Team, upload: str) -> None:
    _put(team, upload, bytes(1000), "bytes 0-999/2048")

    assert _put(team, upload, DATA).get_json() == {"offset": 2048, "complete": True}


def test_a_wrong_file_is_discarded(team: Team, upload: str) -> None:
    before = team.state()

    answer = _put(team, upload, bytes(2048))

    assert answer.status_code == 422
    body = problem(answer)
    assert body["type"] == "digest"
    assert body["detail"] == f"the file sent as sha256:{SHA} has sha256:{digest(bytes(2048))}; it was discarded"
    assert body["hint"] == "send the file again from its first byte"
    assert _offset(team, upload) == "0"
    assert team.state() == before


def test_a_file_that_is_here_is_not_taken_again(team: Team, upload: str) -> None:
    _put(team, upload, DATA)
    before = team.state()

    assert _put(team, upload, bytes(2048)).get_json() == {"offset": 2048, "complete": True}
    assert team.state() == before


@pytest.mark.parametrize(
    ("length", "content_range", "status", "message"),
    [
        (2049, None, 413, f"file {SHA} has 2048 bytes by its manifest, and the request speaks of 2049"),
        (10, "bytes 0-9/4096", 413, f"file {SHA} has 2048 bytes by its manifest, and the request speaks of 4096"),
        (10, "bytes 0-9/1024", 422, f"file {SHA} has 2048 bytes by its manifest, and the request says 1024"),
        (10, None, 422, f"file {SHA} has 2048 bytes by its manifest, and the request says 10"),
        (10, "bytes 0-10/2048", 400, "`Content-Range` speaks of 11 bytes, and the body has 10"),
        (
            10,
            "bytes 9-0/2048",
            400,
            "'bytes 9-0/2048' is not a content range: write `bytes A-B/TOTAL` with A <= B < TOTAL",
        ),
        (
            10,
            "bytes 0-9/*",
            400,
            "'bytes 0-9/*' is not a content range: write `bytes A-B/TOTAL` with A <= B < TOTAL",
        ),
    ],
)
def test_a_size_that_does_not_fit_is_refused(
    team: Team, upload: str, length: int, content_range: str | None, status: int, message: str
) -> None:
    before = team.state()

    answer = _put(team, upload, bytes(length), content_range)

    assert (answer.status_code, problem(answer)["detail"]) == (status, message)
    assert team.state() == before


def test_a_body_of_unknown_length_is_refused(team: Team, upload: str) -> None:
    path = f"/v1/uploads/{upload}/blobs/{SHA}"

    answer = team.ask("PUT", path, team.admin, environ_overrides={"HTTP_TRANSFER_ENCODING": "chunked"})

    assert answer.status_code == 411
    assert problem(answer)["detail"] == "the request does not say how long its body is"


def test_a_body_that_ends_early_is_kept_for_later(team: Team, upload: str) -> None:
    path = f"/v1/uploads/{upload}/blobs/{SHA}"

    answer = team.ask("PUT", path, team.admin, data=DATA[:700], environ_overrides={"CONTENT_LENGTH": "2048"})

    assert answer.status_code == 422
    assert problem(answer)["detail"] == "the request declared 2048 bytes and ended after 700"
    assert _offset(team, upload) == "700"


def test_a_file_that_is_all_there_but_unfinished_is_sent_again(team: Team, upload: str) -> None:
    # So a crash leaves it, between the last byte and the digest.
    part = team.root / "uploads" / upload / f"{SHA}.part"
    part.parent.mkdir()
    part.write_bytes(DATA[:2000] + bytes(48))

    offset = _offset(team, upload)
    sent = _put(team, upload, DATA, "bytes 0-2047/2048")

    assert (offset, sent.status_code) == ("0", 200)


def test_a_full_disk_is_told(team: Team, upload: str) -> None:
    part = team.root / "uploads" / upload / f"{SHA}.part"
    part.parent.mkdir()
    part.symlink_to("/dev/full")

    answer = _put(team, upload, DATA[:1000], "bytes 0-999/2048")

    assert answer.status_code == 507
    assert problem(answer)["detail"] == "the registry has no room left on its disk; nothing was published"


def test_files_of_no_manifest_are_not_taken(team: Team, upload: str) -> None:
    answer = _put(team, upload, b"x", sha256="0" * 64)

    assert answer.status_code == 404
    assert problem(answer)["detail"] == f"no manifest of upload `{upload}` has a file with sha256:{'0' * 64}"


def test_an_upload_belongs_to_the_token_that_opened_it(team: Team, upload: str) -> None:
    before = team.state()
    other = team.token("lee", names=("*",))
    after = team.state()
    paths = [("PUT", f"blobs/{SHA}"), ("HEAD", f"blobs/{SHA}"), ("POST", "commit")]

    answers = [team.ask(method, f"/v1/uploads/{upload}/{path}", other, data=b"") for method, path in paths]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert problem(answers[0])["detail"] == f"upload `{upload}` was opened with another token than `lee`"
    assert team.state() == after != before


def test_a_commit_without_all_files_says_which(team: Team, upload: str) -> None:
    _put(team, upload, DATA)
    before = team.state()

    answer = _commit(team, upload)

    assert answer.status_code == 409
    body = problem(answer)
    assert (body["type"], body["detail"]) == (
        "incomplete",
        "`audio-encoder` 1.0.0 cannot be committed: 1 file is missing",
    )
    assert body["context"] == {"missing": [digest(FILES["audio_encoder.py"])]}
    assert team.state() == before


def test_opening_again_goes_on_with_the_same_upload(team: Team, upload: str) -> None:
    _put(team, upload, DATA)

    again = team.submit(team.admin, manifest_of())

    assert again.status_code == 201
    assert again.get_json() == {"upload": upload, "missing": [digest(FILES["audio_encoder.py"])]}


def test_files_of_earlier_releases_are_not_missing(team: Team) -> None:
    team.publish(team.admin, manifest_of())

    opened = team.submit(team.admin, manifest_of(version="1.1.0"))

    assert opened.get_json()["missing"] == []
    assert _commit(team, opened.get_json()["upload"]).status_code == 201


def test_an_empty_file_is_a_file(team: Team) -> None:
    files = {"audio_encoder.py": b"", "b.py": b"x"}

    committed = team.publish(team.admin, manifest_of(files), files=files)

    assert committed.status_code == 201
    assert team.ask("GET", f"/v1/blobs/{digest(b'')}").data == b""


def test_publishing_the_same_bytes_again_changes_nothing(team: Team) -> None:
    team.publish(team.admin, manifest_of())
    before = team.state()

    again = team.submit(team.admin, manifest_of())

    assert again.status_code == 200
    expected = {"published": True, "name": "audio-encoder", "version": "1.0.0", "serial": 1, "warnings": []}
    assert again.get_json() == expected
    assert team.state() == before


def test_a_commit_whose_answer_was_lost_can_be_asked_again(team: Team, upload: str) -> None:
    for data in FILES.values():
        team.send(team.admin, upload, data)
    first = _commit(team, upload)
    before = team.state()

    second = _commit(team, upload)

    assert [first.status_code, second.status_code] == [201, 200]
    assert first.get_json() == second.get_json()
    assert team.state() == before


def test_the_rules_are_asked_again_at_the_commit(team: Team) -> None:
    maria = team.token("maria")
    mine = team.submit(maria, manifest_of()).get_json()["upload"]
    for data in FILES.values():
        team.send(maria, mine, data)
    team.publish(team.token("lee"), manifest_of(version="0.9.0"))
    before = team.state()

    answer = _commit(team, mine, maria)

    assert answer.status_code == 403
    assert problem(answer)["detail"] == "token `maria` may not change `audio-encoder`: it belongs to `lee`"
    assert team.state() == before


def test_trust_withdrawn_between_open_and_commit_counts(team: Team, upload: str) -> None:
    for data in FILES.values():
        team.send(team.admin, upload, data)
    conf = team.site.loader_conf
    conf.write_text(conf.read_text().replace(team.ext.public.publisher, "somebody-else"))
    before = team.state()

    answer = _commit(team, upload)

    assert answer.status_code == 422
    assert [each["type"] for each in problem(answer)["problems"]] == ["key-namespace"]
    assert team.state() == before


def test_an_upload_ends_by_itself_and_is_cleaned_at_the_next_one(team: Team, upload: str) -> None:
    _put(team, upload, DATA[:100], "bytes 0-99/2048")
    folder = team.root / "uploads" / upload
    assert folder.is_dir()
    team.clock.now += LEASE_SECONDS

    late = _put(team, upload, DATA[100:200], "bytes 100-199/2048")
    team.submit(team.admin, manifest_of(version="1.1.0"))

    assert late.status_code == 404
    assert problem(late)["detail"] == f"there is no open upload `{upload}`"
    assert not folder.exists()
    with team.site.database.reading() as records:
        assert records.upload(upload) is None


def test_a_folder_that_no_upload_knows_is_cleaned(team: Team) -> None:
    stray = team.root / "uploads" / ("f" * 32)
    stray.mkdir()

    team.submit(team.admin, manifest_of())

    assert not stray.exists()


def test_a_token_has_only_so_many_unfinished_uploads(team: Team) -> None:
    for number in range(MAX_OPEN_UPLOADS):
        assert team.submit(team.admin, manifest_of(version=f"1.0.{number}")).status_code == 201
    before = team.state()

    answer = team.submit(team.admin, manifest_of(version="2.0.0"))

    assert answer.status_code == 429
    body = problem(answer)
    assert body["type"] == "limit:uploads"
    assert body["detail"] == "token `admin` has 32 unfinished uploads, which is the most it may have"
    assert team.state() == before


def test_the_unfinished_uploads_of_a_token_have_only_so_many_bytes(team: Team) -> None:
    small, large = file_table(FILES)
    half = replace(large, size=MAX_OPEN_BYTES // 2)

    def sized(version: str) -> Manifest:
        return replace(manifest_of(version=version), files=(small, half))

    assert team.submit(team.admin, sized("1.0.0")).status_code == 201
    before = team.state()

    again = team.submit(team.admin, sized("1.0.0"))
    answer = team.submit(team.admin, sized("1.1.0"))
    others = team.submit(team.token("bob"), sized("1.1.0"))

    assert (again.status_code, answer.status_code, others.status_code) == (201, 429, 201)
    body = problem(answer)
    assert body["type"] == "limit:upload-bytes"
    assert body["detail"] == (
        f"with this one, the unfinished uploads of token `admin` would have {MAX_OPEN_BYTES + 2 * small.size} bytes, "
        f"more than the {MAX_OPEN_BYTES} allowed"
    )
    assert body["hint"] == "finish one; an unfinished upload ends by itself after 24 hours"
    assert before.count("upload_files") == team.state().count("upload_files") - 2


def test_a_finished_upload_no_longer_counts(team: Team) -> None:
    team.publish(team.admin, manifest_of())

    with team.site.database.reading() as records:
        (admin,) = records.tokens()
        assert records.declared_bytes(admin.id) == 0


def test_a_blob_is_where_it_should_be_and_private(team: Team) -> None:
    team.publish(team.admin, manifest_of())

    path = team.root / "blobs" / "sha256" / SHA[:2] / SHA

    assert path.read_bytes() == DATA
    assert path.stat().st_mode & 0o777 == 0o600
    assert list((team.root / "uploads").iterdir()) == []


def _race(count: int, jobs: list[tuple[Team, str, str, bytes | None]]) -> list[int]:
    def run(job: tuple[Team, str, str, bytes | None]) -> int:
        team, method, path, data = job
        client = team.client.application.test_client()
        headers = {"Authorization": f"Bearer {team.admin}"}
        return client.open(path, method=method, headers=headers, data=data).status_code

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, jobs))


def test_many_commits_at_once_publish_once(team: Team, upload: str, tmp_path: Path) -> None:
    for data in FILES.values():
        team.send(team.admin, upload, data)

    answers = _race(8, [(team, "POST", f"/v1/uploads/{upload}/commit", None)] * 8)

    assert sorted(answers) == [200] * 7 + [201]
    with team.site.database.reading() as records:
        assert records.serial() == 1


def test_many_senders_of_one_file_never_mix_it_up(team: Team, upload: str) -> None:
    path = f"/v1/uploads/{upload}/blobs/{SHA}"

    answers = _race(8, [(team, "PUT", path, DATA), (team, "PUT", path, bytes(2048))] * 8)

    assert set(answers) <= {200, 409, 422}
    assert _put(team, upload, DATA).status_code == 200
    assert (team.root / "uploads" / upload / SHA).read_bytes() == DATA

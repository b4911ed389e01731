"""Yank: the release stays as it is, only the index says that it is not offered, and why."""

from typing import Any

import pytest

from manifests.index import Shard
from tests.registry.team import FILES, Team, digest, manifest_of, problem

PATH = "/v1/plugins/audio-encoder/1.0.0/yank"
REASON = "weights of the wrong language"


@pytest.fixture
def published(team: Team) -> Team:
    team.publish(team.admin, manifest_of())
    return team


def _shard(team: Team) -> Shard:
    return Shard.from_bytes(team.ask("GET", "/v1/index/audio-encoder.json").data)


def test_a_yank_changes_nothing_but_the_reason(published: Team) -> None:
    before = _shard(published)

    answer = published.ask("POST", PATH, published.admin, json={"reason": REASON})

    assert answer.get_json() == {"name": "audio-encoder", "version": "1.0.0", "yanked": REASON, "serial": 2}
    after = _shard(published)
    assert after.releases[0].yanked == REASON
    assert after.with_yanked(after.releases[0].version, None) == before
    assert published.ask("GET", f"/v1/blobs/{digest(FILES['weights.bin'])}").status_code == 200


def test_an_unyank_brings_the_very_same_index_back(published: Team) -> None:
    before = published.ask("GET", "/v1/index/audio-encoder.json").data
    published.ask("POST", PATH, published.admin, json={"reason": REASON})

    answer = published.ask("DELETE", PATH, published.admin)

    assert answer.get_json() == {"name": "audio-encoder", "version": "1.0.0", "yanked": None, "serial": 3}
    assert published.ask("GET", "/v1/index/audio-encoder.json").data == before


def test_saying_it_again_changes_nothing(published: Team) -> None:
    published.ask("POST", PATH, published.admin, json={"reason": REASON})
    before = published.state()

    again = published.ask("POST", PATH, published.admin, json={"reason": REASON})

    assert again.get_json()["serial"] == 2
    assert published.state() == before


def test_a_yank_is_in_the_audit_log(published: Team) -> None:
    published.ask("POST", PATH, published.admin, json={"reason": REASON})

    assert (
        f"'actor': 'admin', 'action': 'yank', 'subject': 'audio-encoder 1.0.0', 'detail': '{REASON}', 'serial': 2"
        in (published.state())
    )


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/v1/plugins/audio-encoder/9.9.9/yank", 404, "`audio-encoder` 9.9.9 is not published here"),
        ("/v1/plugins/log-mel/1.0.0/yank", 404, "`log-mel` 1.0.0 is not published here"),
    ],
)
def test_what_is_not_published_cannot_be_yanked(published: Team, path: str, status: int, message: str) -> None:
    before = published.state()

    answer = published.ask("POST", path, published.admin, json={"reason": REASON})

    assert (answer.status_code, problem(answer)["detail"]) == (status, message)
    assert published.state() == before


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, 'the request body is refused: it must be `{"reason": "..."}`'),
        ({"reason": 1}, 'the request body is refused: it must be `{"reason": "..."}`'),
        ({"reason": "x", "more": 1}, 'the request body is refused: it must be `{"reason": "..."}`'),
        ([], "the request body is refused: it is not a JSON object"),
        ({"reason": ""}, "a yank needs a reason, in plain text on one line"),
        ({"reason": "a\nb"}, "a yank needs a reason, in plain text on one line"),
        ({"reason": "x" * 513}, "the reason has 513 characters, more than the 512 allowed"),
    ],
)
def test_a_yank_needs_a_reason(published: Team, body: Any, message: str) -> None:
    before = published.state()

    answer = published.ask("POST", PATH, published.admin, json=body)

    assert (answer.status_code, problem(answer)["detail"]) == (400, message)
    assert published.state() == before


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_only_an_owner_or_an_admin_may(published: Team, method: str) -> None:
    token = published.token("lee")
    before = published.state()

    answer = published.ask(method, PATH, token, json={"reason": REASON})

    assert answer.status_code == 403
    assert problem(answer)["detail"] == "token `lee` may not change `audio-encoder`: it belongs to `admin`"
    assert published.state() == before

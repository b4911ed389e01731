"""Search: by words, device and batch policy, bounded, and never more than what the shards say; and nearest names."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from manifests.batching import BatchPolicy
from manifests.devices import parse_affinity
from registry.services.searching import MAX_QUERY, MAX_RESULTS, MAX_SUMMARY, MAX_WORDS
from registry.services.spelling import distance, nearest
from tests.registry.team import Clock, Team, join_team, manifest_of, problem


@pytest.fixture(scope="module")
def stocked(founded: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Give a registry with three plugins, for tests that change nothing in it."""
    folder, admin = founded
    copy = tmp_path_factory.mktemp("stocked") / "team"
    shutil.copytree(folder, copy)
    team = join_team(copy / "registry", copy / "keys", admin, Clock())
    stock(team)
    yield team
    team.site.database.close()


def stock(team: Team) -> None:
    """Publish three plugins, of the first more than one release."""
    for name, version, summary, devices, batch in (
        ("audio-encoder", "1.0.0", "Turns speech into vectors", ["cpu"], "static"),
        ("audio-encoder", "2.0.0", "Turns speech into vectors", ["cuda:sm_86", "cpu"], "adaptive"),
        ("audio-mixer", "1.0.0", "Mixes 100% of two_channels; \\o/", ["cuda"], "adaptive"),
        ("audio-decoder", "1.0.0", "Makes Speech of vectors", ["npu:0"], "none"),
    ):
        manifest = manifest_of(
            name=name,
            version=version,
            summary=summary,
            device_affinity=parse_affinity(devices),
            batch_policy=BatchPolicy.from_value(batch),
            waivers=tuple((trap, "Kept as a specimen") for trap in ("affinity-unbound", "batch-policy-missing")),
        )
        assert team.publish(team.admin, manifest).status_code == 201


def _ask(team: Team, **asked: Any) -> dict[str, Any]:
    answer = team.ask("GET", f"/v1/search?{urlencode(asked)}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    document = answer.json
    assert isinstance(document, dict)
    return document


def _found(team: Team, **asked: Any) -> list[str]:
    return [result["name"] for result in _ask(team, **asked)["results"]]


def test_an_answer_tells_the_newest_release_of_each_plugin(stocked: Team) -> None:
    assert _ask(stocked, q="encoder") == {
        "_type": "spm.search/1",
        "registry": "team.local",
        "results": [
            {
                "name": "audio-encoder",
                "version": "2.0.0",
                "type": "ext",
                "summary": "Turns speech into vectors",
                "devices": ["cuda:sm_86", "cpu"],
                "batch": "adaptive",
                "yanked": None,
            }
        ],
        "is_cut": False,
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", ["audio-decoder", "audio-encoder", "audio-mixer"]),
        ("audio", ["audio-decoder", "audio-encoder", "audio-mixer"]),
        ("SPEECH vectors", ["audio-decoder", "audio-encoder"]),
        ("mix", ["audio-mixer"]),
        ("audio-mixer", ["audio-mixer"]),
        ("speech mixer", []),
        ("%", ["audio-mixer"]),
        ("0%", ["audio-mixer"]),
        ("o_c", ["audio-mixer"]),
        ("o_e", []),
        ("\\o", ["audio-mixer"]),
        ("a%r", []),
        ("' OR 1=1 --", []),
        ("ü", []),
    ],
)
def test_every_word_is_looked_for_as_it_is_written(stocked: Team, words: str, expected: list[str]) -> None:
    assert _found(stocked, q=words) == expected


def test_a_name_that_is_the_word_comes_first_and_a_summary_last(team: Team) -> None:
    for name, summary in (("log-mel", "A plugin"), ("audio-log-mel", "A plugin"), ("audio-x", "Like log-mel")):
        team.publish(team.admin, manifest_of(name=name, summary=summary))

    assert _found(team, q="log-mel") == ["log-mel", "audio-log-mel", "audio-x"]


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ("cpu", ["audio-encoder"]),
        ("cuda", ["audio-encoder", "audio-mixer"]),
        ("cuda:sm_86", ["audio-encoder", "audio-mixer"]),
        ("cuda:sm_90", ["audio-mixer"]),
        ("cuda:1", ["audio-mixer"]),
        ("npu", ["audio-decoder"]),
        ("npu0", ["audio-decoder"]),
        ("npu:1", []),
        ("mps", []),
    ],
)
def test_a_device_finds_what_names_it_or_all_of_its_kind(stocked: Team, device: str, expected: list[str]) -> None:
    assert _found(stocked, device=device) == expected


def test_a_batch_policy_finds_its_plugins(stocked: Team) -> None:
    assert _found(stocked, batch="adaptive") == ["audio-encoder", "audio-mixer"]
    assert _found(stocked, batch="adaptive", device="cpu", q="speech") == ["audio-encoder"]


def test_no_more_are_told_than_were_asked_for(stocked: Team) -> None:
    cut, whole = _ask(stocked, limit=2), _ask(stocked, limit=3)

    assert ([len(cut["results"]), cut["is_cut"]], [len(whole["results"]), whole["is_cut"]]) == ([2, True], [3, False])


def test_a_yank_is_told_and_an_older_release_that_is_offered_comes_in_its_place(team: Team) -> None:
    stock(team)

    def yank(name: str, version: str, method: str = "POST") -> None:
        path = f"/v1/plugins/{name}/{version}/yank"
        assert team.ask(method, path, team.admin, json={"reason": "it leaks"}).status_code == 200

    yank("audio-encoder", "2.0.0")
    older = _ask(team, q="encoder")["results"][0]
    yank("audio-encoder", "1.0.0")
    yanked = _ask(team)["results"]
    yank("audio-encoder", "2.0.0", "DELETE")
    again = _ask(team, q="encoder")["results"][0]

    assert (older["version"], older["devices"], older["yanked"]) == ("1.0.0", ["cpu"], None)
    assert [one["name"] for one in yanked] == ["audio-decoder", "audio-mixer", "audio-encoder"]
    assert (yanked[2]["version"], yanked[2]["yanked"]) == ("2.0.0", "it leaks")
    assert (again["version"], again["yanked"]) == ("2.0.0", None)


def test_a_pre_release_is_told_only_where_there_is_nothing_else(team: Team) -> None:
    team.publish(team.admin, manifest_of(version="2.0.0-rc.1"))
    alone = _ask(team)["results"][0]["version"]
    team.publish(team.admin, manifest_of(version="1.0.0"))

    assert (alone, _ask(team)["results"][0]["version"]) == ("2.0.0-rc.1", "1.0.0")


def test_a_long_summary_is_cut(team: Team) -> None:
    team.publish(team.admin, manifest_of(summary="a" * 4096))

    assert _ask(team)["results"][0]["summary"] == "a" * MAX_SUMMARY


def test_a_refused_publish_is_not_found(stocked: Team) -> None:
    before = _ask(stocked)

    assert stocked.submit(stocked.token("lee", names=("x-*",)), manifest_of(name="audio-new")).status_code == 403

    assert _ask(stocked) == before


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("audio-encodr", ["audio-encoder", "audio-decoder"]),
        ("audio-encoder", ["audio-decoder"]),
        ("Audio_Encoder", ["audio-decoder"]),
        ("audoi-mixer", ["audio-mixer"]),
        ("oudio-mixer", ["audio-mixer"]),
        ("audiomixer", ["audio-mixer"]),
        ("aud10-m1xer", ["audio-mixer"]),
        ("video", []),
        ("%", []),
        ("____________", []),
    ],
)
def test_nearest_names_are_told(stocked: Team, name: str, expected: list[str]) -> None:
    answer = _ask(stocked, near=name)

    assert (answer["near"], answer["results"]) == (expected, [])


def test_names_and_plugins_can_be_asked_for_at_once(stocked: Team) -> None:
    answer = _ask(stocked, near="audio-mixr", q="speech")

    assert answer["near"] == ["audio-mixer"]
    assert len(answer["results"]) == 2


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("size=1", "'size' is not a parameter of a search: there are `q`, `device`, `batch`, `limit`, `near`"),
        ("q=a&q=b", "`q` is given 2 times, and a search takes it once"),
        ("q=" + "a" * 201, f"`q` has 201 characters, more than the {MAX_QUERY} allowed"),
        ("q=" + "+".join("abcdefghi"), f"`q` has 9 words, more than the {MAX_WORDS} allowed"),
        ("q=%00", "`q` has characters that cannot be printed"),
        ("limit=0", f"`limit` is '0', not a whole number from 1 to {MAX_RESULTS}"),
        ("limit=101", f"`limit` is '101', not a whole number from 1 to {MAX_RESULTS}"),
        ("limit=%D9%A3", f"`limit` is '٣', not a whole number from 1 to {MAX_RESULTS}"),
        ("limit=" + "1" * 5000, f"`limit` is '{'1' * 39}, not a whole number from 1 to {MAX_RESULTS}"),
        ("batch=fast", "'fast' is not one of `adaptive`, `static`, `none`"),
        (
            "device=gpu",
            "'gpu' is not a device: write `cpu`, `cuda`, `cuda:0`, `cuda:sm_86`, `npu`, `npu:0`, `xpu` or `mps`",
        ),
        ("near=", "`near` is not 1 to 64 printable characters"),
        ("near=" + "a" * 65, "`near` is not 1 to 64 printable characters"),
        ("near=a%0Ab", "`near` is not 1 to 64 printable characters"),
    ],
)
def test_a_question_out_of_bounds_is_refused(stocked: Team, query: str, message: str) -> None:
    answer = stocked.ask("GET", f"/v1/search?{query}")

    assert answer.status_code == 400
    assert (problem(answer)["type"], problem(answer)["detail"]) == ("usage", message)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("log-mel", "log-mel", 0),
        ("log-mel", "log-me", 1),
        ("log-mel", "log-mels", 1),
        ("log-mel", "lag-mel", 1),
        ("log-mel", "lgo-mel", 1),
        ("log-mel", "lgomel", 2),
        ("abc", "cba", 2),
        ("", "ab", 2),
        ("log-mel", "x", 3),
        ("abcdef", "uvwxyz", 3),
    ],
)
def test_slips_are_counted(left: str, right: str, expected: int) -> None:
    assert distance(left, right, 2) == distance(right, left, 2) == expected


def test_the_nearest_come_first() -> None:
    assert nearest("alpha", ["alphas", "alpah", "beta", "alpha", "alp"], limit=2) == ("alpah", "alphas")


def test_a_publish_is_stamped_by_the_registrys_clock(team: Team) -> None:
    team.publish(team.admin, manifest_of())
    team.clock.now += 3600
    team.publish(team.admin, manifest_of(version="1.1.0"))
    assert team.submit(team.admin, manifest_of()).status_code == 200  # it is there, and stays what it was

    index = team.ask("GET", "/v1/index/audio-encoder.json").json
    assert isinstance(index, dict)
    assert [release["published"] for release in index["releases"]] == ["2027-01-15T08:00:00Z", "2027-01-15T09:00:00Z"]

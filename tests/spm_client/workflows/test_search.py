"""Search, and names that are near: what is asked, what of an answer is believed, and that no guess harms a refusal."""

import threading
import time
from typing import Any

import pytest

from manifests.errors import BadResponse, NotFound, RegistryUnreachable, SpmError
from manifests.versions import Version
from spm_client.workflows.near import listed, nearest, suggesting
from spm_client.workflows.search import Found, Hit, Query, search

HIT = {
    "name": "log-mel",
    "version": "1.2.0",
    "type": "ext",
    "summary": "Log-mel spectrograms",
    "devices": ["cuda:sm_86", "cpu"],
    "batch": "adaptive",
    "yanked": None,
}
EMPTY = {"_type": "spm.search/1", "registry": "team.example", "results": [], "is_cut": False}


class Registry:
    """Answers with what it is given, or raises it."""

    def __init__(self, answer: dict[str, Any] | SpmError, seconds: float = 0.0) -> None:
        self.answer = answer
        self.seconds = seconds
        self.asked: list[str] = []

    def call(self, method: str, path: str, body: Any = None, *, authorized: bool = True) -> dict[str, Any]:
        assert (method, body, authorized) == ("GET", None, False)
        self.asked.append(path)
        time.sleep(self.seconds)
        if isinstance(self.answer, SpmError):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("query", "path"),
    [
        (Query(), "/v1/search?limit=20"),
        (Query(words=("log", "mel")), "/v1/search?q=log+mel&limit=20"),
        (Query(words=("100%&a=b",), limit=5), "/v1/search?q=100%25%26a%3Db&limit=5"),
        (Query(device="cuda:sm_86", batch="adaptive"), "/v1/search?device=cuda%3Asm_86&batch=adaptive&limit=20"),
        (Query(near="lgo-mel"), "/v1/search?limit=20&near=lgo-mel"),
    ],
)
def test_a_question_is_one_path(query: Query, path: str) -> None:
    registry = Registry(EMPTY)

    search(registry, query, "team.example")

    assert registry.asked == [path]


def test_an_answer_is_read() -> None:
    answer = EMPTY | {"results": [HIT, HIT | {"summary": "", "batch": None, "yanked": "it leaks", "new": 1}]}

    found = search(Registry(answer | {"is_cut": True, "near": ["log-mel"], "newer": {}}), Query(), "team.example")

    hit = Hit(
        name=found.hits[0].name,
        version=Version.parse("1.2.0"),
        type="ext",
        summary="Log-mel spectrograms",
        devices=("cuda:sm_86", "cpu"),
        batch="adaptive",
        yanked=None,
    )
    assert found == Found(hits=(hit, found.hits[1]), is_cut=True, near=(hit.name,))
    assert [one.to_dict() for one in found.hits] == [
        HIT,
        HIT | {"summary": "", "batch": None, "yanked": "it leaks"},
    ]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({}, "the answer is refused: `_type` is missing; `results` is missing; `is_cut` is missing"),
        (
            EMPTY | {"_type": "spm.search/2"},
            "the answer is refused: `_type`: 'spm.search/2' is not one of `spm.search/1`",
        ),
        (
            EMPTY | {"results": [HIT | {"name": "Log Mel"}]},
            "the answer is refused: `results`: item 0: a result is refused: `name`: 'Log Mel' is not a plugin name: "
            "names are lower-case words of a-z and 0-9 joined by single hyphens, 64 characters at most",
        ),
        (
            EMPTY | {"results": [HIT | {"summary": "\x1b[2J"}]},
            "the answer is refused: `results`: item 0: a result is refused: `summary`: '\\x1b[2J' is not plain text of "
            "1 to 4096 characters",
        ),
    ],
)
def test_an_answer_that_is_none_is_refused(answer: dict[str, Any], why: str) -> None:
    with pytest.raises(BadResponse) as refused:
        search(Registry(answer), Query(), "team.example")

    assert refused.value.message == f"the registry `team.example` answered a search with what is no answer: {why}"
    assert refused.value.hint == "check `registry.url` in loader.conf, or ask the registry's administrator"


def test_more_results_than_were_asked_for_are_refused() -> None:
    with pytest.raises(BadResponse, match="is not a list of at most 1 items"):
        search(Registry(EMPTY | {"results": [HIT, HIT]}), Query(limit=1), "team.example")


def test_an_older_registry_has_no_search() -> None:
    with pytest.raises(BadResponse) as refused:
        search(Registry(NotFound("there is nothing at `/v1/search`")), Query(), "team.example")

    assert (refused.value.message, refused.value.hint) == (
        "the registry `team.example` has no search",
        "it runs an older spm-registry: `spm info NAME` shows a plugin whose name you know",
    )


def _refused(registry: Registry, /, **context: Any) -> NotFound:
    with pytest.raises(NotFound) as refused, suggesting(registry, {"log-mle"}, registry="team.example"):
        raise NotFound("there is no such plugin", hint="check how it is spelled", **context)
    assert refused.value.message == "there is no such plugin"
    return refused.value


def test_a_refusal_of_a_name_says_which_are_near() -> None:
    refusal = _refused(Registry(EMPTY | {"near": ["log-mel", "log-mix"]}), name="log-mle")

    assert refusal.hint == "did you mean `log-mel` or `log-mix`?"
    assert refusal.context == {"name": "log-mle", "near": ["log-mel", "log-mix"]}


@pytest.mark.parametrize(
    ("answer", "context"),
    [
        (EMPTY | {"near": []}, {"name": "log-mle"}),
        (EMPTY | {"near": ["\x1b[2J"]}, {"name": "log-mle"}),
        (EMPTY | {"near": ["a", "b", "c", "d"]}, {"name": "log-mle"}),
        (RegistryUnreachable("the registry is gone"), {"name": "log-mle"}),
        (EMPTY | {"near": ["beta"]}, {"name": "what-another-plugin-requires"}),
        (EMPTY | {"near": ["beta"]}, {}),
    ],
)
def test_without_a_guess_a_refusal_stays_as_it_is(answer: dict[str, Any] | SpmError, context: dict[str, str]) -> None:
    refusal = _refused(Registry(answer), **context)

    assert (refusal.hint, refusal.context) == ("check how it is spelled", context)


def test_other_refusals_ask_nobody() -> None:
    registry = Registry(EMPTY)

    with pytest.raises(BadResponse), suggesting(registry, {"log-mle"}, registry="team.example"):
        raise BadResponse("garbage", name="log-mle")

    assert registry.asked == []


def test_what_another_registry_lacks_is_no_question_to_this_one() -> None:
    registry = Registry(EMPTY | {"near": ["log-mel"]})

    own = _refused(registry, name="log-mle", registry="team.example")
    other = _refused(registry, name="log-mle", registry="partner.example")

    assert (own.hint, other.hint) == ("did you mean `log-mel`?", "check how it is spelled")
    assert len(registry.asked) == 1


def test_a_registry_that_takes_too_long_is_not_waited_for() -> None:
    began = time.monotonic()

    assert nearest(Registry(EMPTY | {"near": ["log-mel"]}, seconds=5), "log-mle", seconds=0.1) == ()

    assert time.monotonic() - began < 2
    assert all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread())


def test_names_are_listed_as_a_question_has_them() -> None:
    assert [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["`a`", "`a` or `b`", "`a`, `b` or `c`"]

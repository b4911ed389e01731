"""What a registry may answer, or not answer, to a question about a plugin; each is told apart from the others."""

import re
import socket
import time

import pytest

from tests.e2e.commands import FAULTS, SPM, Client, run
from tests.e2e.snapshots import unchanged
from tests.e2e.stolen_key import serve_shard
from tests.e2e.team import Team
from tests.fakes import tampering_proxy
from tests.fakes.tampering_proxy import PROBLEM, Change, Reply, TamperingProxy, answer

pytestmark = pytest.mark.e2e

ALPHA = "/v1/tuf/targets/index/[0-9a-f]{64}[.]alpha[.]json"
SIGNED = "the registry has signed what is no index: ask its administrator"
FAILED = "the registry, or what stands before it, has failed: run the command again later, or ask its administrator"
INTERNAL = b'{"type":"internal","detail":"the registry failed while answering; its log says more"}'
NOT_FOUND = b'{"type":"not-found","detail":"this registry has no plugin `alpha`"}'


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_plugin_that_the_registry_does_not_have_is_not_found(client: Client) -> None:
    with unchanged(client.home):
        refusal = client.spm("install", "omega")

    context = refusal.refused(
        10,
        "not-found",
        "the registry `team.example` has no plugin `omega`",
        "check how it is spelled, or ask whoever runs the registry",
    )
    assert context == {"name": "omega", "registry": "team.example"}


@pytest.mark.parametrize(("spec", "shown"), [("alpha==9.9.9", "==9.9.9"), ("alpha@^3", "^3")])
def test_a_version_that_the_plugin_does_not_have_is_not_found(client: Client, spec: str, shown: str) -> None:
    with unchanged(client.home):
        refusal = client.spm("install", spec)

    context = refusal.refused(
        10,
        "not-found",
        f"`alpha` has no release in `{shown}`; the newest of 3 is 2.0.0",
        "`alpha==2.0.0` asks for that one",
    )
    assert context == {"plugin": "alpha", "range": shown, "available": ["2.0.0", "1.1.0", "1.0.0"]}


def test_one_unknown_name_among_several_keeps_all_from_being_installed(client: Client) -> None:
    with unchanged(client.home):
        refusal = client.spm("install", "beta", "omega")

    assert (refusal.code, refusal.document["error"]["reason"]) == (10, "not-found")


def test_a_registry_that_is_down_is_unreachable_while_what_is_installed_is_still_verified(
    team: Team, client: Client
) -> None:
    client.spm("install", "beta").ok()
    url = f"http://127.0.0.1:{closed_port()}"
    client.trust(team.loader_conf.replace(team.url, url))

    with unchanged(client.home):
        refusal = client.spm("install", "alpha")
        verified = client.told("verify")

    refusal.refused(
        31,
        "unreachable",
        f"the registry at `{url}` cannot be reached: Connection refused",
        "check `registry.url` in loader.conf and whether the registry is up",
    )
    assert verified.ok().out == "verified   beta 1.1.0\n"


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (answer(500, b"<h1>oops</h1>"), "answered 500 without saying why", FAILED),
        (
            answer(500, INTERNAL, PROBLEM),
            "answered 500: the registry failed while answering; its log says more",
            FAILED,
        ),
        (answer(502, b""), "answered 502 without saying why", FAILED),
        (tampering_proxy.cut(20, is_open=True), "was cut off before its end", "run the command again"),
    ],
    ids=["500", "500-problem", "502", "cut"],
)
def test_an_answer_that_says_nothing_of_the_plugin_is_a_bad_response(
    wire: TamperingProxy, wired: Client, change: Change, message: str, hint: str
) -> None:
    wire.alter(ALPHA, change)

    with unchanged(wired.home):
        began = time.monotonic()
        refusal = wired.spm("install", "alpha")

    assert re.fullmatch(ALPHA, wire.paths[-1])
    refusal.refused(31, "bad-response", f"`{wire.url}{wire.paths[-1]}` {message}", hint)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("kind", [PROBLEM, "application/json", "text/html"])
def test_an_index_that_is_listed_and_not_there_is_a_bad_response(
    wire: TamperingProxy, wired: Client, kind: str
) -> None:
    wire.alter(ALPHA, answer(404, NOT_FOUND, kind))

    with unchanged(wired.home):
        refusal = wired.spm("install", "alpha")

    refusal.refused(
        31,
        "bad-response",
        "the registry lists `index/alpha.json` and does not have it",
        "run the command again",
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"<html>", "the index shard is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"[]", "the index shard is not a JSON object"),
        (b'{"_type": "spm.index/1"}', "the index shard is not in RFC 8785 canonical form"),
    ],
)
def test_an_index_that_is_no_index_is_a_bad_response(
    team: Team, wire: TamperingProxy, wired: Client, data: bytes, why: str
) -> None:
    serve_shard(team, wire, "alpha", data)

    with unchanged(wired.home):
        refusal = wired.spm("install", "alpha")

    refusal.refused(31, "bad-response", f"the index of `alpha` cannot be read: {why}", SIGNED)


def test_a_redirect_is_told_and_not_followed(team: Team, wire: TamperingProxy, wired: Client) -> None:
    with TamperingProxy(team.url) as elsewhere, unchanged(wired.home):
        target = elsewhere.url + "/v1/index/alpha.json"
        wire.alter(ALPHA, tampering_proxy.redirect(target))
        refusal = wired.spm("install", "alpha")

    refusal.refused(
        31,
        "bad-response",
        f"`{wire.url}{wire.paths[-1]}` answered 302 and points to '{target}', but spm follows no redirect",
        "if the registry has moved, write where it is now as `registry.url` in loader.conf",
    )
    assert elsewhere.seen == []


def test_an_encoding_that_was_not_asked_for_is_a_bad_response(wire: TamperingProxy, wired: Client) -> None:
    wire.alter(ALPHA, lambda reply: Reply(status=200, headers=(("Content-Encoding", "gzip"),), body=[b"x"], length=1))

    with unchanged(wired.home):
        refusal = wired.spm("install", "alpha")

    refusal.refused(
        31, "bad-response", f"`{wire.url}{wire.paths[-1]}` sent the encoding 'gzip', which was not asked for"
    )
    assert {request.headers["accept-encoding"] for request in wire.seen} == {"identity"}


@pytest.mark.parametrize("path", ["/v1/tuf/timestamp[.]json", "/v1/manifests/[0-9a-f]+", "/v1/blobs/[0-9a-f]+"])
def test_a_body_that_only_drips_is_given_up_at_its_deadline(wire: TamperingProxy, wired: Client, path: str) -> None:
    wire.alter(path, tampering_proxy.drip(0.05))
    # The client's clock goes two hundred times as fast, so that two minutes pass while the test waits a second.
    hurried = wired.environment | {"PYTHONPATH": str(FAULTS), "FAST_CLOCK": "200"}

    with unchanged(wired.home):
        refusal = run([SPM, "install", "beta", "--json"], hurried)

    refusal.refused(
        31,
        "timeout",
        f"`{wire.url}{wire.paths[-1]}` was too slow and was given up",
        "run the command again when the network is better",
    )

"""Every shape in RFC 8725's list ends in its refusal, and none of them makes anybody open a connection."""

import base64
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from keys.ext_signature import verify_compact, verify_manifest_token
from keys.public_key import to_jwk
from keys.verified import JWS_FILE, FetchedManifest, verify_manifest
from tests.keys import tokens
from tests.keys.builders import EXT, expected, keyring, manifest, pem, refusal_of
from tests.keys.tokens import DATA, TOKEN, Case

ROOT = Path(__file__).parents[2]
NOWHERE = "http://127.0.0.1:9/keys.json"

WATCHED = """
import base64, json, sys

seen = []
sys.addaudithook(lambda event, _: seen.append(event) if event.startswith(PREFIXES) else None)
PREFIXES = ("socket.", "urllib.", "http.", "ftplib.", "subprocess.", "os.system", "os.exec", "os.posix_spawn")

from keys.ext_signature import verify_compact, verify_manifest_token
from keys.public_key import to_jwk
from manifests.errors import SpmError

given = json.load(sys.stdin)
refused = 0
for token in map(base64.b64decode, given["tokens"]):
    for call, key in ((verify_manifest_token, given["pem"].encode()), (verify_compact, to_jwk(given["pem"].encode()))):
        try:
            call(token, key)
        except SpmError:
            refused += 1
print(json.dumps([refused, seen[:]]))

import socket
socket.create_connection(("127.0.0.1", given["port"])).close()
print("socket.connect" in seen)
"""


@cache
def cases(url: str) -> dict[str, Case]:
    return tokens.cases(url)


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """Yield a socket that listens and answers nobody: whoever came by waits in its queue."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        listening.setblocking(False)
        yield listening


def url_of(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/keys.json"


def visitors(listener: socket.socket) -> int:
    count = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


each_case = pytest.mark.parametrize("name", list(cases(NOWHERE)))


@each_case
def test_shape_is_refused_with_its_message(name: str) -> None:
    case = cases(NOWHERE)[name]

    refusal = refusal_of(lambda: verify_manifest_token(case.token, pem(EXT)))

    assert refusal is not None
    assert (type(refusal), refusal.message) == (case.kind, case.message)
    assert (refusal.exit_code, refusal.reason) == (20, case.kind.default_reason)


@each_case
def test_general_verifier_refuses_the_same_but_for_the_rules_of_manifests(name: str) -> None:
    case = cases(NOWHERE)[name]

    refusal = refusal_of(lambda: verify_compact(case.token, to_jwk(pem(EXT))))

    told = (type(refusal), refusal.message) if refusal else None
    assert told == (None if case.is_manifest_rule else (case.kind, case.message))


@each_case
def test_loader_refuses_a_release_of_that_shape_by_name(name: str) -> None:
    case, made = cases(NOWHERE)[name], manifest()
    fetched = FetchedManifest(data=DATA, signatures={JWS_FILE: case.token})

    refusal = refusal_of(lambda: verify_manifest(fetched, keyring(), expected(made)))

    assert refusal is not None
    assert (type(refusal), refusal.message) == (case.kind, f"`audio-encoder` 1.2.0 is refused: {case.message}")


def test_token_that_the_shapes_are_made_from_is_accepted() -> None:
    assert verify_manifest_token(TOKEN, pem(EXT)) == DATA


def test_no_shape_makes_a_verifier_fetch_anything(listener: socket.socket) -> None:
    for case in cases(url_of(listener)).values():
        refusal_of(partial(verify_manifest_token, case.token, pem(EXT)))
        refusal_of(partial(verify_compact, case.token, to_jwk(pem(EXT))))

    assert visitors(listener) == 0
    with socket.create_connection(listener.getsockname()):
        assert visitors(listener) == 1


def test_process_that_verifies_every_shape_touches_no_network(listener: socket.socket) -> None:
    made = cases(url_of(listener)).values()
    rules = sum(case.is_manifest_rule for case in made)
    given = {"pem": pem(EXT).decode(), "port": listener.getsockname()[1]}
    given |= {"tokens": [base64.b64encode(case.token).decode() for case in made]}

    command = [sys.executable, "-c", WATCHED]
    done = subprocess.run(command, cwd=ROOT, input=json.dumps(given), capture_output=True, text=True, check=True)

    # The last line is the control: the same hook sees a connection where there is one, and so does the listener.
    assert done.stdout.splitlines() == [json.dumps([2 * len(made) - rules, []]), "True"]
    assert visitors(listener) == 1

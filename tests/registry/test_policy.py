"""The policy: every route names an action, and what the table does not allow is refused."""

import re

import pytest

from registry.api.fast_reads import FastReads
from registry.api.guarded import GuardedFlask
from registry.services.policy import ALLOWED, ANYONE, Action, Caller, Role, scope_problem
from tests.registry.team import Team, problem

# What each role may do, written out a second time on purpose: a change of the table must be meant.
MATRIX = {
    "see-health": "anonymous reader publisher admin",
    "see-registry": "anonymous reader publisher admin",
    "read-index": "anonymous reader publisher admin",
    "read-manifest": "anonymous reader publisher admin",
    "read-blob": "anonymous reader publisher admin",
    "search": "anonymous reader publisher admin",
    "whoami": "reader publisher admin",
    "open-upload": "publisher admin",
    "see-upload": "publisher admin",
    "send-blob": "publisher admin",
    "commit-upload": "publisher admin",
    "yank": "publisher admin",
    "unyank": "publisher admin",
}


def _app(team: Team) -> GuardedFlask:
    app = team.client.application
    assert isinstance(app, GuardedFlask)
    return app


def _routes(team: Team) -> list[tuple[str, str, Action]]:
    """Walk the URL map: (method, path with values filled in, action)."""
    app = _app(team)
    routes = []
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<[^>]*:(upload_id)>", "0" * 32, rule.rule)
        path = re.sub(r"<[^>]*:(sha256)>", "0" * 64, path)
        path = re.sub(r"<[^>]*:name>", "log-mel", path)
        path = re.sub(r"<[^>]*:version>", "1.0.0", path)
        for method in sorted(rule.methods or ()):
            routes.append((method, path, app.actions[rule.endpoint]))
    return routes


def test_the_table_says_what_is_written_here() -> None:
    told = {action.value: " ".join(role.value for role in Role if action in ALLOWED[role]) for action in Action}

    assert told == MATRIX


def test_every_route_obeys_the_table_for_every_role(team: Team) -> None:
    tokens: dict[Role, str | None] = {Role.ANONYMOUS: None}
    tokens |= {role: team.token(role.value, role) for role in Role if role is not Role.ANONYMOUS}
    wrong = []

    for method, path, action in _routes(team):
        for role in Role:
            answer = team.ask(method, path, tokens[role])
            refused = answer.status_code in (401, 403)
            if refused is (role.value in MATRIX[action.value].split()):
                wrong.append((method, path, role.value, answer.status_code))

    assert wrong == []


def test_every_action_has_a_route(team: Team) -> None:
    reads = _app(team).wsgi_app
    assert isinstance(reads, FastReads)

    routed = {action for _, _, action in _routes(team)} | {action for _, action, _ in reads.routes}

    assert routed == set(Action)


def test_a_route_without_an_action_cannot_be_registered() -> None:
    app = GuardedFlask("bare", lambda header: ANYONE)

    with pytest.raises(TypeError) as caught:
        app.add_url_rule("/open", view_func=lambda: "")

    assert str(caught.value) == "the route /open names no action of registry.services.policy"


def test_a_role_that_may_not_is_told_so(team: Team) -> None:
    token = team.token("lee", Role.READER)

    answer = team.ask("POST", "/v1/uploads", token, json={})

    assert answer.status_code == 403
    assert problem(answer) == {
        "type": "scope",
        "title": "Forbidden",
        "status": 403,
        "detail": "token `lee` has the role reader, which may not `open-upload`",
        "hint": "ask an admin of this registry for a token of another role",
        "context": {"role": "reader", "action": "open-upload"},
    }


def test_a_stranger_is_asked_for_a_token(team: Team) -> None:
    answer = team.ask("POST", "/v1/uploads", json={})

    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="spm"'
    assert problem(answer)["detail"] == "`open-upload` needs a token, and the request carries none"


@pytest.mark.parametrize(
    ("role", "label", "names", "owners", "expected"),
    [
        (Role.ADMIN, "root", (), ("maria",), None),
        (Role.PUBLISHER, "maria", ("audio-*",), ("maria",), None),
        (Role.PUBLISHER, "maria", ("audio-*",), (), None),
        (
            Role.PUBLISHER,
            "lee",
            ("audio-*",),
            ("maria",),
            "token `lee` may not change `audio-encoder`: it belongs to `maria`",
        ),
        (
            Role.PUBLISHER,
            "maria",
            ("log-*", "mel"),
            ("maria",),
            "token `maria` may not change `audio-encoder`: its name patterns are `log-*`, `mel`",
        ),
        (
            Role.READER,
            "lee",
            (),
            (),
            "token `lee` may not change `audio-encoder`: its name patterns are none",
        ),
    ],
)
def test_a_name_may_be_changed_by_its_owner_within_the_pattern_or_by_an_admin(
    role: Role, label: str, names: tuple[str, ...], owners: tuple[str, ...], expected: str | None
) -> None:
    caller = Caller(role=role, label=label, names=names, token_id="t")

    assert scope_problem(caller, "audio-encoder", owners) == expected

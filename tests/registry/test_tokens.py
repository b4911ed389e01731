"""Tokens: their form, their life, and what rests of them in the database."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.errors import UsageError
from registry.services import tokens
from registry.services.policy import Role
from registry.services.tokens import TokenRequest
from tests.registry.team import Team, manifest_of, problem

BASE62 = string.digits + string.ascii_letters


def test_a_token_is_a_prefix_43_characters_and_a_checksum() -> None:
    text = tokens.new_text()

    assert text.startswith("spm_")
    assert len(text) == 4 + 43 + 6
    assert set(text[4:]) <= set(BASE62)
    assert tokens.is_well_formed(text)


@pytest.mark.property
@given(place=st.integers(4, 52), letter=st.sampled_from(BASE62))
def test_one_wrong_character_is_always_noticed(place: int, letter: str) -> None:
    text = "spm_" + "0" * 42 + "1" + tokens._checksum("0" * 42 + "1")
    changed = text[:place] + letter + text[place + 1 :]

    assert tokens.is_well_formed(changed) is (changed == text)


@pytest.mark.property
@given(st.text())
def test_any_other_text_is_not_a_token(text: str) -> None:
    assert not tokens.is_well_formed(text)


def test_who_holds_a_token_can_ask_what_it_is(team: Team) -> None:
    token = team.token("maria", names=("audio-*", "log-mel"))

    answer = team.ask("GET", "/v1/whoami", token)

    assert answer.get_json() == {"label": "maria", "role": "publisher", "names": ["audio-*", "log-mel"]}


def test_a_token_is_not_in_the_registry_folder(team: Team) -> None:
    token = team.token("maria")
    team.ask("GET", "/v1/whoami", token)

    held = b"".join(path.read_bytes() for path in team.root.rglob("*") if path.is_file())

    assert token.encode() not in held
    assert token[4:-6].encode() not in held


@pytest.mark.parametrize("header", ["spm_x", "Basic spm_x", "Bearer ", "Bearer spm_x", "bearer spm_x", "Bearer \xff"])
def test_a_malformed_token_is_refused(team: Team, header: str) -> None:
    answer = team.ask("GET", "/v1/whoami", headers={"Authorization": header})

    assert answer.status_code == 401
    assert problem(answer)["type"] == "auth"


def test_a_token_of_another_registry_is_unknown(team: Team) -> None:
    answer = team.ask("GET", "/v1/whoami", tokens.new_text())

    assert answer.status_code == 401
    assert problem(answer)["detail"] == "this registry does not know the token"


def test_a_malformed_token_is_refused_before_the_database_is_asked(team: Team) -> None:
    (team.root / "registry.db").rename(team.root / "elsewhere.db")
    team.site.database.close()

    answer = team.ask("GET", "/v1/whoami", tokens.new_text()[:-1] + "!")

    assert answer.status_code == 401


def test_an_expired_token_says_so(team: Team) -> None:
    token = team.token("maria", days=90)
    team.clock.now += 90 * 86_400

    answer = team.ask("GET", "/v1/whoami", token)

    assert answer.status_code == 401
    body = problem(answer)
    assert (body["type"], body["detail"]) == ("token-expired", "the token `maria` has expired")
    assert body["hint"] == "ask an admin for a new one (`spm-registry token new`), then `spm login`"


def test_a_token_lives_until_its_last_second(team: Team) -> None:
    token = team.token("maria", days=1)
    team.clock.now += 86_400 - 1

    assert team.ask("GET", "/v1/whoami", token).status_code == 200


def test_reading_works_with_an_expired_token(team: Team) -> None:
    team.publish(team.admin, manifest_of())
    token = team.token("maria", days=1)
    team.clock.now += 86_400

    assert team.ask("GET", "/v1/index/audio-encoder.json", token).status_code == 200
    assert team.ask("GET", "/v1/registry", token).status_code == 200


def test_the_last_use_of_a_token_is_noted_but_not_at_each_request(team: Team) -> None:
    token = team.token("maria")
    noted = []

    for wait in (0, 299, 1):
        team.clock.now += wait
        team.ask("GET", "/v1/whoami", token)
        with team.site.database.reading() as records:
            noted.append(next(row.last_used_at for row in records.tokens() if row.label == "maria"))

    start = team.clock.now - 300
    assert noted == [start, start, start + 300]


def test_a_revoked_token_is_over_at_once(team: Team) -> None:
    token = team.token("maria")
    with team.site.database.writing() as records:
        row = next(row for row in records.tokens() if row.label == "maria")
        tokens.revoke(records, row.id, actor="test", now=team.clock())

    body = problem(team.ask("GET", "/v1/whoami", token))
    assert (body["status"], body["type"]) == (401, "auth")
    assert body["detail"] == "the token `maria` was revoked on 2027-01-15"
    assert body["hint"] == "ask an admin for a new one (`spm-registry token new`), then `spm login`"


def test_a_token_that_was_revoked_is_not_called_expired_later_on(team: Team) -> None:
    token = team.token("maria", days=1)
    with team.site.database.writing() as records:
        row = next(row for row in records.tokens() if row.label == "maria")
        tokens.revoke(records, row.id, actor="test", now=team.clock())
    team.clock.now += 30 * 86_400

    detail = problem(team.ask("GET", "/v1/whoami", token))["detail"]

    assert detail == "the token `maria` was revoked on 2027-01-15"


@pytest.mark.parametrize(
    ("label", "role", "names", "days", "message"),
    [
        ("", Role.ADMIN, (), 90, "'' is not a label: write 1 to 64 printable characters"),
        ("a\nb", Role.ADMIN, (), 90, "'a\\nb' is not a label: write 1 to 64 printable characters"),
        ("maria", Role.ANONYMOUS, (), 90, "a token cannot have the role anonymous"),
        ("maria", Role.ADMIN, (), 0, "a token lives 1 to 3650 days, not 0"),
        ("maria", Role.PUBLISHER, (), 90, "a publisher's token needs the names that it may publish"),
        (
            "maria",
            Role.PUBLISHER,
            ("Audio",),
            90,
            "'Audio' is not a name pattern: write plugin names with `*` or `?`, such as `audio-*`",
        ),
    ],
)
def test_a_token_that_makes_no_sense_is_not_made(
    team: Team, label: str, role: Role, names: tuple[str, ...], days: int, message: str
) -> None:
    before = team.state()

    request = TokenRequest(label=label, role=role, names=names, days=days)
    with pytest.raises(UsageError) as caught, team.site.database.writing() as records:
        tokens.issue(records, request, secret=team.site.secret, actor="test", now=team.clock())

    assert caught.value.message == message
    assert team.state() == before

"""Refusals over HTTP: one frame, a status for each family, and nothing of the inside in a failure."""

import json
import logging
from collections.abc import Iterator

import pytest

from manifests import errors
from manifests.errors import SpmError
from registry.api.problems import internal_problem, problem_of
from registry.log import JsonLines
from tests.registry.team import FILES, Team, digest, manifest_of, problem

STATUS = {
    "UsageError": 400,
    "NotFound": 404,
    "SignatureInvalid": 422,
    "KeyUnknown": 422,
    "Mix": 422,
    "DigestMismatch": 422,
    "TooBig": 413,
    "AuthRequired": 401,
    "TokenExpired": 401,
    "ScopeRefused": 403,
    "PublishRefused": 422,
    "VersionExists": 409,
    "LimitReached": 429,
    "PolicyDenied": 422,
    "ConfigSyntax": 500,
}


def _families(root: type[SpmError]) -> Iterator[type[SpmError]]:
    for family in root.__subclasses__():
        yield family
        yield from _families(family)


@pytest.mark.parametrize(("family", "status"), STATUS.items())
def test_a_family_has_its_status(family: str, status: int) -> None:
    assert problem_of(getattr(errors, family)("no")).status == status


def test_every_family_has_a_status() -> None:
    for family in _families(SpmError):
        if family is not errors.RegistryRefused:
            assert 400 <= problem_of(family("no")).status <= 599, family


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("busy", 503),
        ("incomplete", 409),
        ("offset", 409),
        ("range", 416),
        ("slow-body", 408),
        ("storage-full", 507),
        ("upload-busy", 409),
    ],
)
def test_a_reason_of_the_registry_has_its_status(reason: str, status: int) -> None:
    assert problem_of(errors.RegistryRefused("no", reason=reason)).status == status


def test_a_busy_registry_says_when_to_come_back() -> None:
    assert ("Retry-After", "2") in problem_of(errors.RegistryRefused("no", reason="busy")).headers


def test_an_unknown_path_is_not_found(team: Team) -> None:
    answer = team.ask("GET", "/v2/%1bnothing")

    assert answer.status_code == 404
    assert problem(answer)["detail"] == "there is nothing at `/v2/\\x1bnothing`"


def test_a_wrong_method_names_the_right_ones(team: Team) -> None:
    slow = team.ask("GET", "/v1/uploads")
    fast = team.ask("PUT", "/v1/index/log-mel.json")

    assert [slow.status_code, fast.status_code] == [405, 405]
    assert (slow.headers["Allow"], fast.headers["Allow"]) == ("POST", "GET, HEAD")
    assert problem(slow)["detail"] == "`/v1/uploads` does not take GET"
    assert problem(fast)["detail"] == "`/v1/index/log-mel.json` does not take PUT"
    assert problem(slow)["type"] == "method"


def test_options_is_never_answered_by_itself(team: Team) -> None:
    assert team.ask("OPTIONS", "/v1/uploads").status_code == 405


def test_a_failure_tells_nothing_of_the_inside_and_logs_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, logger="registry"):
        try:
            raise ZeroDivisionError("the secret is 42")
        except ZeroDivisionError as error:
            found = internal_problem(error, method="GET", path="/v1/x")

    assert json.loads(found.body) == {
        "type": "internal",
        "title": "Internal Server Error",
        "status": 500,
        "detail": "the registry failed while answering; its log says more",
        "hint": "",
        "context": {},
    }
    (record,) = caplog.records
    assert record.getMessage() == "unexpected ZeroDivisionError"
    facts = getattr(record, "facts", {})
    assert (facts["method"], facts["path"]) == ("GET", "/v1/x")
    assert "the secret is 42" in facts["trace"]


def test_a_blob_that_is_gone_from_disk_is_a_failure_and_not_a_404(team: Team, caplog: pytest.LogCaptureFixture) -> None:
    team.publish(team.admin, manifest_of())
    sha256 = digest(FILES["weights.bin"])
    team.site.blobs.path(sha256).unlink()

    answer = team.ask("GET", f"/v1/blobs/{sha256}")

    assert answer.status_code == 500
    assert problem(answer)["type"] == "internal"
    assert [record.getMessage() for record in caplog.records] == ["unexpected FileNotFoundError"]


def test_what_is_wrong_with_the_machine_is_not_told(team: Team, caplog: pytest.LogCaptureFixture) -> None:
    team.site.loader_conf.chmod(0o666)

    answer = team.submit(team.admin, manifest_of())

    assert answer.status_code == 500
    assert problem(answer)["detail"] == "the registry failed while answering; its log says more"
    (record,) = caplog.records
    assert record.getMessage() == "unexpected ConfigPermissions"
    assert str(team.site.loader_conf) in getattr(record, "facts", {})["trace"]


def test_the_log_has_one_line_for_one_failure() -> None:
    record = logging.LogRecord("registry", logging.ERROR, "", 0, "unexpected %s", ("KeyError",), None)
    record.facts = {"trace": "one\ntwo"}

    line = JsonLines().format(record)

    assert "\n" not in line
    told = json.loads(line)
    assert (told["level"], told["message"], told["trace"]) == ("error", "unexpected KeyError", "one\ntwo")

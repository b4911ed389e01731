"""Batch policies as words and tables."""

import pytest
from hypothesis import given

from manifests.batching import BatchMode, BatchPolicy, Objective
from manifests.errors import UsageError
from tests.manifests.builders import UNHURRIED, holds_or_refuses, hostile, policies, refused


@pytest.mark.parametrize("word", ["adaptive", "static", "none"])
def test_word_is_a_policy_with_the_defaults(word: str) -> None:
    policy = BatchPolicy.from_value(word)

    assert policy == BatchPolicy(
        mode=BatchMode(word), max_batch_size=32, max_latency_ms=100, objective=Objective.LATENCY
    )
    assert policy.to_value() == word


def test_table_sets_what_it_names() -> None:
    policy = BatchPolicy.from_value({"mode": "adaptive", "max_batch_size": 8, "objective": "efficiency"})

    assert policy.to_value() == {
        "mode": "adaptive",
        "max_batch_size": 8,
        "max_latency_ms": 100,
        "objective": "efficiency",
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("auto", "batch_policy is 'auto', not one of `adaptive`, `static`, `none`"),
        ("", "batch_policy is '', not one of `adaptive`, `static`, `none`"),
        ("none\n", "batch_policy is 'none\\n', not one of `adaptive`, `static`, `none`"),
        ({"mode": "Static"}, "batch_policy.mode is 'Static', not one of `adaptive`, `static`, `none`"),
        ({"mode": ["none"]}, "batch_policy.mode is \"['none']\", not one of `adaptive`, `static`, `none`"),
        ({"mode": None}, "batch_policy.mode is 'None', not one of `adaptive`, `static`, `none`"),
        ({"mode": "none", "objective": 1}, "batch_policy.objective is '1', not one of `latency`, `efficiency`"),
        ({"mode": "none", "size": 1}, "batch_policy has the unknown member 'size'"),
        (
            {"mode": "none", "max_batch_size": True},
            "batch_policy.max_batch_size is 'True', not a whole number from 1 to 65536",
        ),
        (
            {"mode": "none", "max_batch_size": 0},
            "batch_policy.max_batch_size is '0', not a whole number from 1 to 65536",
        ),
        (
            {"mode": "none", "max_latency_ms": "20"},
            "batch_policy.max_latency_ms is '20', not a whole number from 1 to 600000",
        ),
        ({}, "batch_policy is `adaptive`, `static`, `none`, or a table with `mode`"),
        ([], "batch_policy is `adaptive`, `static`, `none`, or a table with `mode`"),
        (None, "batch_policy is `adaptive`, `static`, `none`, or a table with `mode`"),
        (False, "batch_policy is `adaptive`, `static`, `none`, or a table with `mode`"),
    ],
)
def test_other_value_is_refused(value: object, message: str) -> None:
    assert refused(lambda: BatchPolicy.from_value(value), UsageError) == message


def test_long_member_names_are_cut() -> None:
    assert len(refused(lambda: BatchPolicy.from_value({"mode": "none", "x" * 100_000: 1}), UsageError)) < 100


def test_members_that_are_no_text_are_refused() -> None:
    value = {"mode": "none", 1: 1, "x": 1}

    assert refused(lambda: BatchPolicy.from_value(value), UsageError) == "batch_policy has the unknown member '1'"


@pytest.mark.property
@UNHURRIED
@given(policies)
def test_policy_reads_back(policy: BatchPolicy) -> None:
    assert BatchPolicy.from_value(policy.to_value()) == policy


@pytest.mark.property
@UNHURRIED
@given(hostile)
def test_any_value_is_a_policy_or_refused(value: object) -> None:
    holds_or_refuses(lambda: BatchPolicy.from_value(value))

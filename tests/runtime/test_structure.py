"""Nested results: what crosses comes out the same; nothing else crosses."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.errors import UsageError
from runtime.structure import build, flatten


class Leaf:
    """Stands for a tensor."""


LEAVES = st.builds(Leaf)
PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    LEAVES | PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=10,
)


def is_leaf(value: Any) -> bool:
    return isinstance(value, Leaf)


@pytest.mark.property
@given(VALUES)
def test_any_nested_value_comes_out_as_it_went_in(value: Any) -> None:
    node, leaves = flatten(value, is_leaf)

    assert repr(value) == repr(build(node, leaves))


@pytest.mark.parametrize("number", [math.nan, math.inf, -0.0, 5e-324])
def test_every_float_crosses_exactly(number: float) -> None:
    node, _ = flatten(number, is_leaf)

    assert repr(number) == repr(build(node, []))


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "a value of type 'object' cannot leave the worker; return tensors or plain values"),
        (1j, "a value of type 'complex' cannot leave the worker; return tensors or plain values"),
        ({None: 1}, "keys of a dict in a result are text or whole numbers"),
        (2**64, "a whole number in a result has at most 64 bits"),
        ("x" * 65537, "text in a result has at most 65536 characters"),
        (nested(17), "a result is nested at most 16 deep and has at most 65536 values"),
        ([0] * 65536, "a result is nested at most 16 deep and has at most 65536 values"),
        ([Leaf()] * 4097, "a result has at most 4096 tensors"),
    ],
)
def test_what_cannot_cross_is_refused_in_the_worker(value: Any, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        flatten(value, is_leaf)

    assert message == refusal.value.message


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"t": 1}, "a result names tensor '1' of 1"),
        ({"t": True}, "a result names tensor 'True' of 1"),
        ({"l": [{"t": 0}, {"t": 0}]}, "a result names a tensor twice, or not at all"),
        ({"p": 1}, "a result names a tensor twice, or not at all"),
        ({"p": [1]}, "a result has the unknown node 'p'"),
        ({"f": "nothing"}, "'nothing' is not a number"),
        ({"c": "os.system"}, "a result has the unknown node 'c'"),
        ({"l": 1}, "a node of a result is not a list"),
        ({"d": [[1]]}, "a member of a dict in a result is not a pair"),
        ({}, "a node of a result is not an object with one member"),
        (7, "a node of a result is not an object with one member"),
    ],
)
def test_hostile_nodes_are_refused_in_the_host(node: Any, message: str) -> None:
    with pytest.raises(UsageError) as refusal:
        build(node, [Leaf()])

    assert message == refusal.value.message


def test_hostile_depth_is_refused_before_the_stack_ends() -> None:
    node: Any = {"p": None}
    for _ in range(500):
        node = {"l": [node]}
    refusing: Callable[[], Any] = lambda: build(node, [])  # noqa: E731

    with pytest.raises(UsageError) as refusal:
        refusing()

    assert refusal.value.message == "a result is nested at most 16 deep and has at most 65536 values"

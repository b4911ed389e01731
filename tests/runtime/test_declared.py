"""What a manifest declares of tensors against what comes and goes, without a worker."""

from typing import Any

import pytest

from manifests.errors import PluginFailed, UsageError
from manifests.parts import TensorSpec
from runtime.declared import TensorFacts, check_inputs, check_result

X = TensorSpec(name="x", dtype="float32", shape=(-1, 4))
BIAS = TensorSpec(name="bias", dtype="int64", shape=())
ROW = TensorFacts(dtype="float32", shape=(1, 4))
SHORT = TensorFacts(dtype="float32", shape=(1, 3))
SCALAR = TensorFacts(dtype="int64", shape=())
HINT = "its author must mend `outputs` in manifest.yaml, or what the plugin returns"


@pytest.mark.parametrize(
    ("declared", "came"),
    [
        ([X, BIAS], [ROW, SCALAR]),
        ([X], [TensorFacts(dtype="float32", shape=(0, 4))]),
        ([], []),
        ([], [SCALAR, SHORT]),
    ],
)
def test_what_is_declared_or_not_declared_at_all_is_taken(declared: list[TensorSpec], came: list[TensorFacts]) -> None:
    check_inputs("scale", declared, came)


@pytest.mark.parametrize(
    ("declared", "came", "message"),
    [
        ([X], [SHORT], "`scale` takes `x` float32 [-1, 4], and got float32 [1, 3]"),
        (
            [X],
            [TensorFacts(dtype="float64", shape=(1, 4))],
            "`scale` takes `x` float32 [-1, 4], and got float64 [1, 4]",
        ),
        ([X], [TensorFacts(dtype="float32", shape=(4,))], "`scale` takes `x` float32 [-1, 4], and got float32 [4]"),
        ([X, BIAS], [ROW, ROW], "`scale` takes `bias` int64 [], and got float32 [1, 4]"),
        ([X, BIAS], [ROW], "`scale` takes `x` float32 [-1, 4], `bias` int64 [], and got 1 tensor"),
        ([X], [ROW, ROW], "`scale` takes `x` float32 [-1, 4], and got 2 tensors"),
        ([X], [], "`scale` takes `x` float32 [-1, 4], and got no tensor"),
    ],
)
def test_input_that_is_not_as_declared_is_refused(
    declared: list[TensorSpec], came: list[TensorFacts], message: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        check_inputs("scale", declared, came)

    assert refusal.value.message == message


@pytest.mark.parametrize(
    ("declared", "result"),
    [
        ([X], ROW),
        ([X], [ROW]),
        ([X], {"x": ROW}),
        ([X, BIAS], (ROW, SCALAR)),
        ([X, BIAS], {"bias": SCALAR, "x": ROW}),
        ([], SHORT),
        ([], [None, {"a": "text"}, SHORT]),
        ([], {}),
    ],
)
def test_result_as_declared_or_not_declared_at_all_is_returned(declared: list[TensorSpec], result: Any) -> None:
    check_result("scale", declared, result)


@pytest.mark.parametrize(
    ("declared", "result", "message"),
    [
        ([X], SHORT, "`scale` declares the output `x` float32 [-1, 4], and returned float32 [1, 3]"),
        ([X], [None], "`scale` declares the output `x` float32 [-1, 4], and returned a value of type 'NoneType'"),
        ([X], {"x": [ROW]}, "`scale` declares the output `x` float32 [-1, 4], and returned a list of 1"),
        ([X], {"y": ROW}, "`scale` declares the output `x`, and returned a dict of `y`"),
        ([X], {}, "`scale` declares the output `x`, and returned a dict of nothing"),
        ([X], (ROW, ROW), "`scale` declares the output `x`, and returned a tuple of 2"),
        ([X, BIAS], ROW, "`scale` declares the outputs `x`, `bias`, and returned float32 [1, 4]"),
        ([X, BIAS], {"x": ROW, 3: 1}, "`scale` declares the outputs `x`, `bias`, and returned a dict of `x`, `3`"),
        (
            [X],
            {f"\x1b[2J{place}": ROW for place in range(10)},
            "`scale` declares the output `x`, and returned a dict of "
            + ", ".join(f"`\\x1b[2J{place}`" for place in range(8))
            + " and 2 more",
        ),
    ],
)
def test_result_that_is_not_as_declared_is_the_plugins_failure(
    declared: list[TensorSpec], result: Any, message: str
) -> None:
    with pytest.raises(PluginFailed) as refusal:
        check_result("scale", declared, result)

    assert (refusal.value.message, refusal.value.hint) == (message, HINT)


@pytest.mark.parametrize("result", ["text", 7, None, 0.5, True])
@pytest.mark.parametrize("declared", [[], [X]])
def test_bare_plain_value_is_no_result(declared: list[TensorSpec], result: Any) -> None:
    with pytest.raises(PluginFailed) as refusal:
        check_result("scale", declared, result)

    assert refusal.value.message == (
        f"`scale` returned a value of type '{type(result).__name__}': "
        "a plugin returns a tensor, or a tuple, list or dict of tensors and plain values"
    )

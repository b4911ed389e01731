"""Frames: what goes in comes out in any cut, and nothing else is taken."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.protocol import (
    MAX_FRAME_BYTES,
    Decoder,
    Failed,
    Grow,
    LayerResult,
    Proof,
    ProtocolBroken,
    Ready,
    Result,
    Slot,
    encode,
    parse_reply,
)


@pytest.mark.property
@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), st.integers()), max_size=4), st.integers(1, 40))
def test_messages_survive_any_cut_of_the_stream(bodies: list[dict[str, int]], size: int) -> None:
    stream = b"".join(encode("call", **body) for body in bodies)
    decoder, heard = Decoder(), []

    for start in range(0, len(stream), size):
        decoder.feed(stream[start : start + size])
        while (message := decoder.next()) is not None:
            heard.append(message)

    assert [{"kind": "call", **body} for body in bodies] == heard


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (struct.pack(">I", MAX_FRAME_BYTES + 1), "a message of 4194305 bytes is over the 4194304 allowed"),
        (struct.pack(">I", 3) + b"{]}", "a message is not JSON"),
        (struct.pack(">I", 2) + b"[]", "a message is not an object with a `kind`"),
        (struct.pack(">I", 10) + b'{"kind":1}', "a message is not an object with a `kind`"),
        (struct.pack(">I", 200_000) + b"[" * 200_000, "a message is not JSON"),
    ],
)
def test_a_frame_that_is_no_message_is_refused(frame: bytes, message: str) -> None:
    decoder = Decoder()
    decoder.feed(frame)

    with pytest.raises(ProtocolBroken) as refusal:
        decoder.next()

    assert message == refusal.value.message


def test_a_message_beyond_the_bound_is_not_sent() -> None:
    with pytest.raises(ProtocolBroken) as refusal:
        encode("failed", traceback="x" * MAX_FRAME_BYTES)

    assert refusal.value.message == "a `failed` message of 4194336 bytes is over the 4194304 allowed"


@pytest.mark.parametrize(
    ("message", "reply"),
    [
        (
            {"kind": "tested", "layers": [{"id": "L1", "held": True, "evidence": "alone"}]},
            Proof(layers=(LayerResult(id="L1", held=True, evidence="alone"),)),
        ),
        ({"kind": "ready", "torch": "2.13.0", "threads": 1}, Ready(torch="2.13.0", threads=1)),
        (
            {"kind": "failed", "error": "E", "traceback": "a\nb", "kept": True, "returned": False},
            Failed(error="E", traceback="a\nb", kept=True, returned=False),
        ),
        ({"kind": "grow", "size": 9}, Grow(size=9)),
        (
            {
                "kind": "result",
                "value": {"t": 0},
                "tensors": [{"dtype": "int8", "shape": [2, 3], "offset": 64}],
                "compute_ns": 5,
                "kept": False,
            },
            Result(value={"t": 0}, tensors=(Slot(dtype="int8", shape=(2, 3), offset=64),), compute_ns=5, kept=False),
        ),
    ],
)
def test_each_reply_is_read_as_a_value(message: dict[str, Any], reply: object) -> None:
    assert reply == parse_reply(message)


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        ({"kind": "exec"}, "the worker sent a message of the unknown kind 'exec'"),
        ({"kind": "grow", "size": -1}, "the worker sent a wrong `grow` message: `size`: '-1' is not a whole number"),
        ({"kind": "grow", "size": 1, "x": 1}, "the worker sent a wrong `grow` message: `x` is not a known member"),
        (
            {"kind": "failed", "error": "x" * 65537, "traceback": ""},
            "the worker sent a wrong `failed` message: `error`: '" + "x" * 40 + "' is not text of at most 65536",
        ),
        (
            {"kind": "result", "value": 1, "tensors": [{"dtype": "x", "shape": [-1], "offset": 0}], "compute_ns": 0},
            "the worker sent a wrong `result` message: `tensors`: ",
        ),
    ],
)
def test_a_reply_that_is_wrong_is_refused(message: dict[str, Any], refused: str) -> None:
    with pytest.raises(ProtocolBroken) as refusal:
        parse_reply(message)

    assert refusal.value.message.startswith(refused)

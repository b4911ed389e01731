"""Which calls run together, on a clock that the test holds."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.batching import BatchMode, BatchPolicy
from manifests.parts import TensorSpec
from runtime.batcher import NO_BATCHING, Hold, Key, Seal, Waiting, choose, halves, key_of

ADAPTIVE = BatchPolicy(mode=BatchMode.ADAPTIVE, max_batch_size=4)
STATIC = BatchPolicy(mode=BatchMode.STATIC, max_batch_size=4, max_latency_ms=50)
ROW = Key(inputs=(("float32", (4,)),))
WIDE = Key(inputs=(("float32", (8,)),))
FREE = TensorSpec(name="x", dtype="float32", shape=(-1, 4))
FIXED = TensorSpec(name="x", dtype="float32", shape=(1, 4))


def waiting(*keys: Key | None, rows: int = 1, at: float = 0.0) -> list[Waiting]:
    return [Waiting(key=key, rows=rows, arrived=at) for key in keys]


def test_an_empty_queue_decides_nothing() -> None:
    assert choose([], 0.0, ADAPTIVE) is None


def test_a_lone_call_runs_at_once_when_the_worker_is_free() -> None:
    assert choose(waiting(ROW), 0.0, ADAPTIVE) == Seal(positions=(0,), reason="worker free")


def test_everything_that_waits_is_taken_when_the_worker_is_free() -> None:
    assert choose(waiting(ROW, ROW, ROW), 0.0, ADAPTIVE) == Seal(positions=(0, 1, 2), reason="worker free")


def test_a_batch_ends_at_its_largest_size() -> None:
    assert choose(waiting(*[ROW] * 6), 0.0, ADAPTIVE) == Seal(positions=(0, 1, 2, 3), reason="full")


def test_rows_count_and_not_calls() -> None:
    assert choose(waiting(*[ROW] * 3, rows=2), 0.0, ADAPTIVE) == Seal(positions=(0, 1), reason="full")


def test_a_call_larger_than_a_batch_runs_whole_and_alone() -> None:
    assert choose(waiting(ROW, ROW, rows=9), 0.0, ADAPTIVE) == Seal(positions=(0,), reason="full")


def test_only_calls_of_the_same_dtype_and_trailing_shape_share_a_run() -> None:
    assert choose(waiting(ROW, WIDE, None, ROW), 0.0, ADAPTIVE) == Seal(positions=(0, 3), reason="worker free")


def test_a_call_that_cannot_be_batched_runs_alone() -> None:
    assert choose(waiting(None, None), 0.0, ADAPTIVE) == Seal(positions=(0,), reason="runs alone")


def test_without_batching_every_call_runs_alone() -> None:
    assert choose(waiting(ROW, ROW), 0.0, NO_BATCHING) == Seal(positions=(0,), reason="no batching")


def test_static_holds_until_the_oldest_call_has_waited_long_enough() -> None:
    queue = waiting(ROW, ROW, at=10.0)

    assert choose(queue, 10.0, STATIC) == Hold(until=10.05)
    assert choose(queue, 10.05, STATIC) == Seal(positions=(0, 1), reason="waited")


def test_static_does_not_hold_a_full_batch() -> None:
    assert choose(waiting(*[ROW] * 4), 0.0, STATIC) == Seal(positions=(0, 1, 2, 3), reason="full")


@pytest.mark.property
@given(
    st.lists(st.tuples(st.sampled_from([ROW, WIDE, None]), st.integers(1, 6), st.floats(0, 5)), max_size=20),
    st.sampled_from([ADAPTIVE, STATIC, NO_BATCHING]),
)
def test_every_call_runs_exactly_once_in_order_within_its_key(
    calls: Sequence[tuple[Key | None, int, float]], policy: BatchPolicy
) -> None:
    queue = [(n, Waiting(key=key, rows=rows, arrived=at)) for n, (key, rows, at) in enumerate(calls)]
    now, ran = 0.0, list[int]()

    while queue:
        decision = choose([item for _, item in queue], now, policy)
        if isinstance(decision, Hold):
            assert now < decision.until
            now = decision.until
            continue
        assert decision is not None
        taken = [queue[position] for position in decision.positions]
        assert len({item.key for _, item in taken}) == 1
        assert len(taken) == 1 or sum(item.rows for _, item in taken) <= policy.max_batch_size
        ran += [number for number, _ in taken]
        queue = [item for position, item in enumerate(queue) if position not in decision.positions]

    assert sorted(ran) == list(range(len(calls)))
    for key in (ROW, WIDE, None):
        of_key = [number for number in ran if calls[number][0] == key]
        assert of_key == sorted(of_key)


@pytest.mark.property
@given(st.integers(1, 64), st.integers(0, 63))
def test_bisecting_a_failed_batch_blames_only_the_poison(size: int, poison: int) -> None:
    poison %= size
    failed, pending = list[int](), [list(range(size))]

    while pending:
        batch = pending.pop()
        split = halves(batch)
        if poison in batch and split is None:
            failed += batch
        elif poison in batch and split is not None:
            pending += [list(half) for half in split]

    assert failed == [poison]


@pytest.mark.parametrize(
    ("tensors", "inputs", "outputs", "key"),
    [
        ([("float32", (2, 4))], [FREE], [FREE], Key(inputs=(("float32", (4,)),))),
        ([("float32", (2, 4))], [FIXED], [FREE], None),
        ([("float32", (2, 4))], [FREE], [FIXED], None),
        ([("float32", (2, 4))], [FREE], [], None),
        ([("float32", (2, 4))] * 2, [FREE], [FREE], None),
        ([("float32", (2, 4)), ("float32", (3, 4))], [FREE, FREE], [FREE], None),
        ([("float32", ())], [FREE], [FREE], None),
        ([("float32", (0, 4))], [FREE], [FREE], None),
    ],
)
def test_only_what_declares_a_free_first_dimension_is_batched(
    tensors: list[tuple[str, tuple[int, ...]]], inputs: list[TensorSpec], outputs: list[TensorSpec], key: Key | None
) -> None:
    assert key == key_of(tensors, inputs, outputs)

"""Judging the layers: what was not proven is missing, and only loader.conf may accept that."""

import pytest

from manifests.errors import LayerMissing
from runtime.protocol import LayerResult
from runtime.sandbox.layers import LAYERS, judge

ALL = tuple(layer.id for layer in LAYERS)


def results(*missing: str, unreported: str = "") -> list[LayerResult]:
    return [
        LayerResult(id=name, held=name not in missing, evidence="a hole" if name in missing else "whole")
        for name in ALL
        if name != unreported
    ]


def test_the_table_claims_no_layer_that_is_not_built() -> None:
    assert ALL == ("L1", "L2", "L3", "L4", "L7")


def test_whole_walls_pass() -> None:
    assert judge("enc", results(), ()) == ()


@pytest.mark.parametrize("layer", LAYERS, ids=ALL)
def test_each_missing_layer_is_refused_with_its_cure(layer: object) -> None:
    (wanted,) = [one for one in LAYERS if one is layer]

    with pytest.raises(LayerMissing) as refusal:
        judge("enc", results(wanted.id), ())

    assert refusal.value.to_dict()["error"] == {
        "exit": 40,
        "reason": f"layer-missing:{wanted.id}",
        "message": f"the sandbox for `enc` is not whole: {wanted.id} ({wanted.title}): a hole",
        "context": {"layer": wanted.id, "plugin": "enc"},
        "hint": f"{wanted.cure}; or accept the risk: "
        f'`sandbox.accept_missing = ["{wanted.id}"]` in a root-owned loader.conf',
    }


def test_a_layer_that_was_not_reported_is_missing() -> None:
    with pytest.raises(LayerMissing) as refusal:
        judge("enc", results(unreported="L4"), ())

    assert refusal.value.message == (
        "the sandbox for `enc` is not whole: L4 (no new privileges): the worker did not report it"
    )


def test_only_the_layers_that_are_named_are_accepted() -> None:
    assert judge("enc", results("L2", "L3"), ("L2", "L3", "L9")) == ("L2", "L3")

    with pytest.raises(LayerMissing) as refusal:
        judge("enc", results("L2", "L3"), ("L2",))

    assert refusal.value.reason == "layer-missing:L3"

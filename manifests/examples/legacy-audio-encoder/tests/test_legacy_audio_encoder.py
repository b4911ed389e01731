"""legacy-audio-encoder measures loudness, whatever else is wrong with it."""

import math
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.examples.plugin_trees import imported

TREE = Path(__file__).resolve().parents[1] / "plugin"


@pytest.fixture(scope="module")
def legacy() -> Iterator[ModuleType]:
    with imported("legacy_audio_encoder", TREE) as module:
        yield module


def test_a_full_scale_sine_has_minus_three_decibels_and_silence_minus_one_hundred(legacy: ModuleType) -> None:
    sine = torch.sin(2 * math.pi * torch.arange(512) / 16)
    clip = torch.cat([sine, torch.zeros(512), sine / 10, torch.zeros(1)])

    loudness = legacy.factory(object())(clip[None])

    torch.testing.assert_close(loudness, torch.tensor([[-3.0103, -100.0, -23.0103, -100.0]]), rtol=0, atol=1e-3)


def test_a_batch_equals_its_clips_one_by_one(legacy: ModuleType) -> None:
    clips = torch.randn(3, 4000, generator=torch.Generator().manual_seed(5))

    assert torch.equal(legacy.encode(clips), torch.cat([legacy.encode(clip[None]) for clip in clips]))


@pytest.mark.parametrize("shape", [(4,), (1, 0), (1, 1, 1)])
def test_other_shapes_are_refused_in_words(legacy: ModuleType, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError) as refusal:
        legacy.encode(torch.zeros(shape))

    assert str(refusal.value) == (f"legacy-audio-encoder takes a waveform of shape [batch, samples], got {list(shape)}")

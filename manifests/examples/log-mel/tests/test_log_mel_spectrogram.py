"""log-mel against the formula written out in numpy, and against simple laws."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from tests.examples.plugin_trees import imported

TREE = Path(__file__).resolve().parents[1] / "plugin"


@pytest.fixture(scope="module")
def log_mel() -> Iterator[ModuleType]:
    with imported("log_mel", TREE) as module:
        yield module


@pytest.fixture
def speechlike() -> Tensor:
    noise = torch.randn(3, 5000, generator=torch.Generator().manual_seed(7))
    return noise * torch.linspace(0.01, 0.5, 5000)


def by_the_formula(samples: npt.NDArray[np.float64], bands: int = 80) -> npt.NDArray[np.float64]:
    """One clip, one frame and one band at a time, with a plain DFT."""
    padded = np.concatenate([np.zeros(256), samples, np.zeros(256)])
    hann = np.zeros(512)
    hann[56:456] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    dft = np.exp(-2j * np.pi * np.outer(np.arange(257), np.arange(512)) / 512)
    edges = [700 * (10 ** (m / 2595) - 1) for m in np.linspace(0, 2595 * math.log10(1 + 8000 / 700), bands + 2)]
    frames = 1 + len(samples) // 160
    result = np.empty((bands, frames))
    for t in range(frames):
        power = np.abs(dft @ (hann * padded[160 * t : 160 * t + 512])) ** 2
        for band in range(bands):
            total = 0.0
            for k in range(257):
                total += power[k] * triangle(k * 31.25, *edges[band : band + 3])
            result[band, t] = math.log(max(total, 1e-10))
    return result


def triangle(hertz: float, left: float, centre: float, right: float) -> float:
    if left < hertz <= centre:
        return (hertz - left) / (centre - left)
    if centre < hertz < right:
        return (right - hertz) / (right - centre)
    return 0.0


def tone(hertz: float, samples: int = 16_000) -> Tensor:
    return torch.sin(2 * math.pi * hertz * torch.arange(samples, dtype=torch.float64) / 16_000).float()[None]


def test_values_equal_the_written_out_formula(log_mel: ModuleType, speechlike: Tensor) -> None:
    expected = by_the_formula(speechlike[0].double().numpy())

    actual = log_mel.log_mel_spectrogram(speechlike[:1])[0].double().numpy()

    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize("hertz", [150.0, 440.0, 1000.0, 2500.0, 6000.0])
def test_a_pure_tone_is_loudest_in_the_band_that_holds_its_frequency(log_mel: ModuleType, hertz: float) -> None:
    edges = [700 * (10 ** (m / 2595) - 1) for m in np.linspace(0, 2595 * math.log10(1 + 8000 / 700), 82)]

    loudest = int(log_mel.log_mel_spectrogram(tone(hertz))[0, :, 50].argmax())

    # Low bands are narrower than an FFT bin (31 Hz), so the peak may sit in the neighbour.
    assert edges[loudest] - 31.25 <= hertz <= edges[loudest + 2] + 31.25


def test_ten_times_the_amplitude_adds_ln_100(log_mel: ModuleType, speechlike: Tensor) -> None:
    quiet = log_mel.log_mel_spectrogram(speechlike)

    loud = log_mel.log_mel_spectrogram(10 * speechlike)

    torch.testing.assert_close(loud - quiet, torch.full_like(quiet, math.log(100)), rtol=0, atol=1e-3)


def test_a_batch_equals_its_clips_one_by_one(log_mel: ModuleType, speechlike: Tensor) -> None:
    singles = torch.cat([log_mel.log_mel_spectrogram(clip[None]) for clip in speechlike])

    torch.testing.assert_close(log_mel.log_mel_spectrogram(speechlike), singles, rtol=0, atol=1e-4)


def test_a_shift_by_one_hop_shifts_the_frames_by_one(log_mel: ModuleType, speechlike: Tensor) -> None:
    features = log_mel.log_mel_spectrogram(speechlike)

    shifted = log_mel.log_mel_spectrogram(speechlike[:, 160:])

    torch.testing.assert_close(shifted[:, :, 2:-2], features[:, :, 3:-2], rtol=0, atol=1e-3)


def test_silence_is_the_floor_and_never_infinite(log_mel: ModuleType) -> None:
    features = log_mel.log_mel_spectrogram(torch.zeros(1, 1600))

    torch.testing.assert_close(features, torch.full((1, 80, 11), math.log(1e-10)))


@pytest.mark.parametrize(("samples", "frames"), [(1, 1), (159, 1), (160, 2), (16_000, 101)])
def test_every_hop_begins_a_frame(log_mel: ModuleType, samples: int, frames: int) -> None:
    assert log_mel.log_mel_spectrogram(torch.zeros(2, samples)).shape == (2, 80, frames)
    assert log_mel.frame_count(samples) == frames


def test_no_band_is_blind(log_mel: ModuleType) -> None:
    assert (log_mel.mel_filters(80).amax(dim=1) > 0.3).all()


@pytest.mark.parametrize(
    ("waveform", "message"),
    [
        (torch.zeros(16), "log-mel takes a waveform of shape [batch, samples], got [16]"),
        (torch.zeros(2, 0), "log-mel takes a waveform of shape [batch, samples], got [2, 0]"),
        (torch.zeros(1, 16, dtype=torch.int16), "log-mel takes float32 samples, got int16"),
    ],
)
def test_other_inputs_are_refused_in_words(log_mel: ModuleType, waveform: Tensor, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        log_mel.log_mel_spectrogram(waveform)

    assert str(refusal.value) == message


def test_the_factory_gives_the_same_function(log_mel: ModuleType, speechlike: Tensor) -> None:
    plugin: Callable[[Tensor], Tensor] = log_mel.factory(object())

    assert torch.equal(plugin(speechlike), log_mel.log_mel_spectrogram(speechlike))

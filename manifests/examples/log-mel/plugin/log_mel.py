"""Log-mel spectrograms of 16 kHz waveforms. Does not resample, normalise or read audio files."""

import functools
import math
from collections.abc import Callable

import torch
from torch import Tensor

SAMPLE_RATE = 16_000
WINDOW = 400
HOP = 160
FFT_SIZE = 512
MEL_BANDS = 80
POWER_FLOOR = 1e-10


def factory(context: object) -> Callable[[Tensor], Tensor]:
    """Return the plugin's callable: waveform [B, N] -> log-mel [B, 80, T]."""
    return log_mel_spectrogram


def log_mel_spectrogram(waveform: Tensor, mel_bands: int = MEL_BANDS) -> Tensor:
    """Turn a waveform [B, N] into natural-log mel powers [B, mel_bands, frame_count(N)].

    Frame t is centred on sample t * HOP; samples outside the clip count as zero.
    """
    _check(waveform)
    spectrum = torch.stft(
        waveform,
        n_fft=FFT_SIZE,
        hop_length=HOP,
        win_length=WINDOW,
        window=torch.hann_window(WINDOW, device=waveform.device),
        center=True,
        pad_mode="constant",
        return_complex=True,
    )
    power = spectrum.real.square() + spectrum.imag.square()
    mel_power = mel_filters(mel_bands).to(waveform.device) @ power
    return mel_power.clamp(min=POWER_FLOOR).log()


def frame_count(samples: int) -> int:
    """Return how many frames a clip of so many samples has."""
    return 1 + samples // HOP


@functools.cache
def mel_filters(mel_bands: int) -> Tensor:
    """Return triangular filters [mel_bands, FFT_SIZE // 2 + 1], peak 1, evenly spaced on the HTK mel scale."""
    edges = _mel_to_hertz(torch.linspace(0.0, _hertz_to_mel(SAMPLE_RATE / 2), mel_bands + 2, dtype=torch.float64))
    bins = torch.linspace(0.0, SAMPLE_RATE / 2, FFT_SIZE // 2 + 1, dtype=torch.float64)
    left, centre, right = (edges[offset : offset + mel_bands, None] for offset in range(3))
    rising = (bins - left) / (centre - left)
    falling = (right - bins) / (right - centre)
    return torch.minimum(rising, falling).clamp(min=0.0).to(torch.float32)


def _hertz_to_mel(hertz: float) -> float:
    return 2595.0 * math.log10(1.0 + hertz / 700.0)


def _mel_to_hertz(mel: Tensor) -> Tensor:
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


def _check(waveform: Tensor) -> None:
    if waveform.dim() != 2 or waveform.shape[1] == 0:
        raise ValueError(f"log-mel takes a waveform of shape [batch, samples], got {list(waveform.shape)}")
    if waveform.dtype != torch.float32:
        raise ValueError(f"log-mel takes float32 samples, got {str(waveform.dtype).removeprefix('torch.')}")

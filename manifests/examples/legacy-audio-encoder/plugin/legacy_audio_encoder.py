"""Measures how loud each 32 ms of a clip is. Knows nothing of speech, and works on one clip after another."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

CHUNK = 512
SILENCE = 1e-5


def factory(context: object) -> Callable[[Tensor], Tensor]:
    """Return the plugin's callable: waveform [B, N] -> loudness [B, T] in decibels below full scale."""
    return encode


def encode(waveform: Tensor) -> Tensor:
    """Return the root mean square of each 512 samples in decibels, never below -100."""
    if waveform.dim() != 2 or waveform.numel() == 0:
        raise ValueError(f"legacy-audio-encoder takes a waveform of shape [batch, samples], got {list(waveform.shape)}")
    # One clip at a time: the waste that this plugin shows.
    return torch.stack([_encode_clip(clip) for clip in waveform])


def _encode_clip(clip: Tensor) -> Tensor:
    chunks = functional.pad(clip, (0, -len(clip) % CHUNK)).reshape(-1, CHUNK)
    loudness = chunks.square().mean(dim=1).sqrt().clamp(min=SILENCE)
    return loudness.log10() * 20.0

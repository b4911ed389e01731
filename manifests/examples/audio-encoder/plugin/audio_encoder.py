"""Encodes 16 kHz clips, whole batches at once: where speech is, and how it sounds. Keeps nothing between calls."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import silero_network
import speech_embedding
import torch
from torch import Tensor


class Context(Protocol):
    """What the worker hands over."""

    @property
    def path(self) -> Path: ...

    @property
    def device(self) -> torch.device: ...


def factory(context: Context) -> Callable[[Tensor], dict[str, Tensor]]:
    """Return the plugin's callable: waveform [B, N] -> speech [B, T] and embedding [B, 160]."""
    network = silero_network.load(context.path / silero_network.WEIGHTS, context.device)

    @torch.inference_mode()
    def encode(waveform: Tensor) -> dict[str, Tensor]:
        speech: Tensor = network(waveform)
        return {"speech": speech, "embedding": speech_embedding.embed(waveform, speech)}

    return encode

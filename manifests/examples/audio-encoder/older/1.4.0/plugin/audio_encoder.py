"""Finds speech in 16 kHz clips. Makes no embedding: that came with 2.0."""

from collections.abc import Callable
from typing import Any

import silero_network
import torch
from torch import Tensor


def factory(context: Any) -> Callable[[Tensor], dict[str, Tensor]]:
    """Return the plugin's callable: waveform [B, N] -> speech [B, T]."""
    network = silero_network.load(context.path / silero_network.WEIGHTS, context.device)

    @torch.inference_mode()
    def detect(waveform: Tensor) -> dict[str, Tensor]:
        return {"speech": network(waveform)}

    return detect

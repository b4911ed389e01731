"""Encodes 16 kHz clips one after another. Does not use the batch: that came with 2.0.5."""

from collections.abc import Callable
from typing import Any

import silero_network
import speech_embedding
import torch
from torch import Tensor


def factory(context: Any) -> Callable[[Tensor], dict[str, Tensor]]:
    """Return the plugin's callable: waveform [B, N] -> speech [B, T] and embedding [B, 160]."""
    network = silero_network.load(context.path / silero_network.WEIGHTS, context.device)

    @torch.inference_mode()
    def encode(waveform: Tensor) -> dict[str, Tensor]:
        clips = waveform[:, None].unbind()
        speech = [network(clip) for clip in clips]
        embeddings = [speech_embedding.embed(*pair) for pair in zip(clips, speech, strict=True)]
        return {"speech": torch.cat(speech), "embedding": torch.cat(embeddings)}

    return encode

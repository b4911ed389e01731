"""Sums a clip up as the log-mel statistics of its speech. Does not find the speech."""

import log_mel
import torch
from silero_network import CHUNK
from torch import Tensor


def embed(waveform: Tensor, speech: Tensor) -> Tensor:
    """Return [B, 2 * bands]: mean, then standard deviation, of log-mel features weighted by speech probability."""
    features = log_mel.log_mel_spectrogram(waveform)
    weights = _probability_of_frames(speech, features.shape[2])[:, None, :]
    total = weights.sum(dim=2)
    mean = (weights * features).sum(dim=2) / total
    variance = (weights * (features - mean[:, :, None]).square()).sum(dim=2) / total
    return torch.cat([mean, variance.sqrt()], dim=1)


def _probability_of_frames(speech: Tensor, frames: int) -> Tensor:
    """Give each log-mel frame the probability of the window that its centre lies in."""
    centres = torch.arange(frames, device=speech.device) * log_mel.HOP
    # The last frame may be centred one past the last sample, hence past the last window.
    windows = (centres // CHUNK).clamp(max=speech.shape[1] - 1)
    return speech[:, windows]
